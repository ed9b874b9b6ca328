/**
 * One search for leaks in the whole cluster, as the leak collection of the controllers does it; with an administrator's
 * word also on nodes that exist. It has no memory: the grace period counts from the time that the addresses were assigned.
 */

import { counted } from "../../../counted.ts";
import type { Datastore } from "../../../datastore/datastore.ts";
import { orchestratorMapping } from "../../../datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../../../datastore/kube/store.ts";
import { PluginError } from "../../../errors.ts";
import { formatAddress } from "../../../ip/address.ts";
import { formatPrefix } from "../../../ip/prefix.ts";
import { datastoreTime } from "../../../ipam/allocator-means.ts";
import { confirmCluster } from "../../../ipam/confirm-cluster.ts";
import type { NodeAllocation } from "../../../ipam/leaks/allocations.ts";
import { findCandidates, type LeakCandidate, sinceAssigned } from "../../../ipam/leaks/candidates.ts";
import { judge } from "../../../ipam/leaks/cluster-judge.ts";
import {
  allocationsOf,
  type ClusterRecords,
  type GoneNode,
  goneNodes,
  nodesIn,
  sharesOfGone,
} from "../../../ipam/leaks/cluster-records.ts";
import { surplusInCluster } from "../../../ipam/leaks/empty-blocks.ts";
import { type ReadCluster, readCluster } from "../../../ipam/leaks/read-cluster.ts";
import {
  type ClusterReleaseMeans,
  releaseCandidate,
  releaseGoneNode,
  releaseSurplusBlock,
} from "../../../ipam/leaks/release-in-cluster.ts";
import { decodeBlock, requirePrefix } from "../../../ipam/records.ts";
import { deleteUnneededBlock, isUnneededBlock } from "../../../ipam/release/block-after-release.ts";
import { isLargeRemoval, LARGE_SHARE } from "../../../ipam/removal-brake.ts";
import { longestRestLeft } from "../../../ipam/rest.ts";
import type { KubeClient } from "../../../kube/api.ts";
import { liveObjects } from "../../../kube/live-objects.ts";
import type { IPAMBlock } from "../../../model/ipam-block.ts";
import { blockKey } from "../../../model/keys.ts";
import type { Call, Clock, Terminal } from "../../main/context.ts";
import { allocatorFor } from "../allocator.ts";

/** An address that is kept for a pod is not free afterwards: it waits for its pod. */
export type State = "released" | "would release" | "waits" | "would wait" | "kept";

export interface JudgedAddress {
  readonly allocation: NodeAllocation;
  readonly state: State;
  readonly reason: string;
  /** Why it is kept though it looks leaked. */
  readonly kept?: string;
}

export interface JudgedBlock {
  readonly block: string;
  readonly node: string;
  readonly state: State;
  readonly reason: string;
}

export interface ClusterReport {
  readonly addresses: readonly JudgedAddress[];
  readonly blocks: readonly JudgedBlock[];
  /** How many addresses the orchestrator knows nothing about: the search of their own host judges them. */
  readonly unjudged: number;
  readonly unreadable: ReadCluster["unreadable"];
}

interface ClusterSearch {
  readonly store: Datastore;
  readonly client: KubeClient;
  readonly hasEndpointRecords: boolean;
  readonly graceMilliseconds: number;
  readonly isDryRun: boolean;
  /** Nodes that exist, and whose machines are off, as an administrator says. */
  readonly deadNodes: ReadonlySet<string>;
  /** The administrator has seen how many would be released. */
  readonly isLargeAllowed: boolean;
}

