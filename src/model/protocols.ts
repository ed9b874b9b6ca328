/** IP protocols that rules name. Pure. */
const NUMBERS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, icmp: 1, icmpv6: 58, sctp: 132, udplite: 136 };

export const PROTOCOL_NAMES = Object.keys(NUMBERS);

/** The number of a protocol that is given by its name, in any case, or by its number. */
export function protocolNumber(protocol: number | string): number | undefined {
  if (typeof protocol === "number") return protocol;
  const number = NUMBERS[protocol.toLowerCase()] ?? Number(protocol);
  return Number.isInteger(number) ? number : undefined;
}
