/** What makes a pool unusable, without the schema of its kind: also the path of an ADD asks. Pure. */
import type { Family } from "../ip/address.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixesOverlap } from "../ip/prefix.ts";
import { BLOCK_SIZES, type BlockSizeLimits } from "./block-sizes.ts";
import type { Problem } from "./problem.ts";

/** Ranges whose addresses workloads cannot use. */
export const UNUSABLE_RANGES = [
  ["127.0.0.0/8", "loopback"],
  ["169.254.0.0/16", "link-local"],
  ["224.0.0.0/4", "multicast"],
  ["::1/128", "loopback"],
  ["fe80::/10", "link-local"],
  ["ff00::/8", "multicast"],
] as const;

/** Texts alone: the rules of the CRD have the same ones, with expressions for the values. */
export const POOL_MESSAGES = {
  range: (meaning: string, range: string) =>
    `overlaps the ${meaning} range ${range}; use a CIDR that does not overlap it`,
  blockSize: (family: Family, { shortest, longest }: BlockSizeLimits) =>
    `is out of range for IPv${family}; use ${shortest} to ${longest}`,
  largeBlock: (cidr: string, least: string | number, longest: number) =>
    `makes a block larger than the pool ${cidr}; use ${least} to ${longest}, or a larger pool`,
  ipipFamily: 'is not supported for IPv6; use "Never", or vxlanMode',
  twoTunnels: (vxlanMode: string) => `cannot be combined with vxlanMode ${vxlanMode}; set one of the two to "Never"`,
  /** `before`: empty, or "from" and the former value. */
  fixed: (before: string) => `cannot be changed${before}; create another pool and disable this one`,
} as const;

interface CheckedFields {
  readonly blockSize: number;
  readonly ipipMode: string;
  readonly vxlanMode: string;
}

export function checkPool(cidr: Prefix, spec: CheckedFields): readonly Problem[] {
  return [...checkRange(cidr), ...checkBlockSize(cidr, spec.blockSize), ...checkTunnels(cidr, spec)];
}

/** `spec.blockSize 64 is out of range …`: why nothing is assigned from a stored pool that nobody refused; `undefined` if it may be. */
export function whyPoolUnusable(cidr: Prefix, spec: CheckedFields): string | undefined {
  const [problem] = checkPool(cidr, spec);
  return problem && `${problem.path} ${problem.value} ${problem.message}`;
}

function checkRange(cidr: Prefix): readonly Problem[] {
  return UNUSABLE_RANGES.filter(([range]) => prefixesOverlap(cidr, parsePrefix(range) ?? cidr)).map(
    ([range, meaning]) => ({
      path: "spec.cidr",
      value: formatPrefix(cidr),
      message: POOL_MESSAGES.range(meaning, range),
    }),
  );
}

function checkBlockSize(prefix: Prefix, blockSize: number): readonly Problem[] {
  const { network, length } = prefix;
  const cidr = formatPrefix(prefix);
  const sizes = BLOCK_SIZES[network.family];
  const { shortest, longest } = sizes;
  const problem = (message: string): Problem[] => [{ path: "spec.blockSize", value: blockSize, message }];

  if (blockSize < shortest || blockSize > longest) {
    return problem(POOL_MESSAGES.blockSize(network.family, sizes));
  }
  if (blockSize >= length) return [];
  return length <= longest
    ? problem(POOL_MESSAGES.largeBlock(cidr, Math.max(length, shortest), longest))
    : problem(`makes a block larger than the pool ${cidr}; use a larger pool`);
}

function checkTunnels({ network }: Prefix, { ipipMode, vxlanMode }: CheckedFields): readonly Problem[] {
  if (ipipMode === "Never") return [];
  const problem = (message: string): Problem => ({ path: "spec.ipipMode", value: ipipMode, message });
  return [
    ...(network.family === 6 ? [problem(POOL_MESSAGES.ipipFamily)] : []),
    ...(vxlanMode !== "Never" ? [problem(POOL_MESSAGES.twoTunnels(vxlanMode))] : []),
  ];
}
