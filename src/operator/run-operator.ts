/**
 * Runs the operator: follows the cluster, and makes a pass whenever something has changed, after a failure, and every minute.
 * A standby follows too, so that it knows everything when it becomes the leader.
 */
import { Backoff } from "../datastore/replica/clock.ts";
import { PluginError } from "../errors.ts";
import type { KubeClient } from "../kube/api.ts";
import type { Leadership } from "../kube/election/leadership.ts";
import { Applier } from "./apply.ts";
import { FormerSecrets } from "./copied-secrets.ts";
import { type OpenPlace, RecordsFollower } from "./follow-records.ts";
import { followObjects, type Namespaces } from "./followed-objects.ts";
import { Reconciler } from "./reconcile.ts";
import { ReleaseChanged, ServerRelease } from "./server-release.ts";

export interface OperatorOptions {
  readonly client: Pick<KubeClient, "request" | "watch">;
  readonly openDatastore: OpenPlace;
  readonly namespaces: Namespaces;
  readonly leadership: Leadership;
  readonly signal: AbortSignal;
  readonly now: () => Date;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly random: () => number;
  readonly newName: () => string;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** What the operator has done, for health and metrics. */
export interface OperatorState {
  /** Everything that it follows was listed once. */
  readonly isListed: boolean;
  readonly passes: number;
  readonly failures: number;
  /** When the last pass ended, in milliseconds; 0 if there was none. */
  readonly lastPassAt: number;
  /** When the present pass began, in milliseconds; `undefined` between passes. */
  readonly passStartedAt: number | undefined;
  readonly lastFailure: string;
}

/** Changes come in bursts. */
const GATHER_MILLISECONDS = 100;
const PERIOD_MILLISECONDS = 60_000;
const RETRIES = { firstPauseMilliseconds: 500, longestPauseMilliseconds: 30_000 };

export class RunningOperator {
  private objects: ReturnType<typeof followObjects> | undefined;
  private readonly release: ServerRelease;
  private readonly records: RecordsFollower;
  private readonly reconciler: Reconciler;
  private readonly backoff: Backoff;
  private passes = 0;
  private failures = 0;
  private lastPassAt = 0;
  private passStartedAt: number | undefined;
  private lastFailure = "";
  private failedAt = 0;
  private woken = Promise.withResolvers<void>();

  constructor(private readonly options: OperatorOptions) {
    const { client, namespaces, signal, leadership, wait, random, newName, now, log, elapsed } = options;
    const warn = (message: string) => log(message, "WARNING");
    const requireLeading = () => {
      if (!leadership.isLeading() || signal.aborted) throw new PluginError("try-again-later", "The lease is lost");
    };
    this.backoff = new Backoff(RETRIES, random);
    this.release = new ServerRelease({ client, signal, wait, random, elapsed, log });
    const clock = { now: elapsed, wait };
    const changed = () => this.wake();
    this.records = new RecordsFollower({ open: options.openDatastore, changed, requireLeading, clock, random, warn });
    const applier = new Applier({ client, requireLeading, elapsed, log });
    const events = { client, now, newName, warn };
    this.reconciler = new Reconciler({
      client,
      namespaces,
      serverVersion: () => this.release.version,
      applier,
      formerSecrets: new FormerSecrets(client),
      records: this.records,
      requireLeading,
      log,
      events,
      now,
    });
  }

  get state(): OperatorState {
    const { passes, failures, lastPassAt, passStartedAt, lastFailure } = this;
    return { isListed: this.objects?.snapshot !== undefined, passes, failures, lastPassAt, passStartedAt, lastFailure };
  }

  /** Makes a pass soon. */
  wake(): void {
    this.woken.resolve();
  }

  /** Resolves when the signal is aborted and nothing is left open. */
  async run(): Promise<void> {
    const { signal } = this.options;
    await Promise.all([this.follow(), this.work()]);
    await this.records.close();
    if (signal.aborted) await this.objects?.ended;
  }

  private async follow(): Promise<void> {
    const { client, namespaces, signal, wait, random, elapsed, log } = this.options;
    const serverVersion = await this.release.first();
    if (serverVersion === undefined) return;
    const warn = (message: string) => log(message, "WARNING");
    const clock = { now: elapsed, wait };
    this.objects = followObjects({ client, namespaces, serverVersion, signal, clock, random, warn });
    for await (const _ of this.objects.updates(signal)) this.wake();
    this.wake();
  }

  private async work(): Promise<void> {
    const { signal, wait, leadership } = this.options;
    let pause = PERIOD_MILLISECONDS;
    while (!signal.aborted) {
      await this.untilWoken(pause);
      await wait(GATHER_MILLISECONDS, signal);
      await leadership.whenLeading(signal);
      if (signal.aborted) return;
      this.woken = Promise.withResolvers<void>();
      pause = await this.pass();
    }
  }

  private async untilWoken(pause: number): Promise<void> {
    const { wait, signal } = this.options;
    const enough = new AbortController();
    const stop = AbortSignal.any([signal, enough.signal]);
    const isRetry = pause < PERIOD_MILLISECONDS;
    // After a failure it is not sooner than that, whatever changes: the failed pass itself may have changed something.
    await (isRetry ? wait(pause, stop) : Promise.race([this.woken.promise, wait(pause, stop)]));
    enough.abort();
  }

  /** Returns how long to wait for a change. */
  private async pass(): Promise<number> {
    const { log, elapsed } = this.options;
    const snapshot = this.objects?.snapshot;
    if (snapshot === undefined) return PERIOD_MILLISECONDS;
    this.passStartedAt = elapsed();
    try {
      await this.release.refresh();
      await this.reconciler.reconcile(snapshot);
      this.lastFailure = "";
      return PERIOD_MILLISECONDS;
    } catch (failure) {
      if (this.options.signal.aborted) return 0;
      if (failure instanceof ReleaseChanged) throw failure;
      this.failures += 1;
      this.lastFailure = failure instanceof Error ? failure.message : String(failure);
      const pause = this.backoff.next(elapsed() - this.failedAt);
      this.failedAt = elapsed();
      log(`${this.lastFailure}; trying again in ${Math.round(pause)} ms`, "WARNING");
      return pause;
    } finally {
      this.passes += 1;
      this.passStartedAt = undefined;
      this.lastPassAt = elapsed();
    }
  }
}
