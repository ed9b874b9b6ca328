/**
 * Gives back what nobody uses any more: addresses and claims of nodes that are gone, and surplus blocks. Addresses of
 * nodes that exist are released by the node's own agent, which sees whether the container runs; here they are only counted.
 *
 *   twice in each grace period, and when a node disappears, or a pod of such a node:
 *   snapshot ──> candidates (pure) ─┬─> node gone ──> judged again, live ──> released, guarded by sequence numbers
 *                                   └─> node exists ──> metrics: candidates, and those that are overdue
 *
 * Addresses that wait for a pod are freed by kept-addresses.ts, in the same looks.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { Update } from "../../datastore/replica.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";
import type { Allocator } from "../../ipam/allocator.ts";
import { datastoreTime } from "../../ipam/allocator-means.ts";
import { DatastoreLocked } from "../../ipam/cluster.ts";
import { describeNodeAllocation, identityOf, type NodeAllocation } from "../../ipam/leaks/allocations.ts";
import { Candidates, findCandidates, type LeakCandidate } from "../../ipam/leaks/candidates.ts";
import {
  allocationsOf,
  type ClusterRecords,
  type GoneNode,
  goneNodes,
  nodesIn,
  sharesOfGone,
} from "../../ipam/leaks/cluster-records.ts";
import { EmptyBlocks, type SurplusBlock } from "../../ipam/leaks/empty-blocks.ts";
import type { LiveObjects } from "../../ipam/leaks/live-view.ts";
import { releaseCandidate, releaseGoneNode, releaseSurplusBlock } from "../../ipam/leaks/release-in-cluster.ts";
import type { LookTime } from "../../ipam/leaks/unused-since.ts";
import { deleteUnneededBlock, isEmptyWithoutNode, isUnneededBlock } from "../../ipam/release/block-after-release.ts";
import { respectingLock } from "../../ipam/respecting-lock.ts";
import { REST_MILLISECONDS } from "../../ipam/rest.ts";
import type { Leadership } from "../../kube/election/leadership.ts";
import { resourceKey } from "../../model/keys.ts";
import type { Controller } from "../controller.ts";
import { type Facts, factsOf, type OrchestratorValues, type Replicas } from "../facts.ts";
import { recordsWithoutNode } from "../node-names.ts";
import { Removals } from "../removals.ts";
import { KeptAddresses, type KeptMeans } from "./kept-addresses.ts";
import { OrphanedHandles } from "./orphaned-handles.ts";
import { recordsIn } from "./records.ts";

export interface CollectorMeans extends LiveObjects, Pick<KeptMeans, "owners"> {
  readonly store: Datastore;
  readonly allocator: Allocator;
  readonly replicas: Replicas;
  /** Endpoints of pods are records of their own on etcd alone. */
  readonly isEtcd: boolean;
  readonly leadership: Leadership;
  /** After that long, empty blocks are released, and addresses of existing nodes count as overdue. 0: never. */
  readonly graceMilliseconds: number;
  readonly signal: AbortSignal;
  readonly elapsed: () => number;
  readonly now: () => Date;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

export function followedByCollector(isEtcd: boolean): Controller["follows"] {
  const stored = ["configurations", "nodes", "pools", "blocks4", "blocks6", "claims", "borrowings"] as const;
  return { orchestrator: ["pods", "nodes"], stored: isEtcd ? [...stored, "endpoints"] : stored };
}

/** For metrics. */
export interface CollectorState {
  readonly candidates: number;
  /** By node that exists: addresses that have looked leaked for the grace period, and that it has not released. */
  readonly overdue: ReadonlyMap<string, number>;
  readonly releasedAddresses: number;
  readonly releasedBlocks: number;
  /** Addresses that waited for a pod, and were freed. */
  readonly freedKept: number;
  readonly errors: number;
  /** Addresses and nodes that are not released yet, because they are too many at once. */
  readonly heldRemovals: number;
}

/** What one look has read and found. */
interface Look {
  readonly records: ClusterRecords;
  readonly all: readonly NodeAllocation[];
  readonly found: readonly LeakCandidate[];
}

/** Without a grace period: how often gone nodes are looked for. */
const USUAL_INTERVAL = 5 * 60_000;
const AFTER_FAILURE = 10_000;
const SOON = 1_000;
/** Often enough to notice that what was missing is there again. */
const WHILE_HELD = 60_000;

export class LeakCollector {
  private readonly candidates = new Candidates();
  private readonly emptyBlocks = new EmptyBlocks();
  private readonly orphanedHandles: OrphanedHandles;
  private readonly addresses: Removals;
  private readonly nodes: Removals;
  private readonly kept: KeptAddresses;
  private current: Omit<CollectorState, "heldRemovals" | "freedKept"> = {
    ...{ candidates: 0, releasedAddresses: 0, releasedBlocks: 0, errors: 0 },
    overdue: new Map(),
  };
  private gone = new AbortController();
  private isLocked = false;
  /** Blocks without a node, which are deleted when their addresses have rested. */
  private hasLeftBlocks = false;
  private readonly means: CollectorMeans;

