/** Reads protocol, addresses and ports of a packet from its first bytes. Pure. */
import { type Address, addressFromBytes } from "../ip/address.ts";

export interface PacketHead {
  readonly protocol: number;
  readonly source: PacketEnd;
  readonly destination: PacketEnd;
  readonly icmp?: { readonly type: number; readonly code: number };
  /** From the IP header on, as the header says. */
  readonly bytes: number;
}

export interface PacketEnd {
  readonly address: Address;
  readonly port?: number;
}

const WITH_PORTS: ReadonlySet<number> = new Set([6, 17, 132, 136]);
const PLACES = {
  4: { protocol: 9, source: 12, destination: 16, length: 4, size: 2, withoutHeader: 0 },
  6: { protocol: 6, source: 8, destination: 24, length: 16, size: 4, withoutHeader: 40 },
} as const;
const IPV6_HEADER = 40;
const ICMP: ReadonlySet<number> = new Set([1, 58]);

/** `undefined` if it is not an IP packet. */
export function readHead(network: Uint8Array, transport: Uint8Array = new Uint8Array()): PacketHead | undefined {
  const family = (network[0] ?? 0) >> 4;
  if (family !== 4 && family !== 6) return undefined;
  const places = PLACES[family];
  const protocol = network[places.protocol] ?? 0;
  const source = addressFromBytes(network.slice(places.source, places.source + places.length));
  const destination = addressFromBytes(network.slice(places.destination, places.destination + places.length));
  if (source === undefined || destination === undefined) return undefined;
  const [from, to] = transport.length >= 4 && WITH_PORTS.has(protocol) ? portsOf(transport) : [];
  const [type, code] = transport;
  return {
    protocol,
    source: endOf(source, from),
    destination: endOf(destination, to),
    ...(ICMP.has(protocol) && type !== undefined && code !== undefined ? { icmp: { type, code } } : {}),
    bytes: (((network[places.size] ?? 0) << 8) | (network[places.size + 1] ?? 0)) + places.withoutHeader,
  };
}

/** `bytes`: from the IP header on. */
export function readWholeHead(bytes: Uint8Array): PacketHead | undefined {
  const isIpv4 = (bytes[0] ?? 0) >> 4 === 4;
  const length = isIpv4 ? ((bytes[0] ?? 0) & 15) * 4 : IPV6_HEADER;
  const isLaterFragment = isIpv4 && ((((bytes[6] ?? 0) << 8) | (bytes[7] ?? 0)) & 0x1fff) !== 0;
  return readHead(bytes.subarray(0, length), isLaterFragment ? undefined : bytes.subarray(length));
}

function endOf(address: Address, port: number | undefined): PacketEnd {
  return { address, ...(port === undefined ? {} : { port }) };
}

function portsOf(transport: Uint8Array): readonly number[] {
  const view = new DataView(transport.buffer, transport.byteOffset, transport.length);
  return [view.getUint16(0), view.getUint16(2)];
}
