/**
 * The report of `ipam check --report`, which `ipam release --from-report` reads.
 * Pure. Sequence numbers exceed 2^53, hence texts.
 */
import * as v from "valibot";
import { type Address, formatAddress, parseAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { GuardedAddress } from "../../ipam/request.ts";
import { NODE_ATTRIBUTE } from "../../model/ipam-block.ts";
import { type Allocation, describeAllocation } from "./blocks.ts";
import type { ClusterState } from "./cluster-state.ts";

const allocationSchema = v.object({
  block: v.string(),
  handle: v.exactOptional(v.string()),
  sequenceNumber: v.exactOptional(v.string()),
  node: v.exactOptional(v.string()),
  owner: v.string(),
  /** Why it is leaked; absent if it is not. */
  leaked: v.exactOptional(v.string()),
});

const reportSchema = v.object({
  /** Of the tool that wrote it. */
  version: v.string(),
  clusterGUID: v.string(),
  clusterType: v.string(),
  datastoreLocked: v.boolean(),
  clusterInformationRevision: v.string(),
  createdAt: v.string(),
  allocations: v.record(v.string(), v.array(allocationSchema)),
  /** Handles that no address belongs to. */
  leakedHandles: v.array(v.string()),
});

export type AddressReport = v.InferOutput<typeof reportSchema>;

export interface ReportedFacts {
  readonly version: string;
  readonly createdAt: Date;
  readonly cluster: ClusterState;
  readonly allocations: readonly Allocation[];
  /** By address: why it is leaked. */
  readonly leaked: ReadonlyMap<string, string>;
  readonly leakedHandles: readonly string[];
}

export function addressReport({ cluster, leaked, ...facts }: ReportedFacts): AddressReport {
  const allocations = new Map<string, v.InferOutput<typeof allocationSchema>[]>();
  for (const allocation of facts.allocations) {
    const address = formatAddress(allocation.address);
    const { handle, sequenceNumber, secondary } = allocation;
    const node = secondary[NODE_ATTRIBUTE];
    const reason = leaked.get(address);
    allocations.set(address, [
      ...(allocations.get(address) ?? []),
      {
        block: formatPrefix(allocation.block),
        ...(handle === undefined ? {} : { handle }),
        ...(sequenceNumber === undefined ? {} : { sequenceNumber: String(sequenceNumber) }),
        ...(node === undefined ? {} : { node }),
        owner: describeAllocation(allocation),
        ...(reason === undefined ? {} : { leaked: reason }),
      },
    ]);
  }
  return {
    version: facts.version,
    clusterGUID: cluster.clusterGUID,
    clusterType: cluster.clusterType,
    datastoreLocked: cluster.isLocked,
    clusterInformationRevision: cluster.revision,
    createdAt: facts.createdAt.toISOString(),
    allocations: Object.fromEntries(allocations),
    leakedHandles: [...facts.leakedHandles],
  };
}

/** `undefined` if it is not such a report. */
export function decodeAddressReport(value: unknown): AddressReport | undefined {
  const parsed = v.safeParse(reportSchema, value);
  return parsed.success ? parsed.output : undefined;
}

export interface ReportedLeaks {
  readonly addresses: readonly GuardedAddress[];
  readonly handles: readonly string[];
}

/** What is leaked in all of the reports: an address that was assigned again in between is not. */
export function leaksInAll(reports: readonly AddressReport[]): ReportedLeaks {
  const [first, ...others] = reports.map((report) => ({
    leaks: new Map(leaksIn(report).map((leak) => [leak.identity, leak.guarded])),
    handles: new Set(report.leakedHandles),
  }));
  if (first === undefined) return { addresses: [], handles: [] };
  return {
    addresses: [...first.leaks]
      .filter(([identity]) => others.every(({ leaks }) => leaks.has(identity)))
      .map(([, guarded]) => guarded),
    handles: [...first.handles].filter((handle) => others.every(({ handles }) => handles.has(handle))),
  };
}

function leaksIn({ allocations }: AddressReport) {
  return Object.entries(allocations).flatMap(([text, owners]) => {
    const address = parseAddress(text);
    if (address === undefined) return [];
    return owners
      .filter(({ leaked }) => leaked !== undefined)
      .map(({ handle, sequenceNumber }) => ({
        identity: JSON.stringify([text, handle, sequenceNumber]),
        guarded: guardedAddress(address, handle, sequenceNumber),
      }));
  });
}

function guardedAddress(
  address: Address,
  handle: string | undefined,
  sequenceNumber: string | undefined,
): GuardedAddress {
  return {
    address,
    ...(handle === undefined ? {} : { handle }),
    ...(sequenceNumber === undefined || !/^\d+$/.test(sequenceNumber)
      ? {}
      : { sequenceNumber: BigInt(sequenceNumber) }),
  };
}