export async function searchCluster(search: ClusterSearch, context: Call & Terminal & Clock): Promise<ClusterReport> {
  const { store, client, hasEndpointRecords, graceMilliseconds } = search;
  const orchestrator = openKubeStore({ api: client, mappings: orchestratorMapping(), close: async () => {} });
  const objects = liveObjects(client);
  const sides = { store, orchestrator, hasNodeRecords: hasEndpointRecords, ...objects };
  const { problem } = await confirmCluster(sides, search.isDryRun ? "check" : "record");
  if (problem !== undefined) context.stderr(`${problem}\n`);
  const isDeclaredDead = (node: string) => search.deadNodes.has(node);
  const { records: read, unreadable } = await readCluster({ store, orchestrator, hasEndpointRecords });
  const records = { ...read, view: { ...read.view, isDeclaredDead } };
  const means: ClusterReleaseMeans = {
    store,
    allocator: allocatorFor(store, context),
    ...objects,
    isDeclaredDead,
    hasEndpointRecords,
    datastoreNow: () => datastoreTime(store, context),
    mayWrite: () => !context.signal.aborted,
  };
  const ageOf = (held: readonly NodeAllocation[]) => sinceAssigned(held, context.now());
  const all = allocationsOf(records);
  const addresses: JudgedAddress[] = [];
  const candidates = findCandidates(all, records.view, { graceMilliseconds, ageOf });
  if (!search.isDryRun && !search.isLargeAllowed) refuseLarge(candidates.filter(isReleased(search)), all, records);
  for (const candidate of candidates) {
    addresses.push(...(await judgeCandidate(candidate, search, means)));
  }
  const leaving = new Set(addresses.filter(({ state }) => state !== "kept").map(({ allocation }) => allocation));
  const left = all.filter((allocation) => !leaving.has(allocation));
  const now = means.datastoreNow();
  const blocks = [
    ...(await judgeSurplus(records, search, { ...means, now })),
    ...(await judgeGoneNodes(goneNodes(records, left), search, { ...means, now })),
  ];
  if (!search.isDryRun) {
    const isUnneeded = (block: IPAMBlock) => isUnneededBlock(block, now);
    for (const { cidr } of records.blocks.filter(isUnneeded)) await deleteUnneededBlock(store, cidr, isUnneeded);
  }
  const unjudged = all.filter((allocation) => judge(allocation, records.view).kind === "not judged").length;
  return { addresses, blocks, unjudged, unreadable };
}

function isReleased({ deadNodes }: ClusterSearch): (candidate: LeakCandidate) => boolean {
  return ({ isNodeGone, isOverdue, allocations }) =>
    isNodeGone || (isOverdue && allocations.every(({ node }) => deadNodes.has(node)));
}

/** Before anything is released: addresses, and claims and endpoints of nodes that have none left then. */
function refuseLarge(
  candidates: readonly LeakCandidate[],
  all: readonly NodeAllocation[],
  records: ClusterRecords,
): void {
  const leaving = new Set(candidates.flatMap(({ allocations }) => allocations));
  refuse(leaving.size, all.length, (share) => `Cannot release leaked addresses: ${share} look leaked`);
  const left = all.filter((allocation) => !leaving.has(allocation));
  const gone = goneNodes(records, left);
  refuse(
    gone.length,
    nodesIn(records).size,
    (share) => `Cannot release what deleted nodes have left: ${share} nodes with claims or endpoints are gone`,
  );
  const names = new Set(gone.map(({ node }) => node));
  for (const { what, count, total } of sharesOfGone(records, (node) => names.has(node)))
    refuse(count, total, (share) => `Cannot release what deleted nodes have left: ${share} ${what} are theirs`);
}

function refuse(count: number, total: number, message: (share: string) => string): void {
  if (!isLargeRemoval(count, total)) return;
  throw new PluginError("resource-in-use", `${message(`${count} of ${total}`)}, which is ${LARGE_SHARE}`, {
    details: "check with --dry-run that this is right, and then use --yes",
  });
}

