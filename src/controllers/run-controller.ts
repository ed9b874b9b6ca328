/**
 * Runs one controller: follows the facts, and works off the keys that they concern, one after another.
 *
 * A standby does all of this but the writing: its queue is full and its facts are fresh when it becomes the leader.
 */
import type { Datastore } from "../datastore/datastore.ts";
import { DatastoreLocked } from "../ipam/cluster.ts";
import type { Leadership } from "../kube/election/leadership.ts";
import type { Controller, Proposal } from "./controller.ts";
import { type Facts, type FactsUpdate, factsOf, type Replicas } from "./facts.ts";
import { LOOK_MILLISECONDS, Removals } from "./removals.ts";
import { WorkQueue } from "./work-queue.ts";

export interface ControllerMeans {
  /** Refuses to write while it is locked. */
  readonly store: Pick<Datastore, "commit">;
  readonly replicas: Replicas;
  readonly leadership: Leadership;
  /** The orchestrator's objects, read from its API itself. */
  readonly orchestrator: Pick<Datastore, "read">;
  readonly periodMilliseconds: number;
  readonly signal: AbortSignal;
  readonly elapsed: () => number;
  readonly now: () => Date;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** What a controller has done, for health and metrics. */
export interface ControllerState {
  readonly name: string;
  readonly queueDepth: number;
  readonly failingKeys: number;
  readonly writes: number;
  readonly errors: number;
  /** Records that would be deleted, and are held because they are too many at once. */
  readonly heldRemovals: number;
  /** Everything that it follows was listed once. */
  readonly isListed: boolean;
  /** All keys of the first list were worked off, or are waiting after a failure. */
  readonly isSynced: boolean;
}

export class RunningController {
  private readonly queue: WorkQueue;
  private readonly removals: Removals;
  /** Keys whose deletion is held: neither waiting nor failing. */
  private readonly heldKeys = new Set<string>();
  private writes = 0;
  private errors = 0;
  private isSynced = false;
  /** The last write found the datastore locked. */
  private isLocked = false;
  /** Both sides were listed: what is missing in one of them is missing. */
  private readonly listed = Promise.withResolvers<void>();

  constructor(
    private readonly controller: Controller,
    private readonly means: ControllerMeans,
  ) {
    this.queue = new WorkQueue(means);
    this.removals = new Removals(`records of controller ${controller.name}`, means);
  }

  get state(): ControllerState {
    const { writes, errors, isSynced } = this;
    const { depth, failing } = this.queue;
    const isListed = factsOf(this.means.replicas) !== undefined;
    const [name, heldRemovals] = [this.controller.name, this.means.leadership.isLeading() ? this.removals.held : 0];
    return { name, queueDepth: depth, failingKeys: failing, writes, errors, heldRemovals, isListed, isSynced };
  }

  /** Resolves when the signal is aborted. */
  async run(): Promise<void> {
    await Promise.all([
      this.followOrchestrator(),
      this.followStored(),
      this.reconcile(),
      this.lookAgain(),
      this.work(),
    ]);
  }

  private async followOrchestrator(): Promise<void> {
    const { replicas, signal } = this.means;
    for await (const { changes } of replicas.orchestrator.updates(signal))
      this.add({ orchestrator: changes, stored: {} });
  }

  private async followStored(): Promise<void> {
    const { replicas, signal } = this.means;
    for await (const { changes } of replicas.stored.updates(signal)) this.add({ orchestrator: {}, stored: changes });
  }

  private add(update: FactsUpdate): void {
    for (const key of this.controller.keysOf(update)) this.queue.add(key);
    if (factsOf(this.means.replicas) !== undefined) this.listed.resolve();
  }

  /** Every key again, whatever the watches reported. */
  private async reconcile(): Promise<void> {
    const { replicas, wait, signal, periodMilliseconds } = this.means;
    while (!signal.aborted && periodMilliseconds > 0) {
      await wait(periodMilliseconds, signal);
      const facts = factsOf(replicas);
      if (signal.aborted || facts === undefined) continue;
      for (const key of this.controller.allKeys(facts)) this.queue.add(key);
    }
  }

