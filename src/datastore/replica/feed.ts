/**
 * Lists, watches, resumes, and lists again when the history is gone: the loop
 * around one `FeedCopy`. Only its signal ends it.
 */
import { PluginError } from "../../errors.ts";
import { unlessAborted } from "../../timers.ts";
import { type Datastore, type DatastoreEvent, HistoryGone } from "../datastore.ts";
import { pagesBelow } from "../pages.ts";
import { Backoff, type BackoffLimits, type Clock, spreadOver } from "./clock.ts";
import { FeedCopy, type KindUpdate } from "./feed-copy.ts";
import type { FeedPlan } from "./kinds.ts";
import { FeedStatus } from "./status.ts";

export interface ReplicaLimits extends BackoffLimits {
  /** A watch that delivers nothing for this time is opened again; etcd reports progress every ten minutes. */
  readonly quietMilliseconds: number;
  /** Of the first page of a list. */
  readonly pageSize: number;
  readonly largestPageSize: number;
}

type Bookmark = Extract<DatastoreEvent, { readonly kind: "bookmark" }>;

/** The part of a datastore that a replica needs. */
export type FollowedStore = Pick<Datastore, "read" | "watch">;

/** What consumers have seen of the store, kept for as long as what they did with it lasts: they must not see an older state. */
export interface SeenRevisions {
  /** Of what is watched below this prefix; `undefined`: nothing. */
  find(watched: string): string | undefined;
  /** Called before consumers see changes up to this revision. */
  note(watched: string, revision: string): void;
}

export interface FeedMeans {
  readonly store: FollowedStore;
  readonly stop: AbortSignal;
  readonly clock: Clock;
  readonly random: () => number;
  /** How many replicas like this one follow the store: they must not all list it at the same moment. */
  readonly peers: () => number;
  readonly limits: ReplicaLimits;
  readonly seen: SeenRevisions;
  readonly publish: (updates: readonly KindUpdate[]) => void;
  readonly report: (problem: PluginError) => void;
}

export class Feed {
  readonly status: FeedStatus;
  private readonly copy: FeedCopy;
  private readonly backoff: Backoff;
  private historyGoneAt = Number.NEGATIVE_INFINITY;
  /** The bookmark after the last list. */
  private listed: string | undefined;
  /** How many lists in succession could not be watched: they are older than the history, as those of a server that is behind. */
  private tooOld = 0;

  constructor(
    private readonly plan: FeedPlan,
    private readonly means: FeedMeans,
  ) {
    this.copy = new FeedCopy(plan, means.seen.find(plan.watched));
    this.status = new FeedStatus(means.clock.now());
    this.backoff = new Backoff(means.limits, means.random);
  }

  /** Resolves after the signal, when nothing is left open. */
  async run(): Promise<void> {
    const { stop, clock } = this.means;
    while (!stop.aborted) {
      try {
        if (this.copy.bookmark === undefined) await this.list();
        await this.watch();
      } catch (error) {
        if (stop.aborted) return;
        if (error instanceof HistoryGone && this.copy.bookmark === this.listed) this.tooOld += 1;
        const isRoutine = error instanceof HistoryGone && this.isRoutine();
        await clock.wait(isRoutine ? this.listAgain(error) : this.fail(error), stop);
      }
    }
  }

  /**
   * The history ends whenever etcd is compacted, or the API server starts again or opens the storage of a changed CRD. If it ends
   * again soon, something else is wrong.
   */
  private isRoutine(): boolean {
    const { clock, limits } = this.means;
    const isFirst = clock.now() - this.historyGoneAt >= limits.longestPauseMilliseconds;
    this.historyGoneAt = clock.now();
    return isFirst;
  }

  /**
   * Returns how long to wait before: what has changed meanwhile is not known, but an API server that starts again tells this
   * to all replicas at once.
   */
  private listAgain(gone: HistoryGone): number {
    const { clock, random, peers } = this.means;
    this.copy.startOver();
    this.status.lose(clock.now(), gone);
    return random() * spreadOver(peers(), "lists");
  }

