/** IP protocols that rules name. Pure. */
const NUMBERS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, icmp: 1, icmpv6: 58, sctp: 132, udplite: 136 };

export const TCP = 6;

/** Their messages have types and codes. */
export const ICMP_PROTOCOLS: ReadonlySet<number> = new Set([1, 58]);
/** Rules may match their ports. */
export const PROTOCOLS_WITH_PORTS: ReadonlySet<number> = new Set([6, 17, 132]);

export const PROTOCOL_NAMES = Object.keys(NUMBERS);

/** The number of a protocol that is given by its name, in any case, or by its number. */
export function protocolNumber(protocol: number | string): number | undefined {
  if (typeof protocol === "number") return protocol;
  const number = NUMBERS[protocol.toLowerCase()] ?? Number(protocol);
  return Number.isInteger(number) ? number : undefined;
}