  private async work(): Promise<void> {
    const { leadership, signal } = this.means;
    signal.addEventListener("abort", () => this.listed.resolve(), { once: true });
    await this.listed.promise;
    while (!signal.aborted) {
      if (this.queue.isWorkedOff) this.isSynced = true;
      const key = await this.queue.take(signal);
      if (key === undefined) return;
      await leadership.whenLeading(signal);
      if (!signal.aborted) await this.workOn(key);
    }
  }

  private async workOn(key: string): Promise<void> {
    const facts = factsOf(this.means.replicas);
    const proposal = facts === undefined ? undefined : this.controller.decide(key, facts);
    if (facts === undefined || proposal === undefined) return this.queue.succeeded(key);
    if (this.isHeld(key, proposal, facts)) return this.hold(key);
    try {
      await this.carryOut(key, proposal);
      this.isLocked = false;
    } catch (failure) {
      this.reportFailure(failure, this.queue.failed(key));
    }
  }

  /** Whether the deletion waits: it is one of too many at once. */
  private isHeld(key: string, { changes }: Proposal, facts: Facts): boolean {
    if (!changes.some(({ kind }) => kind === "delete")) return false;
    if (!this.removals.isKnown(key, this.means.elapsed())) this.look(facts);
    return this.removals.isHeld(key);
  }

  private async hold(key: string): Promise<void> {
    this.queue.succeeded(key);
    this.heldKeys.add(key);
    // Thousands of them must not keep timers, such as that of the lease, from running.
    await this.means.wait(0, this.means.signal);
  }

  private look(facts: Facts): void {
    const removals = this.controller.removals?.(facts);
    if (removals === undefined) return;
    const { keys: identities, ...shares } = removals;
    this.removals.look({ identities, ...shares, now: this.means.elapsed() }, facts);
  }

  /** Looks count if they are in a row: also those that find that everything is there again. */
  private async lookAgain(): Promise<void> {
    const { replicas, wait, signal } = this.means;
    while (!signal.aborted && this.controller.removals !== undefined) {
      await wait(LOOK_MILLISECONDS, signal);
      const facts = factsOf(replicas);
      if (signal.aborted || facts === undefined) continue;
      if (this.removals.isRemembering) this.look(facts);
      for (const key of this.heldKeys) {
        if (this.removals.isHeld(key)) continue;
        this.heldKeys.delete(key);
        this.queue.add(key);
      }
    }
  }

  /** A lock is not an error, and is logged once. */
  private reportFailure(failure: unknown, pause: number): void {
    const isLocked = failure instanceof DatastoreLocked;
    if (isLocked && this.isLocked) return;
    this.isLocked = isLocked;
    if (!isLocked) this.errors += 1;
    const message = failure instanceof Error ? failure.message : String(failure);
    const next = isLocked ? "waiting until it is unlocked" : `trying again in ${pause} ms`;
    this.means.log(`${this.controller.name}: ${message}; ${next}`, "WARNING");
  }

  private async carryOut(key: string, { changes, reason, confirm }: Proposal): Promise<void> {
    const { store, leadership, log } = this.means;
    // The facts are old: they will show the object, and the key is decided again.
    if (confirm !== undefined && !(await this.isAbsent(confirm.absent))) return void this.queue.failed(key);
    // The last moment: a leader that lost its lease while it asked does not write.
    if (!leadership.isLeading()) return this.queue.add(key);
    const written = await store.commit(changes);
    // Another wrote meanwhile: the facts will show what, and the key is decided again.
    if (!written.ok) return void this.queue.failed(key);
    this.writes += 1;
    this.queue.succeeded(key);
    log(`${this.controller.name}: ${reason}`, "INFO");
  }

  private async isAbsent(key: string): Promise<boolean> {
    const { answers } = await this.means.orchestrator.read([{ kind: "key", key }]);
    return answers.every((found) => found.length === 0);
  }
}
