/**
 * Which claims of a pod's annotations count (model/claimed-endpoint.ts): the one decision for routes, the guard, NAT, BGP
 * and the sets of all nodes. Pure.
 *
 *   address         the kubelet reports it; or IPAM holds it for this pod on its node; or, on its own node, an ADD recorded it:
 *                   then it counts even if no annotation names it, unless DEL has blanked the annotations
 *   floating IP     its pod has the internal address, an ADD of this host recorded the pair, and the switch is on
 *   further source  an ADD of this host recorded it
 */
import { type Address, formatAddress, parseAddress } from "../ip/address.ts";
import { nthAddress, ordinalOf } from "../ip/block.ts";
import { formatPrefix, parseInterfaceAddress, singlePrefix } from "../ip/prefix.ts";
import { POD_INTERFACE, type PodOnNode, podOfAttribute } from "../model/block-owners.ts";
import { claimsOf, withoutClaims } from "../model/claimed-endpoint.ts";
import { hostInterfaceName } from "../model/host-interface-name.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { isObject } from "../model/shape.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { parseWorkloadEndpointName } from "../model/workload-endpoint-name.ts";
import type { AttachmentRecord } from "./attachment-record.ts";

export interface Proof {
  /** The node that decides. */
  readonly node: string;
  /** Whether IPAM holds the address for the pod. */
  readonly isAssigned: (address: Address, pod: PodOnNode) => boolean;
  /** All addresses that IPAM holds for the pod. */
  readonly assignedTo: (pod: PodOnNode) => readonly Address[];
  /** What an ADD recorded on this host. */
  readonly attachmentOf: (hostInterface: string) => AttachmentRecord | undefined;
  /** `feature_control.floating_ips`. */
  readonly allowsFloating: boolean;
}

export interface Proven {
  readonly endpoint: WorkloadEndpoint;
  /** What does not count, each with its reason. */
  readonly refused: readonly string[];
}

/** `endpoint`: as `withoutClaims` returns it. */
export function provenEndpoint(endpoint: WorkloadEndpoint, proof: Proof): Proven {
  const claims = claimsOf(endpoint);
  const owner = ownerOf(endpoint);
  if (claims === undefined || owner === undefined) return { endpoint, refused: [] };
  const { spec, status, ...rest } = endpoint;
  const recorded = owner.node === proof.node ? recordOf(owner, proof) : undefined;
  const ipNetworks = split(claims.ipNetworks, (network) => {
    const address = parseInterfaceAddress(network)?.address;
    if (address === undefined || spec.ipNetworks?.includes(network)) return address !== undefined;
    return proof.isAssigned(address, owner) || (recorded?.addresses.includes(formatAddress(address)) ?? false);
  });
  const unnamed = unnamedAddresses({ reported: spec.ipNetworks ?? [], ...ipNetworks }, owner, { proof, recorded });
  const addresses = [...ipNetworks.counted, ...unnamed];
  const ipNATs = split(claims.ipNATs, (nat) => {
    const internal = parseAddress(nat.internalIP);
    const isOwn = internal !== undefined && addresses.includes(formatPrefix(singlePrefix(internal)));
    return isOwn && proof.allowsFloating && (recorded?.floating.some((each) => Bun.deepEquals(each, nat)) ?? false);
  });
  const sources = split(claims.sourcePrefixes, (prefix) => recorded?.sourcePrefixes.includes(prefix) ?? false);
  const others = isObject(status) ? Object.entries(status).filter(([name]) => name !== "claims") : [];
  return {
    endpoint: {
      ...rest,
      spec: {
        ...spec,
        ipNetworks: addresses,
        ...(ipNATs.counted.length === 0 ? {} : { ipNATs: ipNATs.counted }),
        ...(sources.counted.length === 0 ? {} : { allowSpoofedSourcePrefixes: sources.counted }),
      },
      ...(others.length === 0 ? {} : { status: Object.fromEntries(others) }),
    },
    refused: [
      ...ipNetworks.refused.map((each) => `address ${each}: neither IPAM, the kubelet nor an ADD on its node says so`),
      ...ipNATs.refused.map(({ externalIP }) => `floating IP ${externalIP}: ${reasonAgainstFloating(proof)}`),
      ...sources.refused.map((each) => `source prefix ${each}: no ADD on its node recorded it`),
      ...claims.unreadable.map((each) => `${each}: not readable`),
    ],
  };
}

