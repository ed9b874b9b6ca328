/**
 * A recorded flow as the judge sees it: its packet, and who is at its ends. Pure.
 */
import { identity } from "../identity.ts";
import { type Address, isSameAddress, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { parseWorkloadEndpointName } from "../model/workload-endpoint-name.ts";
import type { ExplainedPacket } from "../policy/judge/explain.ts";
import type { PacketEnd } from "../policy/judge/host-passages.ts";
import type { Packet } from "../policy/judge/packet.ts";
import type { FlowEnd, FlowRecord } from "./flow-record.ts";

/** No policy judged it: the kernel accepts it because of another connection. */
export function reasonNotToExplain({ relatedTo }: FlowRecord): string | undefined {
  if (relatedTo === undefined) return undefined;
  return `no rule judged it: it exists because of ${relatedTo}, which was judged; explain that one`;
}

export const UNREADABLE_ADDRESSES = "the addresses of the record cannot be read";

/** `undefined`: its addresses cannot be read. */
export function packetOf(flow: FlowRecord): Pick<ExplainedPacket, "packet" | "leavesAs" | "via"> | undefined {
  const { source, destination, backend, seenAs, node } = flow;
  const [from, to] = [parseAddress(source.address), parseAddress(destination.address)];
  const arrives = backend === undefined ? to : parseAddress(backend.address);
  const leavesAs = seenAs && parseAddress(seenAs.address);
  if (from === undefined || to === undefined || arrives === undefined) return undefined;
  const sent = packetTo(flow, from, to, destination.port);
  if (backend === undefined) return { packet: sent, ...(leavesAs === undefined ? {} : { leavesAs }) };
  const packet = { ...packetTo(flow, from, arrives, backend.port), beforeNat: sent };
  const hidden = leavesAs === undefined ? {} : { leavesAs };
  // A node on the way of a connection from elsewhere rewrites it, not that of the source.
  return isOn(source, node) ? { packet, ...hidden } : { packet, via: { node, ...hidden } };
}

function packetTo(
  { protocol, source, icmp }: FlowRecord,
  from: Address,
  to: Address,
  destinationPort: number | undefined,
): Packet {
  return {
    ...{ source: from, destination: to, protocol },
    ...(source.port === undefined ? {} : { sourcePort: source.port }),
    ...(destinationPort === undefined ? {} : { destinationPort }),
    ...(icmp === undefined ? {} : { icmp }),
  };
}

function isOn({ kind, name, node }: FlowEnd, place: string): boolean {
  return kind === "host" ? name === place : node === place;
}

export interface FlowEnds {
  readonly source: PacketEnd;
  readonly destination: PacketEnd;
}

/** `workloadOf`: of a pod or container. */
export function endsOf(
  { source, destination, backend }: FlowRecord,
  workloadOf: (end: FlowEnd) => WorkloadEndpoint | undefined,
): FlowEnds {
  const endOf = (end: FlowEnd): PacketEnd => {
    if (end.kind === "host") return { node: end.name };
    const workload = isWorkload(end) ? workloadOf(end) : undefined;
    return workload === undefined ? {} : { workload };
  };
  return { source: endOf(source), destination: endOf(backend ?? destination) };
}

export function isWorkload({ kind }: FlowEnd): boolean {
  return kind === "pod" || kind === "container";
}

export function hasAddressOf({ spec }: WorkloadEndpoint, { address }: FlowEnd): boolean {
  const wanted = parseAddress(address);
  const own = [...(spec.ipNetworks ?? []), ...(spec.ipNATs ?? []).map(({ externalIP }) => externalIP)];
  return own.some((text) => {
    const read = parseInterfaceAddress(text)?.address ?? parseAddress(text);
    return read !== undefined && wanted !== undefined && isSameAddress(read, wanted);
  });
}

export function titleOfEnd({ kind, namespace, name, address }: FlowEnd): string {
  if (name === undefined || kind === "outside" || kind === "hidden") return address;
  return kind === "host" ? `node ${name}` : namespace === undefined ? name : `${namespace}/${name}`;
}

/** As runtimes shorten the ID of a container. */
const SHORT_ID = 12;

/** What a record calls a workload. */
export function nameOfWorkload({
  metadata,
  spec,
}: WorkloadEndpoint): { readonly kind: "pod" | "container" } & Pick<FlowEnd, "namespace" | "name"> {
  const named = parseWorkloadEndpointName(metadata.name);
  const isPod = named?.orchestrator === "k8s";
  const { namespace } = metadata;
  return {
    kind: isPod ? "pod" : "container",
    ...(isPod && namespace !== undefined ? { namespace } : {}),
    name: isPod ? named.workload : (spec.workload ?? named?.workload.slice(0, SHORT_ID) ?? metadata.name),
  };
}

/** Without those that the product sets, which say what other fields say. */
export function ownLabels(labels: Readonly<Record<string, string>> | undefined): FlowEnd["labels"] {
  if (labels === undefined) return undefined;
  const own = Object.entries(labels).filter(([label]) => !label.startsWith(identity.labelPrefix));
  return own.length === 0 ? undefined : Object.fromEntries(own);
}
