/**
 * IPPool: a range of addresses for workloads and tunnels, divided into blocks of
 * equal size.
 */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import {
  comparePrefixes,
  formatPrefix,
  type Prefix,
  parsePrefix,
  prefixCovers,
  prefixesOverlap,
} from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { defaultBlockSize } from "./block-sizes.ts";
import { durationField } from "./duration-field.ts";
import { cooldownField, prefixField, selectorField } from "./fields.ts";
import { checkPool, POOL_MESSAGES } from "./pool-checks.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

const tunnelMode = v.optional(v.picklist(["Never", "Always", "CrossSubnet"]), "Never");

const specSchema = v.object({
  cidr: prefixField,
  ipipMode: tunnelMode,
  vxlanMode: tunnelMode,
  natOutgoing: v.optional(v.boolean(), false),
  nodeSelector: v.optional(selectorField, "all()"),
  /** Of the namespaces whose pods use the pool; absent: all, and containers without a pod. */
  namespaceSelector: v.exactOptional(selectorField),
  /** Pods get their addresses of the pool again after they were deleted and created again (kept-address.ts). */
  keepAddresses: v.exactOptional(v.boolean()),
  /** For how long such an address waits for its pod; absent: a day. */
  keepFor: v.exactOptional(durationField("24h")),
  /** The prefix length of a block. Its default depends on the family and the size of the pool. */
  blockSize: v.exactOptional(v.pipe(v.number(), v.integer("must be a whole number; use a prefix length"))),
  disabled: v.optional(v.boolean(), false),
  disableBGPExport: v.optional(v.boolean(), false),
  allowedUses: v.optional(v.array(v.picklist(["Workload", "Tunnel"])), ["Workload", "Tunnel"]),
  /** Absent: the default of the cluster. */
  cooldownSeconds: v.exactOptional(cooldownField),
});

export type IPPoolSpec = Readonly<v.InferOutput<typeof specSchema>> & { readonly blockSize: number };
export type IPPool = Resource<"IPPool", IPPoolSpec>;

export const ipPool = defineResource({
  kind: "IPPool",
  api: PRODUCT_API,
  namespaced: false,
  spec: specSchema,
  complete: completeSpec,
  check: (spec) => checkPool(prefixOf(spec.cidr), spec),
});

/** The pool's CIDR. A decoded pool always has one. */
export function poolPrefix(pool: { readonly spec: Pick<IPPoolSpec, "cidr"> }): Prefix {
  return prefixOf(pool.spec.cidr);
}

/** Checks the fields that cannot change, because blocks depend on them. */
export function checkPoolUpdate(before: IPPool, after: IPPool): readonly Problem[] {
  const fixed = ["cidr", "blockSize"] as const;
  return fixed
    .filter((field) => before.spec[field] !== after.spec[field])
    .map((field) => ({
      path: `spec.${field}`,
      value: after.spec[field],
      message: POOL_MESSAGES.fixed(` from ${quoted(before.spec[field])}`),
    }));
}

/** A pool must not overlap another. */
export function checkPoolOverlap(pool: IPPool, all: readonly IPPool[]): readonly Problem[] {
  return all
    .filter((other) => other.metadata.name !== pool.metadata.name)
    .filter((other) => prefixesOverlap(poolPrefix(pool), poolPrefix(other)))
    .map((other) => overlap(pool, other));
}

/** The overlaps of many pools: for each the first few in the order of the pools, and how many there are more. */
export function checkPoolOverlaps(all: readonly IPPool[]): ReadonlyMap<IPPool, readonly Problem[]> {
  const placed = all.map((pool, index) => ({ pool, index, name: pool.metadata.name, prefix: poolPrefix(pool) }));
  const overlaps = findOverlaps(placed);
  const ofSameName = [...Map.groupBy(placed, ({ name }) => name).values()].filter(({ length }) => length > 1);
  const same = new Map(ofSameName.flatMap((group) => [...findOverlaps(group)]));
  return new Map(
    placed.map((each) => {
      const { first = [], count = 0 } = overlaps.get(each) ?? {};
      const shown = first.filter(({ name }) => name !== each.name).slice(0, MOST_SHOWN);
      const more = count - (same.get(each)?.count ?? 0) - shown.length;
      const problems = shown.map((other) => overlap(each.pool, other.pool));
      return [each.pool, more > 0 ? [...problems, moreOverlaps(each.pool, more)] : problems];
    }),
  );
}