  /** Returns how long to wait before the next attempt. */
  private fail(error: unknown): number {
    const { clock, report, random, peers } = this.means;
    const problem = asProblem(error);
    // A server that ends, ends the watches of all.
    const pause = this.backoff.next(this.status.wellFor(clock.now())) + random() * spreadOver(peers(), "watches");
    if (error instanceof HistoryGone) this.copy.startOver();
    this.status.lose(clock.now(), problem);
    report(problem);
    return pause;
  }

  private async list(): Promise<void> {
    const { store, stop, limits } = this.means;
    // A read cannot be aborted.
    const reader = { read: (...asked: Parameters<FollowedStore["read"]>) => unlessAborted(store.read(...asked), stop) };
    let moment: string | undefined;
    this.copy.startOver();
    const { publishedRevision: notOlderThan } = this.copy;
    // The first may be that of a server that has just been started again.
    const isPresentNeeded = this.tooOld > 1;
    const enough = isPresentNeeded ? {} : { enough: notOlderThan === undefined ? {} : { notOlderThan } };
    for (const [kind, { prefix }] of this.plan.kinds) {
      const paging = { size: limits.pageSize, largest: limits.largestPageSize, at: moment ?? "first page", ...enough };
      for await (const page of pagesBelow(reader, prefix, paging)) {
        moment ??= page.revision;
        this.copy.addPage(kind, page);
      }
    }
    this.copy.endList();
    this.listed = this.copy.bookmark;
  }

  private async watch(): Promise<void> {
    const { store, stop, clock } = this.means;
    const begun = clock.now();
    const ending = new AbortController();
    const signal = AbortSignal.any([stop, ending.signal]);
    const quiet = this.endWhenQuiet(begun, ending);
    try {
      for await (const event of store.watch(this.plan.watched, this.copy.bookmark ?? "0", signal)) {
        if (event.kind === "bookmark") this.reach(event);
        else this.copy.collect(event);
      }
      // Opening a quiet watch again is routine, but every watch starts with a bookmark.
      if (!signal.aborted) throw unwatchable("the watch has ended");
      if (!stop.aborted && this.status.heardAt < begun) throw unwatchable("the watch delivers nothing");
    } finally {
      this.copy.interrupt();
      ending.abort();
      await quiet;
    }
  }

  private reach({ revision, isUnheard, isFinal }: Bookmark): void {
    const { clock, publish } = this.means;
    const { isListing } = this.copy;
    const updates = this.copy.reach(revision);
    if (!isUnheard) this.status.hear(isFinal ? Number.POSITIVE_INFINITY : clock.now());
    if (updates === undefined) return;
    if (revision !== this.listed) this.tooOld = 0;
    if (!isUnheard) this.status.sync(clock.now());
    // A list may show that something is gone which an earlier process has shown.
    const isNews = isListing || updates.some(({ changed }) => changed.length > 0);
    if (isNews) this.means.seen.note(this.plan.watched, this.copy.publishedRevision ?? revision);
    publish(updates);
  }

  private async endWhenQuiet(begun: number, ending: AbortController): Promise<void> {
    const { clock, limits, stop } = this.means;
    const signal = AbortSignal.any([stop, ending.signal]);
    const left = () => Math.max(begun, this.status.heardAt) + limits.quietMilliseconds - clock.now();
    while (!signal.aborted && left() > 0) await clock.wait(Math.min(left(), limits.quietMilliseconds), signal);
    ending.abort();
  }
}

function unwatchable(reason: string): PluginError {
  return new PluginError("datastore-unavailable", `Cannot follow the datastore: ${reason}`);
}

function asProblem(error: unknown): PluginError {
  if (error instanceof PluginError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new PluginError("datastore-unavailable", `Cannot follow the datastore: ${reason}`, { cause: error });
}
