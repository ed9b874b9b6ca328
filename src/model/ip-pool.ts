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
import { prefixField, selectorField } from "./fields.ts";
import { checkPool } from "./pool-checks.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

const tunnelMode = v.optional(v.picklist(["Never", "Always", "CrossSubnet"]), "Never");

const specSchema = v.object({
  cidr: prefixField,
  ipipMode: tunnelMode,
  vxlanMode: tunnelMode,
  natOutgoing: v.optional(v.boolean(), false),
  nodeSelector: v.optional(selectorField, "all()"),
  /** The prefix length of a block. Its default depends on the family and the size of the pool. */
  blockSize: v.exactOptional(v.pipe(v.number(), v.integer("must be a whole number; use a prefix length"))),
  disabled: v.optional(v.boolean(), false),
  disableBGPExport: v.optional(v.boolean(), false),
  allowedUses: v.optional(v.array(v.picklist(["Workload", "Tunnel"])), ["Workload", "Tunnel"]),
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
      message: `cannot be changed from ${quoted(before.spec[field])}; create another pool and disable this one`,
    }));
}

/** A pool must not overlap another. */
export function checkPoolOverlap(pool: IPPool, all: readonly IPPool[]): readonly Problem[] {
  return all
    .filter((other) => other.metadata.name !== pool.metadata.name)
    .filter((other) => prefixesOverlap(poolPrefix(pool), poolPrefix(other)))
    .map((other) => overlap(pool, other));
}

/**
 * The overlaps of many pools: for each the first few in the order of the pools, and how many there are more. Sorted by
 * network, a pool follows all that cover it, and the covering ones follow each other.
 */
export function checkPoolOverlaps(all: readonly IPPool[]): ReadonlyMap<IPPool, readonly Problem[]> {
  const placed = all.map((pool, index) => ({ pool, index, prefix: poolPrefix(pool), overlaps: new FirstFew() }));
  const covering: typeof placed = [];
  for (const each of placed.toSorted((left, right) => comparePrefixes(left.prefix, right.prefix))) {
    for (let last = covering.at(-1); last && !prefixCovers(last.prefix, each.prefix); last = covering.at(-1)) {
      covering.pop();
    }
    for (const other of covering) {
      if (other.pool.metadata.name === each.pool.metadata.name) continue;
      other.overlaps.add(each.index);
      each.overlaps.add(other.index);
    }
    covering.push(each);
  }
  return new Map(
    placed.map(({ pool, overlaps: { first, count } }) => {
      const shown = first.flatMap((index) => all[index] ?? []).map((other) => overlap(pool, other));
      return [pool, count > first.length ? [...shown, moreOverlaps(pool, count - first.length)] : shown];
    }),
  );
}

/** The least of many numbers, and how many there are: of thousands of equal pools each overlaps all others. */
class FirstFew {
  readonly first: number[] = [];
  count = 0;
  private greatest = Number.POSITIVE_INFINITY;

  add(index: number): void {
    this.count += 1;
    if (index > this.greatest) return;
    this.first.push(index);
    this.first.sort((left, right) => left - right);
    this.first.length = Math.min(this.first.length, MOST_SHOWN);
    if (this.first.length === MOST_SHOWN) this.greatest = this.first.at(-1) ?? this.greatest;
  }
}

const MOST_SHOWN = 3;

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
  const { allowedUses } = spec;
  return {
    ...spec,
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
