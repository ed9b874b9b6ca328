/**
 * Gives back what nobody uses any more: addresses of pods and nodes that are gone, surplus blocks, and the claims of
 * nodes that are gone.
 *
 *   twice in each grace period, and when a node disappears:
 *   snapshot ──> candidates (pure) ──> confirmed ──> judged again, live ──> released, guarded by sequence numbers
 */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { Allocator } from "../../ipam/allocator.ts";
import { allocationsIn, describeNodeAllocation } from "../../ipam/leaks/allocations.ts";
import { forgetBorrowings } from "../../ipam/leaks/borrowings.ts";
import { Candidates, type LeakCandidate, unusedReason } from "../../ipam/leaks/candidates.ts";
import type { ClusterView } from "../../ipam/leaks/cluster-judge.ts";
import { EmptyBlocks } from "../../ipam/leaks/empty-blocks.ts";
import { releaseLeaks } from "../../ipam/leaks/release.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { resourceKey } from "../../model/keys.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { type PodRecord, podRecordKey } from "../../model/pod-record.ts";
import type { Controller } from "../controller.ts";
import { type Facts, factsOf, type Replicas } from "../facts.ts";
import type { Leadership } from "../leadership.ts";
import { nodeNamed } from "../node-names.ts";
import { blocksIn, goneNodes } from "./gone-nodes.ts";

export interface CollectorMeans {
  readonly store: Datastore;
  readonly allocator: Allocator;
  readonly replicas: Replicas;
  readonly leadership: Leadership;
  /** The pod as the orchestrator's API has it now. */
  readonly readPod: (name: { readonly namespace: string; readonly name: string }) => Promise<PodRecord | undefined>;
  /** Whether the orchestrator's API has no object at the path. */
  readonly isAbsent: (path: string) => Promise<boolean>;
  /** 0: addresses of existing nodes are never released. */
  readonly graceMilliseconds: number;
  readonly signal: AbortSignal;
  readonly elapsed: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** Endpoints of pods are records of their own on etcd alone. */
export function followedByCollector(isEtcd: boolean): Controller["follows"] {
  const stored = ["nodes", "pools", "blocks4", "blocks6", "claims"] as const;
  return { orchestrator: ["pods", "nodes"], stored: isEtcd ? [...stored, "endpoints"] : stored };
}

/** For metrics. */
export interface CollectorState {
  readonly candidates: number;
  readonly releasedAddresses: number;
  readonly releasedBlocks: number;
  readonly errors: number;
}

/** Without a grace period: how often gone nodes are looked for. */
const USUAL_INTERVAL = 5 * 60_000;
const AFTER_FAILURE = 10_000;
const SOON = 1_000;

export class LeakCollector {
  private readonly candidates = new Candidates();
  private readonly emptyBlocks = new EmptyBlocks();
  private current = { candidates: 0, releasedAddresses: 0, releasedBlocks: 0, errors: 0 };
  private nodeGone = new AbortController();

  constructor(private readonly means: CollectorMeans) {}

  get state(): CollectorState {
    return this.current;
  }

  /** Resolves when the signal is aborted. */
  async run(): Promise<void> {
    await Promise.all([this.noticeGoneNodes(), this.collectAgain()]);
  }

  private async noticeGoneNodes(): Promise<void> {
    const { replicas, signal } = this.means;
    const notice = async (side: "orchestrator" | "stored") => {
      for await (const { changes } of replicas[side].updates(signal)) {
        if (changes.nodes?.some(({ kind }) => kind === "delete")) this.nodeGone.abort();
      }
    };
    await Promise.all([notice("orchestrator"), notice("stored")]);
  }

  private async collectAgain(): Promise<void> {
    const { leadership, signal, wait, graceMilliseconds, log } = this.means;
    while (!signal.aborted) {
      await leadership.whenLeading(signal);
      this.nodeGone = new AbortController();
      let pause = graceMilliseconds === 0 ? USUAL_INTERVAL : graceMilliseconds / 2;
      const before = this.current.releasedAddresses;
      try {
        // What was released may have been the last of a node that is gone.
        if (!(await this.collect()) || this.current.releasedAddresses > before) pause = Math.min(pause, SOON);
      } catch (failure) {
        this.current = { ...this.current, errors: this.current.errors + 1 };
        log(`leaks: ${failure instanceof Error ? failure.message : String(failure)}`, "WARNING");
        pause = Math.min(pause, AFTER_FAILURE);
      }
      await wait(pause, AbortSignal.any([signal, this.nodeGone.signal]));
    }
  }

  /** One look. `false` if the facts are not known yet. */
  async collect(): Promise<boolean> {
    const { replicas, graceMilliseconds, elapsed } = this.means;
    const facts = factsOf(replicas);
    if (facts === undefined) return false;
    const time = { now: elapsed(), graceMilliseconds };
    const blocks = blocksIn(facts);
    const found = this.candidates.look(blocks.flatMap(allocationsIn), viewOf(facts), time);
    this.current = { ...this.current, candidates: found.length };
    for (const candidate of found) if (candidate.isConfirmed) await this.release(candidate);
    const pools = Array.from(facts.stored.pools, ([, pool]) => pool);
    for (const { node, block } of this.emptyBlocks.look(blocks, pools, time)) {
      if (this.mayWrite()) await this.releaseClaim(node, block.cidr, "it is empty, and the node has another");
    }
    await this.releaseGoneNodes();
    return true;
  }

