/**
 * Problems between endpoints and addresses. Pure.
 *
 * The CNI plugin writes an endpoint in the same commit as its addresses, and
 * deletes both in one. In a network that it serves (it creates a profile with
 * the network's name) an address without an endpoint is therefore leaked: its
 * endpoint was deleted by hand, or a newer sandbox of the pod replaced it and
 * the DEL of the old one never came. Only an allocation that is at least an hour
 * old counts as leaked, since that DEL may still come.
 */
import { formatAddress, parseAddress } from "../../../ip/address.ts";
import { type Prefix, prefixContains } from "../../../ip/prefix.ts";
import type { Severity } from "../../../ipam/invariants.ts";
import { addressesWithoutIpam, WITHOUT_IPAM_ANNOTATION } from "../../../model/endpoint-labels.ts";
import { NETWORK_ATTRIBUTE } from "../../../model/ipam-block.ts";
import { isWaiting } from "../../../model/kept-address.ts";
import type { Profile } from "../../../model/profile.ts";
import type { WorkloadEndpoint } from "../../../model/workload-endpoint.ts";
import { addressesOfEndpoint, nameOfEndpoint } from "../address-users.ts";
import type { Allocation } from "../blocks.ts";

export interface EndpointProblem {
  readonly kind: "address-twice" | "allocation-without-endpoint" | "endpoint-without-allocation";
  readonly severity: Severity;
  readonly message: string;
  readonly address: string;
  /** The allocation that may be released. */
  readonly leaked?: Allocation;
}

export interface EndpointFacts {
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly profiles: readonly Profile[];
  readonly allocations: readonly Allocation[];
  readonly pools: readonly Prefix[];
  readonly now: Date;
  /** How long an address must have been allocated before it counts as leaked. */
  readonly graceMilliseconds: number;
}

/** The DEL of an earlier sandbox of a pod may come that late. */
export const USUAL_GRACE_MILLISECONDS = 60 * 60 * 1000;

export function findEndpointProblems(facts: EndpointFacts): readonly EndpointProblem[] {
  const owners = ownersByAddress(facts.endpoints);
  const allocations = new Map(facts.allocations.map((each) => [formatAddress(each.address), each]));
  return [
    ...[...owners].flatMap(([address, endpoints]) => twice(address, endpoints)),
    ...[...owners].flatMap(([address, endpoints]) => unallocated(address, endpoints, allocations, facts.pools)),
    ...leaks(facts, owners, allocations),
  ];
}

type Owners = ReadonlyMap<string, readonly WorkloadEndpoint[]>;
type Allocations = ReadonlyMap<string, Allocation>;

function ownersByAddress(endpoints: readonly WorkloadEndpoint[]): Owners {
  const owners = new Map<string, WorkloadEndpoint[]>();
  for (const endpoint of endpoints) {
    for (const address of addressesOfEndpoint(endpoint)) {
      const text = formatAddress(address);
      const known = owners.get(text);
      if (known) known.push(endpoint);
      else owners.set(text, [endpoint]);
    }
  }
  return owners;
}

function twice(address: string, endpoints: readonly WorkloadEndpoint[]): readonly EndpointProblem[] {
  if (endpoints.length < 2) return [];
  const names = endpoints.map(nameOfEndpoint).join(", ");
  const message = `Address ${address} is used by ${names}`;
  return [{ kind: "address-twice", severity: "corrupt", message, address }];
}

function unallocated(
  address: string,
  endpoints: readonly WorkloadEndpoint[],
  allocations: Allocations,
  pools: readonly Prefix[],
): readonly EndpointProblem[] {
  const place = parseAddress(address);
  if (!place || allocations.has(address) || !pools.some((pool) => prefixContains(pool, place))) return [];
  if (endpoints.every((endpoint) => isWithoutIpam(endpoint, address))) return [];
  const names = endpoints.map(nameOfEndpoint).join(", ");
  const message = `Address ${address} of ${names} is in a pool but not allocated: it could be assigned to another workload`;
  return [{ kind: "endpoint-without-allocation", severity: "corrupt", message, address }];
}

/** The pod requested that the address by-passes IPAM. */
function isWithoutIpam({ metadata }: WorkloadEndpoint, address: string): boolean {
  return addressesWithoutIpam(metadata.annotations?.[WITHOUT_IPAM_ANNOTATION]).has(address);
}

function leaks(facts: EndpointFacts, owners: Owners, allocations: Allocations): readonly EndpointProblem[] {
  const networks = new Set(facts.profiles.filter(isOfNetwork).map(({ metadata }) => metadata.name));
  const byPod = new Map(facts.endpoints.map((endpoint) => [podOf(endpoint), endpoint]));
  const isSettled = ({ secondary }: Allocation) =>
    facts.now.getTime() - Date.parse(secondary["timestamp"] ?? "") >= facts.graceMilliseconds;
  return facts.allocations.flatMap((allocation): EndpointProblem[] => {
    const address = formatAddress(allocation.address);
    const { pod, namespace, [NETWORK_ATTRIBUTE]: network } = allocation.secondary;
    if (network === undefined || !networks.has(network) || owners.has(address) || !isSettled(allocation)) return [];
    if (isWaiting({ handleId: allocation.handle, secondary: allocation.secondary })) return [];
    const successor = pod === undefined ? undefined : byPod.get(`${namespace}/${pod}`);
    const theirs = successor ? addressesOfEndpoint(successor).map((each) => allocations.get(formatAddress(each))) : [];
    if (!theirs.every((each) => each === undefined || isSettled(each))) return [];
    const message = `Address ${address} is allocated to handle "${allocation.handle ?? ""}", which has no endpoint`;
    return [{ kind: "allocation-without-endpoint", severity: "unfinished", message, address, leaked: allocation }];
  });
}

/** As the CNI plugin writes it: it applies the network's name as a label. */
function isOfNetwork({ metadata, spec }: Profile): boolean {
  return spec.labelsToApply?.[metadata.name] === "";
}

function podOf({ metadata, spec }: WorkloadEndpoint): string {
  return `${metadata.namespace}/${spec.pod}`;
}
