/**
 * Keeps the endpoints of the pods of this node in a datastore that is not the orchestrator's API, if another networking
 * plugin connects them: so the rules of all nodes can select them.
 *
 *   pods of this node ──────┐
 *   endpoints of this node ─┴─▶ those that may differ ─▶ what must be written ─▶ guarded commit
 *
 * Records of an ADD are never touched. Nothing is deleted before both have been listed.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import type { KindSnapshot } from "../../datastore/replica/kind-snapshot.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { PodRecord } from "../../model/pod-record.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { Wakeup } from "../../wakeup.ts";
import { endpointChange, endpointKeyOf, isOfAgent } from "./pod-endpoint-record.ts";

interface Update<Kind extends string, Value> {
  readonly snapshot: { readonly [Key in Kind]: KindSnapshot<Value> };
  readonly changes: { readonly [Key in Kind]: readonly RecordChange<Value>[] };
}

export interface PodEndpointMeans {
  /** The name of this node in the datastore. */
  readonly node: string;
  readonly store: Pick<Datastore, "commit">;
  readonly report: (message: string) => void;
  /** Called after a round without a failure. */
  readonly forgetProblems: () => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** A record that another program has changed meanwhile arrives again by itself. */
const RETRY_MILLISECONDS = { first: 500, longest: 30_000 } as const;

/** Resolves when the updates have ended and the signal is aborted. */
export async function followPodEndpoints(
  pods: AsyncIterable<Update<"pods", PodRecord>>,
  endpoints: AsyncIterable<Update<"endpoints", WorkloadEndpoint>>,
  means: PodEndpointMeans,
): Promise<void> {
  const follower = new PodEndpoints(means);
  await Promise.all([follower.followPods(pods), follower.followEndpoints(endpoints), follower.writeWhenRung()]);
}

class PodEndpoints {
  /** By the key of the endpoint. */
  private readonly pods = new Map<string, PodRecord>();
  private records: KindSnapshot<WorkloadEndpoint> | undefined;
  private hasPods = false;
  /** Keys of endpoints that may differ from their pod. */
  private readonly due = new Set<string>();
  private readonly wakeup = new Wakeup();

  constructor(private readonly means: PodEndpointMeans) {}

  async followPods(updates: AsyncIterable<Update<"pods", PodRecord>>): Promise<void> {
    for await (const { changes } of updates) {
      this.hasPods = true;
      for (const change of changes.pods) {
        const pod = change.kind === "put" ? change.value : change.previous;
        const key = pod && endpointKeyOf(pod, this.means.node);
        if (key === undefined || change.kind === "unreadable") continue;
        if (change.kind === "put") this.pods.set(key, change.value);
        else this.pods.delete(key);
        this.due.add(key);
      }
      this.wakeup.notify();
    }
  }

  async followEndpoints(updates: AsyncIterable<Update<"endpoints", WorkloadEndpoint>>): Promise<void> {
    const { node } = this.means;
    for await (const { snapshot, changes } of updates) {
      this.records = snapshot.endpoints;
      for (const { key, previous, ...change } of changes.endpoints) {
        const value = change.kind === "put" ? change.value : previous;
        if (this.pods.has(key) || (value !== undefined && isOfAgent(value, node))) this.due.add(key);
      }
      if (this.due.size > 0) this.wakeup.notify();
    }
  }

  async writeWhenRung(): Promise<void> {
    const { wait, signal, forgetProblems } = this.means;
    let pause = Number.POSITIVE_INFINITY;
    while (!signal.aborted) {
      const limit = Math.min(pause, 2 ** 31 - 1);
      if (!this.wakeup.isNotified) await wait(limit, AbortSignal.any([signal, this.wakeup.signal]));
      this.wakeup.reset();
      if (signal.aborted) return;
      await this.writeDue();
      if (this.due.size === 0) {
        pause = Number.POSITIVE_INFINITY;
        forgetProblems();
      } else
        pause = Math.min(Number.isFinite(pause) ? 2 * pause : RETRY_MILLISECONDS.first, RETRY_MILLISECONDS.longest);
    }
  }

  private async writeDue(): Promise<void> {
    const { records } = this;
    if (!this.hasPods || records === undefined) return;
    for (const key of [...this.due]) {
      try {
        if (await this.write(key)) this.due.delete(key);
      } catch (failure) {
        const reason = failure instanceof Error ? failure.message : String(failure);
        this.means.report(`Cannot record the endpoints of pods: ${reason}`);
        return;
      }
    }
  }

  /** Returns whether the record is right now. */
  private async write(key: string): Promise<boolean> {
    const { node, store } = this.means;
    const value = this.records?.get(key);
    const revision = this.records?.revisionOf(key);
    const recorded = value === undefined || revision === undefined ? undefined : { value, revision };
    // An unreadable record is left to the administrator: the agent reports it with the policies.
    if (value === undefined && revision !== undefined) return true;
    const change = endpointChange(key, { pod: this.pods.get(key), recorded, node });
    return change === undefined || (await store.commit([change])).ok;
  }
}