async function judgeCandidate(
  candidate: LeakCandidate,
  { isDryRun, graceMilliseconds, deadNodes }: ClusterSearch,
  means: ClusterReleaseMeans,
): Promise<readonly JudgedAddress[]> {
  const { allocations, isNodeGone, isOverdue, milliseconds, reason } = candidate;
  const each = (state: State, kept?: string) =>
    allocations.map((allocation) => ({ allocation, state, reason, ...(kept === undefined ? {} : { kept }) }));
  if (!isNodeGone && !allocations.every(({ node }) => deadNodes.has(node))) return each("kept", NODE_EXISTS);
  if (!isNodeGone && !isOverdue) return each("kept", graceText(milliseconds, graceMilliseconds));
  if (isDryRun) return allocations.map((allocation) => ({ allocation, state: stateIfLeft(allocation).later, reason }));
  const outcome = await releaseCandidate(candidate, means).catch(keptIfUnreadable);
  if (outcome.kind === "kept") return each("kept", outcome.reason);
  const released = new Set(outcome.released.map(({ address }) => formatAddress(address)));
  return allocations.map((allocation) =>
    released.has(formatAddress(allocation.address))
      ? { allocation, state: stateIfLeft(allocation).now, reason: outcome.reason }
      : { allocation, state: "kept", reason, kept: "it was assigned again in the meantime" },
  );
}

function stateIfLeft({ isKept }: NodeAllocation): { readonly now: State; readonly later: State } {
  return isKept ? { now: "waits", later: "would wait" } : { now: "released", later: "would release" };
}

const NODE_EXISTS = "its node exists, and its agent releases it once the host has no link for it";

/** One record must not stop the others. */
function keptIfUnreadable(failure: unknown) {
  if (!(failure instanceof PluginError) || failure.kind !== "record-malformed") throw failure;
  return { kind: "kept", reason: failure.message } as const;
}

function graceText(milliseconds: number | undefined, graceMilliseconds: number): string {
  if (milliseconds === undefined) return "the time of its assignment is not recorded";
  return `assigned ${minutes(milliseconds)} ago, grace period ${minutes(graceMilliseconds)}`;
}

function minutes(milliseconds: number): string {
  return counted(Math.floor(milliseconds / 60_000), "minute");
}

async function judgeSurplus(
  records: ClusterRecords,
  { isDryRun }: ClusterSearch,
  means: ClusterReleaseMeans & { readonly now: Date },
): Promise<readonly JudgedBlock[]> {
  const reason = "it is empty, and the node has another, or its pool is gone";
  // All blocks of a node that is gone are released with it.
  const surplus = surplusInCluster(records, means.datastoreNow()).filter(
    ({ node }) => records.view.nodeNamed(node) !== undefined,
  );
  const judged: JudgedBlock[] = [];
  for (const each of surplus) {
    const named = { block: formatPrefix(each.block.cidr), node: each.node, reason };
    if (isDryRun) judged.push({ ...named, state: "would release" });
    else if (await releaseSurplusBlock(each, records, means)) {
      judged.push({ ...named, reason: `${reason}${await restText(named.block, means)}`, state: "released" });
    }
  }
  return judged;
}

async function judgeGoneNodes(
  gone: readonly GoneNode[],
  { isDryRun }: ClusterSearch,
  means: ClusterReleaseMeans & { readonly now: Date },
): Promise<readonly JudgedBlock[]> {
  const judged: JudgedBlock[] = [];
  for (const each of gone) {
    const blocks = isDryRun
      ? each.claims.map(({ cidr }) => formatPrefix(cidr))
      : ((await releaseGoneNode(each, means))?.blocks ?? []);
    for (const block of blocks) {
      const reason = `the node is gone${isDryRun ? "" : await restText(block, means)}`;
      judged.push({ block, node: each.node, state: isDryRun ? "would release" : "released", reason });
    }
  }
  return judged;
}

/** Any node may claim the block from now on; it is deleted when its addresses have rested. */
async function restText(
  block: string,
  { store, now }: { readonly store: Datastore; readonly now: Date },
): Promise<string> {
  const { answers } = await store.read([{ kind: "key", key: blockKey(requirePrefix(block)) }]);
  const left = Math.max(0, ...answers.flat().map((entry) => longestRestLeft(decodeBlock(entry), now)));
  return left === 0 ? "" : `; its addresses rest for another ${Math.ceil(left / 1000)} s`;
}
