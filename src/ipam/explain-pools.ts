/**
 * Which source decides from which pools an address comes, which sources it
 * overrides, and why the other pools are passed over: the allocator's own decision
 * (address-requests.ts, pools.ts), told to people. Pure.
 */
import { PluginError } from "../errors.ts";
import { type Family, formatAddress } from "../ip/address.ts";
import { formatPrefix, prefixContains } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { type ListedRequest, type ListRequest, requestsOfList } from "./assign/listed-address.ts";
import {
  choosePools,
  type PodNamespace,
  type Pool,
  type PoolCriteria,
  poolHolding,
  poolNamed,
  whyNotAllowed,
  whyNotOfNamespace,
  whyNotSelected,
  whyNotUsable,
} from "./pools.ts";
import type { AddressList } from "./records.ts";
import type { AddressRequest } from "./request.ts";

/** Something that asks for addresses or pools. */
export interface RequestSource {
  /** `annotation "…/ipv4pools" of pod "default/web"`; as in the request that it leads to. */
  readonly place: string;
  /** As it is written. */
  readonly value: string;
}

export interface ExplainedPool {
  readonly name: string;
  readonly cidr: string;
  /** Why it is passed over; absent if addresses may come from it. */
  readonly passedOver?: string;
  /** Seconds for which its released addresses rest, if the pool says so itself. */
  readonly cooldownSeconds?: number;
}

export interface ExplainedRequest {
  readonly family: Family;
  /** The annotation that asks for the family; absent: the network config does, or who asks for an address of it. */
  readonly familyBy?: string;
  readonly decidedBy: RequestSource;
  /** In the order of their precedence. */
  readonly overridden: readonly RequestSource[];
  /** Those of the family; those that may be used come first, in the order in which they are tried. */
  readonly pools: readonly ExplainedPool[];
  /** Why no address can be assigned; absent if one can. */
  readonly problem?: string;
}

/** The last source: it decides if no other asks for anything. */
const NODE_SELECTORS: RequestSource = { place: "node and namespace selectors of the pools", value: "" };

export interface Surroundings {
  readonly pools: readonly Pool[];
  /** What asks for addresses of this family, highest precedence first. */
  readonly sources: readonly RequestSource[];
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Of the pod; absent: a container without a pod. */
  readonly namespace?: PodNamespace | undefined;
  /** The place of pools that a request has no place for. */
  readonly configPlace: string;
}

/** What asks for one address, of any pool or of a given one. */
type PoolRequest = Exclude<AddressRequest, { kind: "listed" }>;

/** `list`: the one that the request names. */
export function explainList(
  request: ListRequest,
  list: AddressList | undefined,
  surroundings: Omit<Surroundings, "sources" | "configPlace">,
): readonly ExplainedRequest[] {
  return requestsOfList(request, list).map((listed) => explainListed(listed, surroundings));
}

function explainListed(
  { family, addresses, list, request }: ListedRequest,
  { pools, namespace }: Omit<Surroundings, "sources" | "configPlace">,
): ExplainedRequest {
  const holds = (pool: Pool) => addresses.some((address) => prefixContains(pool.cidr, address));
  const ofFamily = pools.filter(({ cidr }) => cidr.network.family === family);
  const why = (pool: Pool) =>
    holds(pool) ? whyNotUsable(pool) : `no address of IPAddressList ${quoted(request.list)} is in it`;
  const [usable, others] = [true, false].map((isUsable) =>
    ofFamily.filter((pool) => (why(pool) === undefined) === isUsable),
  );
  const refused = list.namespaces && whyNotOfNamespace(list.namespaces, namespace);
  return {
    family,
    decidedBy: { place: request.place, value: request.list },
    overridden: [],
    pools: [...(usable ?? []), ...(others ?? [])].map((pool) => shown(pool, why(pool))),
    ...(refused === undefined ? {} : { problem: `Cannot use IPAddressList ${quoted(request.list)}: ${refused}` }),
  };
}

export function explainRequest(
  addressRequest: PoolRequest,
  { pools, sources, node, labels, namespace, configPlace }: Surroundings,
): ExplainedRequest {
  const family = addressRequest.kind === "given" ? addressRequest.address.family : addressRequest.family;
  const all = [...sources, NODE_SELECTORS];
  const place = decidingPlace(addressRequest, configPlace);
  const decidedBy = all.find((source) => source.place === place) ?? NODE_SELECTORS;
  const overridden = all.slice(all.indexOf(decidedBy) + 1).filter((source) => source !== NODE_SELECTORS);
  const criteria: PoolCriteria = {
    family,
    familyPlace: addressRequest.kind === "automatic" ? addressRequest.familyPlace : undefined,
    asked: addressRequest.pools,
    place: addressRequest.poolsPlace,
    intendedUse: "Workload",
    node,
    labels,
    namespace,
  };
  const { usable, problem } = usablePools(pools, addressRequest, criteria);
  const others = pools.filter((pool) => pool.cidr.network.family === family && !usable.includes(pool));
  const why = (pool: Pool) => whyPassedOver(pool, addressRequest, { criteria, place });
  return {
    family,
    ...(criteria.familyPlace === undefined ? {} : { familyBy: criteria.familyPlace }),
    decidedBy,
    overridden,
    pools: [...usable.map((pool) => shown(pool)), ...others.map((pool) => shown(pool, why(pool)))],
    ...(problem === undefined ? {} : { problem }),
  };
}

function decidingPlace(addressRequest: PoolRequest, configPlace: string): string {
  if (addressRequest.kind === "given" && addressRequest.place !== undefined) return addressRequest.place;
  if (addressRequest.pools === undefined) return NODE_SELECTORS.place;
  return addressRequest.poolsPlace ?? configPlace;
}

function usablePools(
  pools: readonly Pool[],
  addressRequest: PoolRequest,
  criteria: PoolCriteria,
): { readonly usable: readonly Pool[]; readonly problem?: string } {
  try {
    if (addressRequest.kind === "automatic") return { usable: choosePools(pools, criteria) };
    return { usable: [poolHolding(pools, addressRequest.address, criteria)] };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return { usable: [], problem: failure.message };
  }
}

function whyPassedOver(
  pool: Pool,
  addressRequest: PoolRequest,
  { criteria, place }: { readonly criteria: PoolCriteria; readonly place: string },
): string {
  if (addressRequest.kind === "given") {
    return whyNotUsable(pool) ?? `it does not contain ${formatAddress(addressRequest.address)}`;
  }
  const isListed = addressRequest.pools?.some((text) => poolNamed([pool], text) !== undefined) ?? false;
  if (addressRequest.pools !== undefined && !isListed) return `it is not listed in ${place}`;
  const ignored = addressRequest.pools === undefined ? whyNotSelected(pool, criteria) : whyNotUsable(pool);
  return ignored ?? whyNotAllowed(pool, criteria) ?? "another requested pool cannot be used";
}

function shown({ name, cidr, cooldownSeconds }: Pool, passedOver?: string): ExplainedPool {
  return {
    name,
    cidr: formatPrefix(cidr),
    ...(passedOver === undefined ? {} : { passedOver }),
    ...(cooldownSeconds === undefined ? {} : { cooldownSeconds }),
  };
}
