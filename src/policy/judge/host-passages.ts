/**
 * Which interfaces of hosts a packet passes, by the host endpoints that they can belong to. The datastore does not say by
 * which interface a packet enters or leaves a node, unless a host endpoint has the address. Pure.
 */
import { type Address, isSameAddress, parseAddress } from "../../ip/address.ts";
import { ALL_INTERFACES, type HostEndpoint } from "../../model/host-endpoint.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Direction } from "../effective-rule.ts";
import type { Packet } from "./packet.ts";
import type { PolicyResources } from "./resources.ts";

/** Where a packet comes from or goes to. With nothing known it is outside the network. */
export interface PacketEnd {
  /** The workload with the address. */
  readonly workload?: WorkloadEndpoint | undefined;
  /** The node with the address. */
  readonly node?: string | undefined;
  /** Of the node, if the interface is known that the packet passes. */
  readonly hostEndpoint?: HostEndpoint | undefined;
}

export interface HostPassage {
  readonly node: string;
  readonly direction: Direction;
  /** Otherwise the packet is from or to the host itself. */
  readonly isForwarded: boolean;
  /** It passes the interface of one of these, */
  readonly candidates: readonly HostEndpoint[];
  /** or one that no host endpoint has. */
  readonly mayPassOther: boolean;
}

/** A part is absent if the node has no host endpoint, or if the packet does not leave it. */
export interface HostPassages {
  /** Of the source's node. */
  readonly leaving?: HostPassage;
  /** Of a node between them, in its order. */
  readonly between: readonly HostPassage[];
  /** Of the destination's node. */
  readonly entering?: HostPassage;
}

interface Journey {
  readonly packet: Packet;
  readonly source: PacketEnd;
  readonly destination: PacketEnd;
  /** A node that it passes on its way. It may be that of an end. */
  readonly via?: { readonly node: string };
}

export function hostPassages({ packet, source, destination, via }: Journey, resources: PolicyResources): HostPassages {
  const ends = [nodeOf(source), nodeOf(destination)];
  const middle = via === undefined || ends.includes(via.node) ? undefined : via.node;
  // Within a node a packet passes interfaces of workloads and the loopback interface only.
  if (middle === undefined && ends[0] !== undefined && ends[0] === ends[1]) return { between: [] };
  const leaving = passageOf({ end: source, address: packet.source, direction: "egress" }, resources);
  const entering = passageOf({ end: destination, address: packet.destination, direction: "ingress" }, resources);
  const between = (["ingress", "egress"] as const).flatMap((direction) => {
    const crossing = { end: { node: middle }, address: packet.destination, direction, isForwarded: true };
    return passageOf(crossing, resources) ?? [];
  });
  return { ...(leaving === undefined ? {} : { leaving }), between, ...(entering === undefined ? {} : { entering }) };
}

export function nodeOf({ workload, node }: PacketEnd): string | undefined {
  return workload?.spec.node ?? node;
}

interface Crossing {
  readonly end: PacketEnd;
  readonly address: Address;
  readonly direction: Direction;
  readonly isForwarded?: boolean;
}

function passageOf(
  { end, address, direction, isForwarded = end.workload !== undefined }: Crossing,
  resources: PolicyResources,
): HostPassage | undefined {
  const node = nodeOf(end);
  const here = resources.hostEndpoints
    .filter(({ spec }) => node !== undefined && spec.node === node)
    .toSorted((left, right) => (left.metadata.name < right.metadata.name ? -1 : 1));
  if (node === undefined || here.length === 0) return undefined;
  const known = end.hostEndpoint ?? (isForwarded ? undefined : here.find((each) => hasAddress(each, address)));
  const all = here.find(isOfAllInterfaces);
  const special = here.filter((each) => !isOfAllInterfaces(each));
  return {
    ...{ node, direction, isForwarded },
    candidates: known === undefined ? [...special, ...(all === undefined ? [] : [all])] : [known],
    mayPassOther: known === undefined && all === undefined,
  };
}

/** One for all interfaces may expect the address too, and still another has the interface. */
function hasAddress(endpoint: HostEndpoint, address: Address): boolean {
  const expected = (endpoint.spec.expectedIPs ?? []).flatMap((text) => parseAddress(text) ?? []);
  return !isOfAllInterfaces(endpoint) && expected.some((own) => isSameAddress(own, address));
}

function isOfAllInterfaces({ spec }: HostEndpoint): boolean {
  return spec.interfaceName === ALL_INTERFACES;
}