  constructor(means: CollectorMeans) {
    this.means = { ...means, store: respectingLock(means.store) };
    this.addresses = new Removals("addresses", means);
    this.nodes = new Removals("nodes with claims or endpoints", means);
    this.kept = new KeptAddresses({
      ...{ ...this.means, now: this.datastoreNow, mayWrite: () => this.mayWrite(), each: (work) => this.each(work) },
      info: (message) => this.info(message),
    });
    this.orphanedHandles = new OrphanedHandles({ ...this.means, each: (work) => this.each(work) });
  }

  get state(): CollectorState {
    // A standby removes nothing, and does not look.
    const held = this.addresses.held + this.nodes.held + this.kept.held;
    const heldRemovals = this.means.leadership.isLeading() ? held : 0;
    return { ...this.current, heldRemovals, freedKept: this.kept.freed };
  }

  /** Resolves when the signal is aborted. */
  async run(): Promise<void> {
    await Promise.all([this.noticeGone(), this.collectAgain()]);
  }

  private async noticeGone(): Promise<void> {
    const { orchestrator, stored } = this.means.replicas;
    const { signal } = this.means;
    const inOrchestrator = async () => {
      for await (const update of orchestrator.updates(signal)) {
        if (this.isNodeDeleted(update.changes) || isPodOfGoneNodeDeleted(update)) this.gone.abort();
      }
    };
    const inStore = async () => {
      for await (const { changes } of stored.updates(signal)) if (this.isNodeDeleted(changes)) this.gone.abort();
    };
    await Promise.all([inOrchestrator(), inStore()]);
  }

  private async collectAgain(): Promise<void> {
    const { leadership, signal, wait, graceMilliseconds } = this.means;
    while (!signal.aborted) {
      await leadership.whenLeading(signal);
      this.gone = new AbortController();
      let pause = graceMilliseconds === 0 ? USUAL_INTERVAL : graceMilliseconds / 2;
      const before = this.current.releasedAddresses;
      try {
        // What was released may have been the last of a node that is gone.
        if (!(await this.collect()) || this.current.releasedAddresses > before) pause = Math.min(pause, SOON);
        if (this.hasLeftBlocks) pause = Math.min(pause, REST_MILLISECONDS);
        if (this.state.heldRemovals > 0) pause = Math.min(pause, WHILE_HELD);
        this.isLocked = false;
      } catch (failure) {
        this.reportFailure(failure);
        pause = Math.min(pause, AFTER_FAILURE);
      }
      await wait(pause, AbortSignal.any([signal, this.gone.signal]));
    }
  }

  /** One look. `false` if the facts are not known yet. */
  async collect(): Promise<boolean> {
    const facts = factsOf(this.means.replicas);
    if (facts === undefined) return false;
    const { time } = this;
    const records = recordsIn(facts);
    const all = allocationsOf(records);
    const found = this.candidates.look(all, records.view, time);
    this.current = { ...this.current, candidates: found.length, overdue: overdueByNode(found) };
    const surplus = this.emptyBlocks.look(records.blocks, records.pools, {
      ...time,
      datastoreTime: this.datastoreNow(),
    });
    this.lookAtGone({ records, all, found }, facts);
    const isHeld = ({ allocations }: LeakCandidate) =>
      allocations.some((each) => this.addresses.isHeld(identityOf(each)));
    const leaked = found.filter(({ isNodeGone }) => isNodeGone);
    for (const candidate of leaked) if (!isHeld(candidate)) await this.each(() => this.release(candidate));
    for (const each of surplus) await this.each(() => this.releaseSurplus(each, records));
    this.hasLeftBlocks = records.blocks.some(isEmptyWithoutNode);
    const left = records.blocks.filter((block) => isUnneededBlock(block, this.datastoreNow()));
    for (const { cidr } of left) await this.each(() => this.deleteLeft(cidr));
    // What was released may have been the last of a node: the next look is soon.
    const gone = goneNodes(records).filter(({ node }) => !this.nodes.isHeld(node));
    for (const each of gone) await this.each(() => this.releaseNode(each));
    await this.orphanedHandles.look(records.blocks, time);
    await this.kept.look(records, time, facts);
    return true;
  }

  /**
   * Counts what all nodes that are gone hold, before anything of the first is released. Those count, too, whose record is
   * still there, because its deletion is held or is about to come: what they hold is held for the same time, not for twice.
   */
  private lookAtGone({ records, all, found }: Look, facts: Facts): void {
    const leaving = recordsWithoutNode(facts);
    const nodeNamed = (node: string) => (leaving.has(node) ? undefined : records.view.nodeNamed(node));
    const after = { ...records, view: { ...records.view, nodeNamed } };
    const { now, ...grace } = this.time;
    const candidates =
      leaving.size === 0 ? found : findCandidates(all, after.view, { ...grace, ageOf: () => undefined });
    const leaked = candidates.filter(({ isNodeGone }) => isNodeGone).flatMap(({ allocations }) => allocations);
    const nodes = goneNodes(after, []).map(({ node }) => node);
    const isGone = (node: string) => nodeNamed(node) === undefined;
    const left = sharesOfGone(records, isGone);
    const total = nodesIn(records).size;
    const ofNodes = { what: "nodes with claims or endpoints", count: nodes.length, total };
    const ofAddresses = { what: "addresses", count: leaked.length, total: all.length };
    const identities = leaked.map(identityOf);
    this.addresses.look({ identities, total: all.length, consequences: [ofNodes, ...left], now }, facts);
    this.nodes.look({ identities: nodes, total, consequences: [ofAddresses, ...left], now }, facts);
  }