interface PlacedPool {
  readonly pool: IPPool;
  readonly index: number;
  readonly name: string;
  readonly prefix: Prefix;
}

interface Overlaps {
  /** Enough to show `MOST_SHOWN` of them without those of any one name. */
  readonly first: readonly PlacedPool[];
  readonly count: number;
}

/**
 * Sorted by network, a pool follows all that cover it, and the covering ones follow each other. Each hands on only the first
 * few and a count, because of thousands of equal pools each overlaps all others.
 */
function findOverlaps(pools: readonly PlacedPool[]): ReadonlyMap<PlacedPool, Overlaps> {
  const found = new Map<PlacedPool, Overlaps>();
  const covering: { readonly each: PlacedPool; readonly outside: Overlaps; inside: Overlaps }[] = [];
  const close = () => {
    const closed = covering.pop();
    if (closed === undefined) return;
    found.set(closed.each, together(closed.outside, closed.inside));
    const outer = covering.at(-1);
    if (outer !== undefined) outer.inside = together(outer.inside, together(only(closed.each), closed.inside));
  };
  for (const each of pools.toSorted((left, right) => comparePrefixes(left.prefix, right.prefix))) {
    for (let last = covering.at(-1); last && !prefixCovers(last.each.prefix, each.prefix); last = covering.at(-1))
      close();
    const outer = covering.at(-1);
    const outside = outer === undefined ? NO_OVERLAPS : together(outer.outside, only(outer.each));
    covering.push({ each, outside, inside: NO_OVERLAPS });
  }
  while (covering.length > 0) close();
  return found;
}

const MOST_SHOWN = 3;
const NO_OVERLAPS: Overlaps = { first: [], count: 0 };

function only(pool: PlacedPool): Overlaps {
  return { first: [pool], count: 1 };
}

function together(left: Overlaps, right: Overlaps): Overlaps {
  const counts = new Map<string, number>();
  const first = [...left.first, ...right.first]
    .sort((one, other) => one.index - other.index)
    .filter(({ name }) => {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return (counts.get(name) ?? 0) <= MOST_SHOWN;
    })
    .slice(0, 2 * MOST_SHOWN);
  return { first, count: left.count + right.count };
}

function moreOverlaps(pool: IPPool, count: number): Problem {
  return {
    path: "spec.cidr",
    value: pool.spec.cidr,
    message: `overlaps ${count} more ${count === 1 ? "pool" : "pools"}; use a CIDR that does not overlap ${count === 1 ? "it" : "them"}`,
  };
}

function overlap(pool: IPPool, other: IPPool): Problem {
  return {
    path: "spec.cidr",
    value: pool.spec.cidr,
    message: `overlaps pool "${other.metadata.name}" (${other.spec.cidr}); use a CIDR that does not overlap it`,
  };
}

function completeSpec(spec: v.InferOutput<typeof specSchema>): IPPoolSpec {
  const prefix = prefixOf(spec.cidr);
  const { allowedUses, namespaceSelector = "", ...others } = spec;
  return {
    ...others,
    ...(namespaceSelector.trim() === "" ? {} : { namespaceSelector }),
    cidr: formatPrefix(prefix),
    blockSize: spec.blockSize ?? defaultBlockSize(prefix),
    nodeSelector: spec.nodeSelector.trim() === "" ? "all()" : spec.nodeSelector,
    allowedUses: allowedUses.length === 0 ? ["Workload", "Tunnel"] : allowedUses,
  };
}

function prefixOf(cidr: string): Prefix {
  const prefix = parsePrefix(cidr);
  if (!prefix) throw new RangeError(`Cannot use pool CIDR "${cidr}": it was not decoded`);
  return prefix;
}
