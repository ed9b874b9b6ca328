/**
 * IPPool: a range of addresses for workloads and tunnels, divided into blocks of
 * equal size.
 */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { addressBits } from "../ip/address.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixesOverlap } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { BLOCK_SIZES, defaultBlockSize } from "./block-sizes.ts";
import { prefixField, selectorField } from "./fields.ts";
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

/** Ranges whose addresses workloads cannot use. */
export const UNUSABLE_RANGES = [
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local"],
  ["224.0.0.0/4", "multicast"],
  ["::1/128", "loopback"],
  ["fe80::/10", "link-local"],
  ["ff00::/8", "multicast"],
] as const;

export const ipPool = defineResource({
  kind: "IPPool",
  api: PRODUCT_API,
  namespaced: false,
  spec: specSchema,
  complete: completeSpec,
  check: (spec) => [...checkRange(spec), ...checkBlockSize(spec), ...checkTunnels(spec)],
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
    .map((other) => ({
      path: "spec.cidr",
      value: pool.spec.cidr,
      message: `overlaps pool "${other.metadata.name}" (${other.spec.cidr}); use a CIDR that does not overlap it`,
    }));
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

function checkRange({ cidr }: IPPoolSpec): readonly Problem[] {
  return UNUSABLE_RANGES.filter(([range]) => prefixesOverlap(prefixOf(cidr), prefixOf(range))).map(
    ([range, meaning]) => ({
      path: "spec.cidr",
      value: cidr,
      message: `overlaps the ${meaning} range ${range}; use a CIDR that does not overlap it`,
    }),
  );
}

function checkBlockSize({ cidr, blockSize }: IPPoolSpec): readonly Problem[] {
  const { network, length } = prefixOf(cidr);
  const { shortest, longest } = BLOCK_SIZES[network.family];
  const problem = (message: string): Problem[] => [{ path: "spec.blockSize", value: blockSize, message }];

  if (blockSize < shortest || blockSize > longest) {
    return problem(`is out of range for IPv${network.family}; use ${shortest} to ${longest}`);
  }
  if (blockSize >= length) return [];
  return length <= longest
    ? problem(
        `makes a block larger than the pool ${cidr}; use ${Math.max(length, shortest)} to ${longest}, or a larger pool`,
      )
    : problem(`makes a block larger than the pool ${cidr}; use a larger pool`);
}

function checkTunnels({ cidr, ipipMode, vxlanMode }: IPPoolSpec): readonly Problem[] {
  if (ipipMode === "Never") return [];
  const problem = (message: string): Problem => ({ path: "spec.ipipMode", value: ipipMode, message });
  const isIpv6 = addressBits(prefixOf(cidr).network.family) === 128;
  return [
    ...(isIpv6 ? [problem('is not supported for IPv6; use "Never", or vxlanMode')] : []),
    ...(vxlanMode !== "Never"
      ? [problem(`cannot be combined with vxlanMode ${vxlanMode}; set one of the two to "Never"`)]
      : []),
  ];
}

function prefixOf(cidr: string): Prefix {
  const prefix = parsePrefix(cidr);
  if (!prefix) throw new RangeError(`Cannot use pool CIDR "${cidr}": it was not decoded`);
  return prefix;
}
