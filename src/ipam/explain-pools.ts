/**
 * Which source decides from which pools an address comes, which sources it
 * overrides, and why the other pools are passed over: the allocator's own decision
 * (wishes.ts, pools.ts), told to people. Pure.
 */
import { PluginError } from "../errors.ts";
import { type Family, formatAddress } from "../ip/address.ts";
import { formatPrefix } from "../ip/prefix.ts";
import {
  choosePools,
  type Pool,
  type PoolWish,
  poolHolding,
  poolNamed,
  whyNotAllowed,
  whyNotSelected,
  whyNotUsable,
} from "./pools.ts";
import type { Wish } from "./request.ts";

/** Something that asks for addresses or pools. */
export interface RequestSource {
  /** `annotation "…/ipv4pools" of pod "default/web"`; as in the wish that it leads to. */
  readonly place: string;
  /** As it is written. */
  readonly value: string;
}

export interface ExplainedPool {
  readonly name: string;
  readonly cidr: string;
  /** Why it is passed over; absent if addresses may come from it. */
  readonly passedOver?: string;
}

export interface ExplainedWish {
  readonly family: Family;
  readonly decidedBy: RequestSource;
  /** In the order of their precedence. */
  readonly overridden: readonly RequestSource[];
  /** Those of the family; those that may be used come first, in the order in which they are tried. */
  readonly pools: readonly ExplainedPool[];
  /** Why no address can be assigned; absent if one can. */
  readonly problem?: string;
}

/** The last source: it decides if no other asks for anything. */
const NODE_SELECTORS: RequestSource = { place: "node selectors of the pools", value: "" };

export interface Surroundings {
  readonly pools: readonly Pool[];
  /** What asks for addresses of this family, highest precedence first. */
  readonly sources: readonly RequestSource[];
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The place of pools that a wish has no place for. */
  readonly configPlace: string;
}

export function explainWish(wish: Wish, { pools, sources, node, labels, configPlace }: Surroundings): ExplainedWish {
  const family = wish.kind === "given" ? wish.address.family : wish.family;
  const all = [...sources, NODE_SELECTORS];
  const place = decidingPlace(wish, configPlace);
  const decidedBy = all.find((source) => source.place === place) ?? NODE_SELECTORS;
  const overridden = all.slice(all.indexOf(decidedBy) + 1).filter((source) => source !== NODE_SELECTORS);
  const poolWish: PoolWish = {
    family,
    asked: wish.pools,
    place: wish.poolsPlace,
    intendedUse: "Workload",
    node,
    labels,
  };
  const { usable, problem } = usablePools(pools, wish, poolWish);
  const others = pools.filter((pool) => pool.cidr.network.family === family && !usable.includes(pool));
  const why = (pool: Pool) => whyPassedOver(pool, wish, { poolWish, place });
  return {
    family,
    decidedBy,
    overridden,
    pools: [...usable.map((pool) => shown(pool)), ...others.map((pool) => shown(pool, why(pool)))],
    ...(problem === undefined ? {} : { problem }),
  };
}

function decidingPlace(wish: Wish, configPlace: string): string {
  if (wish.kind === "given" && wish.place !== undefined) return wish.place;
  if (wish.pools === undefined) return NODE_SELECTORS.place;
  return wish.poolsPlace ?? configPlace;
}

function usablePools(
  pools: readonly Pool[],
  wish: Wish,
  poolWish: PoolWish,
): { readonly usable: readonly Pool[]; readonly problem?: string } {
  try {
    if (wish.kind === "automatic") return { usable: choosePools(pools, poolWish) };
    return { usable: [poolHolding(pools, wish.address, poolWish)] };
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return { usable: [], problem: failure.message };
  }
}

function whyPassedOver(
  pool: Pool,
  wish: Wish,
  { poolWish, place }: { readonly poolWish: PoolWish; readonly place: string },
): string {
  if (wish.kind === "given") {
    return whyNotUsable(pool) ?? `it does not contain ${formatAddress(wish.address)}`;
  }
  const isListed = wish.pools?.some((text) => poolNamed([pool], text) !== undefined) ?? false;
  if (wish.pools !== undefined && !isListed) return `it is not listed in ${place}`;
  const ignored = wish.pools === undefined ? whyNotSelected(pool, poolWish) : whyNotUsable(pool);
  return ignored ?? whyNotAllowed(pool, poolWish) ?? "another requested pool cannot be used";
}

function shown({ name, cidr }: Pool, passedOver?: string): ExplainedPool {
  return { name, cidr: formatPrefix(cidr), ...(passedOver === undefined ? {} : { passedOver }) };
}
