/** Says protocol, addresses and ports of a packet in words. Pure. */
import { type Address, formatAddress } from "../../../ip/address.ts";
import type { PacketEnd, PacketHead } from "../../../linux/packet-head.ts";
import { protocolWords } from "../../../policy/judge/rule-words.ts";
import type { Flow } from "./flow.ts";

/** The name of what has the address: `default/web`, `node node-1`; `undefined` if nothing known has it. */
export type NameOf = (address: Address) => string | undefined;

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