  private async release(candidate: LeakCandidate): Promise<void> {
    const { store, allocator, log } = this.means;
    const endpoints = await this.endpointsOf(candidate);
    const view = await this.liveView(candidate, endpoints);
    const leak = unusedReason(candidate.allocations, view);
    if (leak === undefined || (candidate.isNodeGone && !leak.isNodeGone) || !this.mayWrite()) return;
    const leaks = candidate.allocations.map((allocation) => ({ allocation, reason: leak.reason }));
    // The connections are tracked on a node; its agent forgets them when it assigns the address again.
    const released = await releaseLeaks(leaks, { endpoints }, { store, allocator, forget: async () => {} });
    this.current = { ...this.current, releasedAddresses: this.current.releasedAddresses + released.length };
    for (const { allocation } of leaks)
      log(`leaks: released ${describeNodeAllocation(allocation)}: ${leak.reason}`, "INFO");
  }

  /** Pod, node and endpoint as they are now: a copy may be old. */
  private async liveView(
    { allocations, isNodeGone }: LeakCandidate,
    endpoints: ReadonlyMap<string, Entry>,
  ): Promise<ClusterView> {
    const { readPod, replicas } = this.means;
    const pods = new Map<string, PodRecord>();
    for (const { pod } of allocations) {
      if (pod === undefined || pods.has(podRecordKey(pod))) continue;
      const found = await readPod(pod);
      if (found !== undefined) pods.set(podRecordKey(pod), found);
    }
    const gone = new Set<string>();
    for (const node of new Set(allocations.map((allocation) => allocation.node))) {
      if (isNodeGone && (await this.isGone(node))) gone.add(node);
    }
    const facts = factsOf(replicas);
    return {
      podAt: (key) => pods.get(key),
      containerAt: (key) => containerIn(endpoints.get(key)),
      nodeNamed: (node) => (gone.has(node) || facts === undefined ? undefined : (nodeNamed(facts, node) ?? node)),
    };
  }

  private async isGone(node: string): Promise<boolean> {
    const { store, isAbsent } = this.means;
    const { answers } = await store.read([{ kind: "key", key: resourceKey("nodes", { name: node }) }]);
    return answers[0]?.length === 0 && (await isAbsent(`/api/v1/nodes/${node}`));
  }

  private async endpointsOf({ allocations }: LeakCandidate): Promise<ReadonlyMap<string, Entry>> {
    const keys = [...new Set(allocations.flatMap(({ endpointKey }) => endpointKey ?? []))];
    if (keys.length === 0) return new Map();
    const { answers } = await this.means.store.read(keys.map((key) => ({ kind: "key", key })));
    return new Map(answers.flat().map((entry) => [entry.key, entry]));
  }

  private async releaseClaim(node: string, cidr: IPAMBlock["cidr"], reason: string): Promise<void> {
    const { allocator, log } = this.means;
    const inUse = reason === GONE ? "release" : "keep";
    if ((await allocator.releaseAffinity({ node, block: cidr, inUse })) !== "released") return;
    this.current = { ...this.current, releasedBlocks: this.current.releasedBlocks + 1 };
    log(`leaks: released the claim of node ${node} on block ${formatPrefix(cidr)}: ${reason}`, "INFO");
  }

  private async releaseGoneNodes(): Promise<void> {
    const { store, replicas, log } = this.means;
    const facts = factsOf(replicas);
    for (const { node, claims, endpoints } of facts === undefined ? [] : goneNodes(facts)) {
      if (!(await this.isGone(node))) continue;
      for (const { cidr } of claims) if (this.mayWrite()) await this.releaseClaim(node, cidr, GONE);
      for (const { key, revision } of endpoints) {
        if (!this.mayWrite()) return;
        const { ok } = await store.commit([{ kind: "delete", key, revision }]);
        if (ok) log(`leaks: deleted endpoint ${key.slice(key.lastIndexOf("/") + 1)}: ${GONE}`, "INFO");
      }
      if (this.mayWrite()) await forgetBorrowings(store, node);
    }
  }

  private mayWrite(): boolean {
    return this.means.leadership.isLeading() && !this.means.signal.aborted;
  }
}

const GONE = "the node is gone";

/** Only a record of its own tells: on the orchestrator's API an endpoint is its pod. */
function containerIn(entry: Entry | undefined): string | undefined {
  return entry && ENDPOINT.codec.read(entry.value, entry.key).spec.containerID;
}

function viewOf(facts: Facts): ClusterView {
  return {
    podAt: (key) => facts.orchestrator.pods.get(key),
    nodeNamed: (node) => nodeNamed(facts, node),
    containerAt: (key) => facts.stored.endpoints.get(key)?.spec.containerID,
  };
}
