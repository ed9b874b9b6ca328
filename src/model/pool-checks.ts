/** What makes a pool unusable, without the schema of its kind: also the path of an ADD asks. Pure. */
import { formatPrefix, type Prefix, parsePrefix, prefixesOverlap } from "../ip/prefix.ts";
import { BLOCK_SIZES } from "./block-sizes.ts";
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
      message: `overlaps the ${meaning} range ${range}; use a CIDR that does not overlap it`,
    }),
  );
}

function checkBlockSize(prefix: Prefix, blockSize: number): readonly Problem[] {
  const { network, length } = prefix;
  const cidr = formatPrefix(prefix);
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

function checkTunnels({ network }: Prefix, { ipipMode, vxlanMode }: CheckedFields): readonly Problem[] {
  if (ipipMode === "Never") return [];
  const problem = (message: string): Problem => ({ path: "spec.ipipMode", value: ipipMode, message });
  return [
    ...(network.family === 6 ? [problem('is not supported for IPv6; use "Never", or vxlanMode')] : []),
    ...(vxlanMode !== "Never"
      ? [problem(`cannot be combined with vxlanMode ${vxlanMode}; set one of the two to "Never"`)]
      : []),
  ];
}
