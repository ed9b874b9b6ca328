/** The addresses that `ipam check` lists: all in use, or those with a problem. Pure. */
import { compareAddresses, formatAddress, parseAddress } from "../../../ip/address.ts";
import { type Allocation, describeAllocation } from "../blocks.ts";

export interface ListedAddress {
  readonly address: string;
  /** "in use", or the kinds of its findings. */
  readonly state: string;
  readonly owner: string;
}

interface AddressFinding {
  readonly kind: string;
  readonly address?: string;
}

export function listedAddresses(
  allocations: readonly Allocation[],
  findings: readonly AddressFinding[],
  shown: "all" | "problems" | "none",
): readonly ListedAddress[] {
  if (shown === "none") return [];
  const problems = Map.groupBy(
    findings.filter(({ address }) => address !== undefined),
    ({ address }) => address ?? "",
  );
  const owners = new Map(allocations.map((each) => [formatAddress(each.address), describeAllocation(each)]));
  const addresses = shown === "all" ? new Set([...owners.keys(), ...problems.keys()]) : new Set(problems.keys());
  return [...addresses].toSorted(byAddress).map((address) => ({
    address,
    state:
      problems
        .get(address)
        ?.map(({ kind }) => kind)
        .join(", ") ?? "in use",
    owner: owners.get(address) ?? "(not allocated)",
  }));
}

function byAddress(left: string, right: string): number {
  const [first, second] = [parseAddress(left), parseAddress(right)];
  return first === undefined || second === undefined ? 0 : compareAddresses(first, second);
}
