/** Releases what is recorded for containers of this host that no longer exist. */
import { counted } from "../counted.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { type Allocator, openAllocator } from "../ipam/allocator.ts";
import { datastoreTime } from "../ipam/allocator-means.ts";
import { ADOPT_COMMAND } from "../ipam/cluster-identity.ts";
import { recordsThisCluster } from "../ipam/confirm-cluster.ts";
import { describeNodeAllocation } from "../ipam/leaks/allocations.ts";
import { forgetBorrowings } from "../ipam/leaks/borrowings.ts";
import { surplusBlocks } from "../ipam/leaks/find.ts";
import { releaseKept } from "../ipam/leaks/free-kept.ts";
import { releaseLeaks, releaseSurplus } from "../ipam/leaks/release.ts";
import {
  describeKept,
  type EndedAddress,
  isWaitingAllocation,
  judgeWaiting,
  keptIn,
  UNKNOWN_OWNERS,
} from "../ipam/leaks/waiting-addresses.ts";
import { deleteUnneededBlock, isEmptyWithoutNode, isUnneededBlock } from "../ipam/release/block-after-release.ts";
import type { KubeClient } from "../kube/api.ts";
import { type LiveObjects, liveObjects } from "../kube/live-objects.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { type HostSearch, readRecords, type SearchMeans, searchHost } from "./host-leaks.ts";
import type { HostMeans } from "./host-means.ts";

interface Collection extends Omit<HostSearch, "openObjects"> {
  readonly isDryRun: boolean;
  /** `undefined` if no access to the orchestrator's API is configured. */
  readonly openApi: () => Promise<KubeClient | undefined>;
}

export interface CollectMeans extends SearchMeans, Pick<HostMeans, "warn"> {
  /** Removes what the host tracks of connections of these addresses, which have no link any more. */
  readonly forgetConnections: (addresses: readonly Address[]) => Promise<void>;
  /** A number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
  wait(milliseconds: number): Promise<void>;
}

export interface Collected {
  readonly node: string;
  readonly isDryRun: boolean;
  readonly leaks: readonly { readonly address: string; readonly text: string; readonly reason: string }[];
  readonly released: readonly string[];
  readonly blocks: readonly string[];
  /** Addresses that have waited for a pod or a container for longer than their keepFor. */
  readonly waited: readonly { readonly text: string; readonly reason: string; readonly isFreed: boolean }[];
  /** How many addresses look leaked, but may be another machine's. */
  readonly unjudged: number;
  /** Why some were not judged. */
  readonly failure?: unknown;
}

/** What was found and done, a line each, and how much in the last. */
export function describeCollected({ node, isDryRun, leaks, released, blocks, waited }: Collected): readonly string[] {
  const done = new Set(released);
  const stateOf = (address: string) =>
    isDryRun ? "would release" : done.has(address) ? "released" : "kept, since it has changed";
  const count = counted(leaks.length, "leaked address", "leaked addresses");
  return [
    ...leaks.map(({ address, text, reason }) => `${stateOf(address)} ${text}: ${reason}`),
    ...blocks.map((block) => `${isDryRun ? "would give back" : "gave back"} block ${block}: it is empty`),
    ...waited.map(({ text, reason, isFreed }) => {
      const state = isDryRun ? "would free" : isFreed ? "freed" : "kept, since it has changed";
      return `${state} ${text}: ${reason}`;
    }),
    `Node "${node}": ${count}, ${counted(blocks.length, "surplus block")}`,
  ];
}

/** Fails if the node may be another machine's. */
export async function collectLeaks(
  store: Datastore,
  { node, isEmbedded, links, earlier, claims, isDryRun, openApi }: Collection,
  means: CollectMeans,
): Promise<Collected> {
  const openObjects = () => openObjectsOf(store, openApi, means);
  const { records, leaks, endpoints, unjudged, failure } = await searchHost(
    store,
    { node, isEmbedded, links, earlier, claims, openObjects },
    means,
  );
  const allocator = openAllocator(store, {
    now: () => means.now(),
    random: () => means.random(),
    wait: (milliseconds) => means.wait(milliseconds),
  });
  const released = isDryRun
    ? []
    : await releaseLeaks(leaks, { endpoints }, { store, allocator, forget: means.forgetConnections });
  const now = datastoreTime(store, means);
  const waited = await endWaiting(records.blocks, { allocator, openApi, isDryRun, now });
  const after = released.length + waited.length === 0 ? records : await readRecords(store, { node, claims });
  const surplus = surplusBlocks(after, { node, now: datastoreTime(store, means) });
  if (!isDryRun) {
    for (const { cidr } of after.otherBlocks) {
      await deleteUnneededBlock(store, cidr, (block) => isUnneededBlock(block, datastoreTime(store, means)));
    }
    // The record leads to a block without a node until its addresses have rested.
    await forgetBorrowings(store, node, { isNeeded: isEmptyWithoutNode, borrowings: await claims?.borrowings() });
    await releaseSurplus(surplus, { node, allocator });
  }
  return {
    node,
    isDryRun,
    leaks: leaks.map(({ allocation, reason }) => ({
      address: formatAddress(allocation.address),
      text: describeNodeAllocation(allocation),
      reason,
    })),
    released: released.map(formatAddress),
    blocks: surplus.map(({ cidr }) => formatPrefix(cidr)),
    waited,
    unjudged,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** In a cluster the controllers look after those of pods. */
async function endWaiting(
  blocks: readonly IPAMBlock[],
  {
    allocator,
    openApi,
    isDryRun,
    now,
  }: Pick<Collection, "openApi" | "isDryRun"> & { readonly allocator: Allocator; readonly now: Date },
): Promise<Collected["waited"]> {
  const view = { podAt: () => undefined, podsOfMachine: () => [], ...UNKNOWN_OWNERS };
  const over = blocks.flatMap(keptIn).flatMap((allocation) => {
    const verdict = isWaitingAllocation(allocation) ? judgeWaiting(allocation, view, now) : WANTED;
    return "reason" in verdict ? [{ allocation, verdict }] : [];
  });
  const isOfPod = ({ allocation }: EndedAddress) => allocation.kept.pod !== undefined;
  const isCluster = over.some(isOfPod) && (await openApi()) !== undefined;
  const ended: Collected["waited"][number][] = [];
  for (const each of over) {
    if (isCluster && isOfPod(each)) continue;
    const isFreed = !isDryRun && (await releaseKept(each.allocation, allocator));
    ended.push({ text: describeKept(each.allocation), reason: each.verdict.reason, isFreed });
  }
  return ended;
}

const WANTED = { kind: "wanted" } as const;

/** Only those of the cluster that the datastore is recorded for: another one does not know its pods. */
async function openObjectsOf(
  store: Datastore,
  openApi: () => Promise<KubeClient | undefined>,
  { warn }: Pick<HostMeans, "warn">,
): Promise<LiveObjects | undefined> {
  const client = await openApi();
  const objects = client && liveObjects(client);
  if (objects === undefined || (await recordsThisCluster({ store, ...objects }))) return objects;
  const reason = "the datastore does not record that it belongs to this cluster";
  warn(
    `Does not ask the orchestrator about pods: ${reason}. The controllers record it, or confirm it: ${ADOPT_COMMAND}`,
  );
  return undefined;
}
