/**
 * Lets the keeper of the node's record look when something may differ: soon after records or the host have changed, and
 * from time to time without a reason. Never fails: what cannot be done now is tried again.
 */
import { PluginError } from "../../errors.ts";
import type { NetworkEvent } from "../../linux/rtnetlink/network-monitor.ts";
import { Wakeup } from "../../wakeup.ts";
import { HostChanges } from "./host-change.ts";
import { KnownRecords, type RecordChanges } from "./known-records.ts";
import { NodeRecordKeeper, type RecordFacts, type RecordMeans } from "./node-record-keeper.ts";
import type { RoutingAnnotation } from "./routing-annotation.ts";

/** Changes that come within this time after the first are looked at together. */
const SETTLE_MILLISECONDS = 100;
/** How often everything is compared without a reason. */
export const REFRESH_MILLISECONDS = 15 * 60_000;
/** While the orchestrator has not assigned the ranges of this node. */
const INCOMPLETE_MILLISECONDS = 5_000;
/** How often BIRD and the kernel's keeper are asked. */
const ROUTING_MILLISECONDS = 5_000;
const FIRST_RETRY_MILLISECONDS = 500;
const LAST_RETRY_MILLISECONDS = 30_000;

export interface RecordUpdate {
  readonly changes: RecordChanges;
}

export interface FollowMeans extends RecordMeans {
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly NetworkEvent[] | "lost">;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  /** Called after a look without a problem. */
  readonly forgetProblems: () => void;
  /** Absent: nothing is said of routes. */
  readonly routing?: RoutingAnnotation;
}

/** Resolves when the updates have ended and the signal is aborted. */
export async function followNodeRecord(updates: AsyncIterable<RecordUpdate>, means: FollowMeans): Promise<void> {
  const follower = new Follower(means);
  const loops = [follower.followUpdates(updates), follower.followHost(), follower.followRouting()];
  await Promise.all([...loops, follower.lookWhenRung()]);
}

class Follower {
  private readonly wakeup = new Wakeup();
  private readonly records: KnownRecords;
  private hasProblem = false;
  private readonly keeper: NodeRecordKeeper;

  constructor(private readonly means: FollowMeans) {
    const report = (problem: string) => {
      this.hasProblem = true;
      means.report(problem);
    };
    this.keeper = new NodeRecordKeeper({ ...means, report });
    this.records = new KnownRecords(means.node);
  }

  async followUpdates(updates: AsyncIterable<RecordUpdate>): Promise<void> {
    for await (const { changes } of updates) if (this.records.update(changes)) this.wakeup.notify();
  }

  async followHost(): Promise<void> {
    const { events, wait, signal, report } = this.means;
    while (!signal.aborted) {
      const changes = new HostChanges();
      try {
        for await (const batch of events(signal)) {
          if (batch === "lost" || batch.some((event) => changes.isRelevant(event))) this.wakeup.notify();
        }
      } catch (failure) {
        report(`Cannot follow the addresses of this host: ${reasonOf(failure)}`);
      }
      await wait(FIRST_RETRY_MILLISECONDS, signal);
      this.wakeup.notify();
    }
  }

  /** It is known on this host alone, and nobody tells when it changes. */
  async followRouting(): Promise<void> {
    const { routing, wait, signal } = this.means;
    while (routing !== undefined && !signal.aborted) {
      await wait(ROUTING_MILLISECONDS, signal);
      if (signal.aborted) return;
      await routing.learn();
      const { node } = this.records.facts ?? {};
      if (node !== undefined && routing.isDue(node.metadata.annotations)) this.wakeup.notify();
    }
  }

  async lookWhenRung(): Promise<void> {
    const { wait, signal } = this.means;
    let retryMilliseconds = FIRST_RETRY_MILLISECONDS;
    let pause = REFRESH_MILLISECONDS;
    while (!signal.aborted) {
      if (!this.wakeup.isNotified) await wait(pause, AbortSignal.any([signal, this.wakeup.signal]));
      if (this.wakeup.isNotified) await wait(SETTLE_MILLISECONDS, signal);
      else if (pause === REFRESH_MILLISECONDS) this.keeper.distrust();
      this.wakeup.reset();
      const { facts } = this.records;
      if (signal.aborted || facts === undefined) continue;
      const outcome = await this.look(facts);
      if (outcome === "failed" || this.keeper.lacksAddress) {
        pause = retryMilliseconds;
        retryMilliseconds = Math.min(2 * retryMilliseconds, LAST_RETRY_MILLISECONDS);
      } else {
        pause = this.keeper.isIncomplete ? INCOMPLETE_MILLISECONDS : REFRESH_MILLISECONDS;
        retryMilliseconds = FIRST_RETRY_MILLISECONDS;
      }
    }
  }

  private async look(facts: RecordFacts): Promise<"done" | "failed"> {
    const { report, forgetProblems } = this.means;
    this.hasProblem = false;
    try {
      await this.keeper.look(facts);
      if (!this.hasProblem) forgetProblems();
      return "done";
    } catch (failure) {
      this.keeper.forget();
      report(`Cannot keep the record of this node: ${reasonOf(failure)}`);
      return "failed";
    }
  }
}

function reasonOf(failure: unknown): string {
  if (failure instanceof PluginError) return [failure.message, failure.details].filter(Boolean).join("; ");
  return failure instanceof Error ? failure.message : String(failure);
}
