/** Reads protocol, addresses and ports of a packet from its first bytes, and says them in words. Pure. */
import { type Address, addressFromBytes, formatAddress } from "../../../ip/address.ts";
import { protocolWords } from "../../../policy/judge/rule-words.ts";
import type { Flow } from "./flow.ts";

export interface PacketHead {
  readonly protocol: number;
  readonly source: PacketEnd;
  readonly destination: PacketEnd;
}

export interface PacketEnd {
  readonly address: Address;
  readonly port?: number;
}

/** The name of what has the address: `default/web`, `node node-1`; `undefined` if nothing known has it. */
export type NameOf = (address: Address) => string | undefined;

const WITH_PORTS: ReadonlySet<number> = new Set([6, 17, 132, 136]);
const PLACES = {
  4: { protocol: 9, source: 12, destination: 16, length: 4 },
  6: { protocol: 6, source: 8, destination: 24, length: 16 },
} as const;
const IPV6_HEADER = 40;

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
  return { protocol, source: endOf(source, from), destination: endOf(destination, to) };
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

/** `TCP 10.0.0.5:40000 (default/web) -> 10.0.0.6:80`. */
export function headWords(head: PacketHead | undefined, nameOf: NameOf = () => undefined): string {
  if (head === undefined) return "packet";
  const { protocol, source, destination } = head;
  return `${protocolWords(protocol)} ${endWords(source, nameOf)} -> ${endWords(destination, nameOf)}`;
}

function endWords({ address, port }: PacketEnd, nameOf: NameOf): string {
  const text = formatAddress(address);
  const place = port === undefined ? text : address.family === 6 ? `[${text}]:${port}` : `${text}:${port}`;
  const name = nameOf(address);
  return name === undefined ? place : `${place} (${name})`;
}

/** For `-o json`. */
export function headFields(head: PacketHead | undefined, nameOf: NameOf): object {
  if (head === undefined) return {};
  const end = ({ address, port }: PacketEnd) => {
    const name = nameOf(address);
    return {
      address: formatAddress(address),
      ...(port === undefined ? {} : { port }),
      ...(name === undefined ? {} : { name }),
    };
  };
  return { protocol: protocolWords(head.protocol), source: end(head.source), destination: end(head.destination) };
}

/** Of a flow without addresses: those of `policy trace --dropped`. */
export function isOfFlow({ protocol, source, destination }: PacketHead, flow: Flow): boolean {
  return (
    source.address.family === flow.family &&
    (flow.protocol === undefined || flow.protocol === protocol) &&
    (flow.port === undefined || flow.port === destination.port) &&
    (flow.sourcePort === undefined || flow.sourcePort === source.port)
  );
}