/** What the pod has although its annotations do not name it: they can be changed, its addresses cannot. */
function unnamedAddresses(
  named: {
    readonly reported: readonly string[];
    readonly counted: readonly string[];
    readonly refused: readonly string[];
  },
  owner: PodOnNode,
  { proof, recorded }: { readonly proof: Proof; readonly recorded: AttachmentRecord | undefined },
): readonly string[] {
  // All blocks are searched: not for a pod whose kubelet has reported what its annotations name.
  const isTold = named.reported.length > 0 && named.refused.length === 0;
  const held = isTold ? [] : proof.assignedTo(owner);
  const ofRecord = (recorded?.addresses ?? []).flatMap((text) => parseAddress(text) ?? []);
  const all = [...named.reported, ...[...held, ...ofRecord].map((each) => formatPrefix(singlePrefix(each)))];
  return [...new Set(all)].filter((network) => !named.counted.includes(network));
}

function split<Item>(items: readonly Item[], counts: (item: Item) => boolean) {
  return { counted: items.filter(counts), refused: items.filter((item) => !counts(item)) };
}

function reasonAgainstFloating({ allowsFloating }: Proof): string {
  return allowsFloating ? "no ADD on its node recorded it" : '"feature_control.floating_ips" is off';
}

/**
 * For programs that read endpoints and blocks from the datastore: the endpoint with the addresses that the kubelet reports, or
 * that the blocks hold for its pod, or an ADD recorded on this host, if that is known. Nothing else of it is changed.
 */
export function withHeldAddresses(
  endpoint: WorkloadEndpoint,
  blocks: readonly IPAMBlock[],
  host: Pick<Proof, "node" | "attachmentOf"> = { node: "", attachmentOf: () => undefined },
): WorkloadEndpoint {
  const settled = withoutClaims(endpoint);
  if (claimsOf(settled) === undefined) return endpoint;
  const { spec } = provenEndpoint(settled, { ...host, ...heldIn(blocks), allowsFloating: false }).endpoint;
  return { ...endpoint, spec: { ...endpoint.spec, ipNetworks: spec.ipNetworks ?? [] } };
}

export function heldIn(blocks: readonly IPAMBlock[]): Pick<Proof, "isAssigned" | "assignedTo"> {
  return {
    isAssigned: (address, pod) => isAssignedIn(blocks, address, pod),
    assignedTo: (pod) => blocks.flatMap((block) => assignedIn(block, pod)),
  };
}

function isAssignedIn(blocks: readonly IPAMBlock[], address: Address, pod: PodOnNode): boolean {
  return blocks.some((block) => {
    const ordinal = ordinalOf(block.cidr, address);
    const index = ordinal === undefined ? undefined : block.allocations[ordinal];
    const owner = index === undefined ? undefined : podOfAttribute(block, index);
    return owner !== undefined && Bun.deepEquals(owner, pod);
  });
}

function assignedIn(block: IPAMBlock, pod: PodOnNode): readonly Address[] {
  const isOfPod = block.attributes.map((_, index) => Bun.deepEquals(podOfAttribute(block, index), pod));
  return block.allocations.flatMap((index, ordinal) =>
    index !== undefined && isOfPod[index] ? (nthAddress(block.cidr, ordinal) ?? []) : [],
  );
}

/** `undefined` if it is not that of a pod. */
export function ownerOf({ metadata, spec }: WorkloadEndpoint): PodOnNode | undefined {
  const { orchestrator, workload: pod } = parseWorkloadEndpointName(metadata.name) ?? {};
  if (orchestrator !== "k8s" || pod === undefined || spec.node === undefined) return undefined;
  return { namespace: metadata.namespace ?? "", pod, node: spec.node };
}

function recordOf({ namespace, pod }: PodOnNode, { attachmentOf }: Proof): AttachmentRecord | undefined {
  const named = { namespace, name: pod };
  const found = attachmentOf(hostInterfaceName({ containerId: "", ifname: POD_INTERFACE, pod: named }));
  return found?.pod === undefined || Bun.deepEquals(found.pod, named) ? found : undefined;
}
