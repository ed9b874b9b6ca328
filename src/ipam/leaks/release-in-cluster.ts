/**
 * Releases what a search in the whole cluster has found. The search may have seen an old state: everything is judged again
 * by what API and datastore say now, and the writes are guarded by what was judged.
 */
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { blockKey } from "../../model/keys.ts";
import type { Allocator } from "../allocator.ts";
import type { NodeAllocation } from "./allocations.ts";
import { forgetBorrowings } from "./borrowings.ts";
import { type LeakCandidate, unusedReason } from "./candidates.ts";
import type { ClusterRecords, GoneNode } from "./cluster-records.ts";
import type { SurplusBlock } from "./empty-blocks.ts";
import { surplusBlocks } from "./find.ts";
import { blocksOfNode, endpointsOf, isUnchanged, type LiveMeans, liveNodeName, liveView } from "./live-view.ts";
import { releaseLeaks } from "./release.ts";

export interface ClusterReleaseMeans extends LiveMeans {
  readonly allocator: Allocator;
  /** The time of the datastore. */
  readonly datastoreNow: () => Date;
  /** Whether endpoints are records of their own. On the orchestrator's API an endpoint is its pod, and not ours to change. */
  readonly hasEndpointRecords: boolean;
  /** Asked before each write. */
  readonly mayWrite: () => boolean;
}

export type CandidateOutcome =
  | { readonly kind: "released"; readonly released: readonly NodeAllocation[]; readonly reason: string }
  | { readonly kind: "kept"; readonly reason: string };

/** All addresses of the handle, or none. */
export async function releaseCandidate(
  candidate: LeakCandidate,
  means: ClusterReleaseMeans,
): Promise<CandidateOutcome> {
  const { allocations, isNodeGone } = candidate;
  const { store, allocator, mayWrite } = means;
  const endpoints = await endpointsOf(allocations, store);
  const leak = unusedReason(allocations, await liveView(allocations, endpoints, means));
  if (leak === undefined) return { kind: "kept", reason: "it is in use by now" };
  if (isNodeGone && !leak.isNodeGone) return { kind: "kept", reason: "its node exists again" };
  // The other reason may be of this moment: a pod that was just evicted still runs.
  if (leak.reason !== candidate.reason) return { kind: "kept", reason: `by now the reason is another: ${leak.reason}` };
  if (!(await isUnchanged(candidate, store))) return { kind: "kept", reason: CHANGED };
  if (!mayWrite()) return { kind: "kept", reason: "another process writes by now" };
  const leaks = allocations.map((allocation) => ({ allocation, reason: leak.reason }));
  const addresses = await releaseLeaks(
    leaks,
    { endpoints: means.hasEndpointRecords ? endpoints : new Map() },
    // The connections are tracked on a node; its agent forgets them when it assigns the address again.
    { store, allocator, forget: async () => {}, rule: "all or none" },
  );
  const texts = new Set(addresses.map(formatAddress));
  const released = allocations.filter(({ address }) => texts.has(formatAddress(address)));
  return released.length === 0
    ? { kind: "kept", reason: CHANGED }
    : { kind: "released", released, reason: leak.reason };
}

const CHANGED = "it was released or assigned again in the meantime";

/** `true` if the block was released; `false` if it is not surplus any more. */
export async function releaseSurplusBlock(
  { node, block: { cidr } }: SurplusBlock,
  { pools }: Pick<ClusterRecords, "pools">,
  { store, allocator, datastoreNow, mayWrite }: ClusterReleaseMeans,
): Promise<boolean> {
  const blocks = await blocksOfNode(store, node);
  const surplus = surplusBlocks({ pools, blocks }, { node, now: datastoreNow() });
  if (!surplus.some((block) => blockKey(block.cidr) === blockKey(cidr)) || !mayWrite()) return false;
  return (await allocator.releaseAffinity({ node, block: cidr, inUse: "keep" })) === "released";
}

export interface LeftOfNode {
  /** Blocks whose claims were released. */
  readonly blocks: readonly string[];
  /** Names of deleted endpoints. */
  readonly endpoints: readonly string[];
}

/** Claims, endpoints and records of borrowed blocks; `undefined` if the node exists. */
export async function releaseGoneNode(
  { node, claims, endpoints }: GoneNode,
  means: ClusterReleaseMeans,
): Promise<LeftOfNode | undefined> {
  const { store, allocator, mayWrite } = means;
  if ((await liveNodeName(node, means)) !== undefined) return undefined;
  const blocks: string[] = [];
  for (const { cidr } of claims) {
    if (!mayWrite()) break;
    const outcome = await allocator.releaseAffinity({ node, block: cidr, inUse: "release" });
    if (outcome === "released") blocks.push(formatPrefix(cidr));
  }
  const deleted: string[] = [];
  for (const { key, revision } of endpoints) {
    if (!mayWrite()) break;
    const { ok } = await store.commit([{ kind: "delete", key, revision }]);
    if (ok) deleted.push(key.slice(key.lastIndexOf("/") + 1));
  }
  if (mayWrite()) await forgetBorrowings(store, node);
  return { blocks, endpoints: deleted };
}