  /** A record that cannot be read must not keep the others. */
  private async each(work: () => Promise<void>): Promise<void> {
    try {
      if (this.mayWrite()) await work();
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind !== "record-malformed") throw failure;
      this.reportFailure(failure);
    }
  }

  private async release(candidate: LeakCandidate): Promise<void> {
    const outcome = await releaseCandidate(candidate, this.releaseMeans);
    if (outcome.kind === "kept") return;
    const { released, reason } = outcome;
    this.current = { ...this.current, releasedAddresses: this.current.releasedAddresses + released.length };
    for (const allocation of released) this.info(`released ${describeNodeAllocation(allocation)}: ${reason}`);
  }

  private async releaseSurplus(surplus: SurplusBlock, records: ReturnType<typeof recordsIn>): Promise<void> {
    if (!(await releaseSurplusBlock(surplus, records, this.releaseMeans))) return;
    const { node, block } = surplus;
    this.countBlocks(node, [formatPrefix(block.cidr)], "it is empty, and the node has another, or its pool is gone");
  }

  private async deleteLeft(cidr: Prefix): Promise<void> {
    const { store } = this.means;
    if (!(await deleteUnneededBlock(store, cidr, (block) => isUnneededBlock(block, this.datastoreNow())))) return;
    this.info(`deleted block ${formatPrefix(cidr)}: it is empty, has no node, and its addresses have rested`);
  }

  private async releaseNode(gone: GoneNode): Promise<void> {
    const left = await releaseGoneNode(gone, this.releaseMeans);
    if (left === undefined) return;
    this.orphanedHandles.expect(gone.node, this.time);
    this.countBlocks(gone.node, left.blocks, GONE);
    for (const name of left.endpoints) this.info(`deleted endpoint ${name}: ${GONE}`);
  }

  private countBlocks(node: string, blocks: readonly string[], reason: string): void {
    this.current = { ...this.current, releasedBlocks: this.current.releasedBlocks + blocks.length };
    for (const block of blocks) this.info(`released the claim of node ${node} on block ${block}: ${reason}`);
  }

  private reportFailure(failure: unknown): void {
    // Nothing is wrong then; it is logged once for each lock.
    const isLocked = failure instanceof DatastoreLocked;
    if (isLocked && this.isLocked) return;
    this.isLocked = isLocked;
    if (!isLocked) this.current = { ...this.current, errors: this.current.errors + 1 };
    this.means.log(`leaks: ${failure instanceof Error ? failure.message : String(failure)}`, "WARNING");
  }

  private info(message: string): void {
    this.means.log(`leaks: ${message}`, "INFO");
  }

  /** Kinds that are not followed have no changes. */
  private isNodeDeleted({ nodes = [] }: { readonly nodes?: readonly RecordChange<unknown>[] }): boolean {
    const deleted = nodes.filter(({ kind }) => kind === "delete");
    for (const { key } of deleted) this.orphanedHandles.expect(key.slice(key.lastIndexOf("/") + 1), this.time);
    return deleted.length > 0;
  }

  private get time(): LookTime {
    return { now: this.means.elapsed(), graceMilliseconds: this.means.graceMilliseconds };
  }

  private readonly datastoreNow = (): Date => datastoreTime(this.means.store, this.means);

  private get releaseMeans() {
    return {
      ...this.means,
      datastoreNow: this.datastoreNow,
      hasEndpointRecords: this.means.isEtcd,
      mayWrite: () => this.mayWrite(),
    };
  }

  private mayWrite(): boolean {
    return this.means.leadership.isLeading() && !this.means.signal.aborted;
  }
}

const GONE = "the node is gone";

function overdueByNode(candidates: readonly LeakCandidate[]): ReadonlyMap<string, number> {
  const addresses = candidates.filter(({ isOverdue }) => isOverdue).flatMap(({ allocations }) => allocations);
  const nodes = Map.groupBy(addresses, ({ node }) => node);
  return new Map(Array.from(nodes, ([node, held]) => [node, held.length]));
}

/** The orchestrator deletes the pods of a node that is gone some time after the node. */
function isPodOfGoneNodeDeleted({ changes, snapshot }: Update<OrchestratorValues>): boolean {
  const isGone = (node: string) => snapshot.nodes.held(resourceKey("nodes", { name: node })) === undefined;
  return changes.pods.some(({ kind, previous }) => kind === "delete" && !!previous?.node && isGone(previous.node));
}
