/**
 * Lets the controllers write only to the datastore of the cluster that they follow. It is compared at the start and every
 * few minutes, and at each commit; a mismatch stops all of them until the datastore is the right one, or an administrator
 * confirms the move.
 */
import type { Entry } from "../datastore/datastore.ts";
import { type ClusterSides, confirmCluster, OtherCluster, refuseAnotherCluster } from "../ipam/confirm-cluster.ts";
import type { Leadership } from "../kube/election/leadership.ts";

export interface ClusterGateMeans {
  readonly sides: ClusterSides;
  readonly leadership: Leadership;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** From one comparison to the next. */
export const COMPARISON_MILLISECONDS = 5 * 60_000;
/** Until the leader has recorded the cluster. */
const UNRECORDED = 30_000;
const AFTER_FAILURE = 5_000;

export class ClusterGate implements Leadership {
  private uid: string | undefined;
  private isConfirmed = false;
  private refusal: string | undefined;
  private locked = false;
  /** The last failure: each is logged once. */
  private logged = "";
  /** Why the cluster could not be recorded. */
  private unrecorded = "";
  private opened = Promise.withResolvers<void>();

  constructor(private readonly means: ClusterGateMeans) {}

  /** Why nothing is written; `undefined` if the datastore is that of the cluster, or that is not known yet. */
  get mismatch(): string | undefined {
    return this.refusal;
  }

  /** Why nothing is written: the comparison was refused, has failed each time, or was not made yet. */
  get unconfirmed(): string | undefined {
    if (this.isConfirmed) return undefined;
    return this.logged || "the datastore was not compared with the cluster yet";
  }

  /** As of the last comparison. */
  get isDatastoreLocked(): boolean {
    return this.locked;
  }

  isLeading(): boolean {
    return this.isConfirmed && this.means.leadership.isLeading();
  }

  async whenLeading(signal: AbortSignal): Promise<void> {
    // Asked for each key: the usual case costs nothing.
    if (this.isLeading()) return;
    const { promise: stopped, resolve } = Promise.withResolvers<void>();
    const stop = () => resolve();
    signal.addEventListener("abort", stop);
    try {
      while (!signal.aborted && !this.isLeading()) {
        await this.means.leadership.whenLeading(signal);
        await Promise.race([this.opened.promise, stopped]);
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Throws `OtherCluster`. */
  requireSame(entry: Entry | undefined): void {
    refuseAnotherCluster(entry, this.uid);
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wasLeading = this.means.leadership.isLeading();
      const pause = await this.compare(wasLeading ? "record" : "check");
      if (pause === UNRECORDED && !wasLeading) await this.waitForLead(signal);
      else await this.means.wait(pause, signal);
    }
  }

  /** Only the leader records the cluster. */
  private async waitForLead(signal: AbortSignal): Promise<void> {
    const waited = new AbortController();
    const leading = this.means.leadership.whenLeading(AbortSignal.any([signal, waited.signal]));
    await Promise.race([leading, this.means.wait(UNRECORDED, signal)]);
    waited.abort();
  }

  /** Returns the pause until the next time. */
  private async compare(mode: "record" | "check"): Promise<number> {
    const { sides, log } = this.means;
    try {
      const { uid, isRecorded, isLocked, problem = "" } = await confirmCluster(sides, mode);
      this.uid = uid;
      this.locked = isLocked;
      this.open();
      if (problem !== "" && this.unrecorded !== problem) log(problem, "WARNING");
      this.unrecorded = problem;
      return isRecorded ? COMPARISON_MILLISECONDS : UNRECORDED;
    } catch (failure) {
      const message = failure instanceof Error ? failure.message : String(failure);
      const isOther = failure instanceof OtherCluster;
      if (isOther) this.close(message);
      // What was confirmed stays confirmed while one of the two cannot be reached.
      if (!this.isConfirmed && this.logged !== message)
        log(`${message}${isOther ? `; ${failure.details}` : ""}`, "WARNING");
      this.logged = message;
      return AFTER_FAILURE;
    }
  }

  private open(): void {
    this.isConfirmed = true;
    this.refusal = undefined;
    this.logged = "";
    this.opened.resolve();
  }

  private close(reason: string): void {
    if (this.isConfirmed) this.opened = Promise.withResolvers<void>();
    this.isConfirmed = false;
    this.refusal = reason;
  }
}
