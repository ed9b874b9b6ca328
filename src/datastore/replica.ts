/**
 * A live copy of some kinds of records: list, watch, resume, list again when
 * the history is gone. The loops of the node agent, the controllers and the
 * operator compute from its snapshots; nothing else watches.
 *
 *   store ══ list, watch ══> Feed ── KindUpdate ──> Replica ── Update ──> consumer, consumer, ...
 *            (replica/feed.ts: the loop;            (merged for each of them at its own pace)
 *             replica/feed-copy.ts: the state)
 *
 * A snapshot is immutable and of one revision of the store, for all kinds if
 * they are watched together, otherwise for each kind. Consumers of some kinds
 * only (`part`) do not wait for the others, if each kind has its own watch: a kind
 * that cannot be listed (no CRD, no role) stops those who need it, and no others.
 */
import type { PluginError } from "../errors.ts";
import { type Clock, SYSTEM_CLOCK } from "./replica/clock.ts";
import { Feed, type FollowedStore, type ReplicaLimits, type SeenRevisions } from "./replica/feed.ts";
import type { KindUpdate } from "./replica/feed-copy.ts";
import type { KindSnapshot } from "./replica/kind-snapshot.ts";
import { type KindTable, planFeeds, type WatchGrouping } from "./replica/kinds.ts";
import { RefinedKind, type Refinement } from "./replica/refined-kind.ts";
import { type ReplicaStatus, worstOf } from "./replica/status.ts";
import { type RecordChange, Subscription } from "./replica/subscription.ts";

const NOTHING_SEEN: SeenRevisions = { find: () => undefined, note: () => {} };

const LIMITS: ReplicaLimits = {
  firstPauseMilliseconds: 100,
  longestPauseMilliseconds: 10_000,
  quietMilliseconds: 15 * 60_000,
  pageSize: 500,
  largestPageSize: 2_000,
};

export interface ReplicaOptions {
  /** Ends the replica and every iteration over its updates. */
  readonly signal: AbortSignal;
  readonly watches?: WatchGrouping;
  readonly clock?: Clock;
  /** Spreads the retries of many replicas: a number from 0 up to 1. */
  readonly random?: () => number;
  /** How many replicas like this one follow the store, as far as it is known: they spread their lists. Absent: few. */
  readonly peers?: () => number;
  readonly limits?: Partial<ReplicaLimits>;
  /** Absent: what consumers did with former states ended with the process. */
  readonly seen?: SeenRevisions;
  /** Called for each lost connection and each unreadable record. */
  readonly report?: (problem: PluginError) => void;
}

/** Kinds whose values depend on more than their records. */
export type Refinements<Values> = { readonly [Kind in keyof Values]?: Refinement<Values[Kind]> };

export type ReplicaSnapshot<Values> = { readonly [Kind in keyof Values]: KindSnapshot<Values[Kind]> };

/** What changed since the consumer's last update, in no particular order, and the state after it. */
export interface Update<Values> {
  readonly snapshot: ReplicaSnapshot<Values>;
  readonly changes: { readonly [Kind in keyof Values]: readonly RecordChange<Values[Kind]>[] };
}

export interface Replica<Values> {
  /** The latest state; `undefined` until the first list of every kind is complete. */
  readonly snapshot: ReplicaSnapshot<Values> | undefined;
  readonly status: ReplicaStatus;
  /**
   * Yields every record as the first update, once the first list is complete, and from then on what changed. A slow
   * consumer gets one merged update. Ends with either signal. Any number of consumers may iterate at once.
   */
  updates(signal?: AbortSignal): AsyncIterable<Update<Values>>;
  /** The same replica for those who need only these kinds: what they see does not depend on the others. */
  part<Kind extends keyof Values>(kinds: readonly Kind[]): Replica<Pick<Values, Kind>>;
  /** Refines the values of these keys again; nothing for a kind without a refinement. */
  refresh(kind: keyof Values, keys: Iterable<string>): void;
  /** Resolves after the signal has fired, when nothing is left open. Never rejects. */
  readonly ended: Promise<void>;
}

/** The store must stay open until the replica has ended. */
export function startReplica<Values>(
  store: FollowedStore,
  kinds: KindTable<Values>,
  options: ReplicaOptions & { readonly refinements?: Refinements<Values> },
): Replica<Values> {
  return new StoreReplica<Values>(store, kinds, options);
}

class StoreReplica<Values> implements Replica<Values> {
  readonly ended: Promise<void>;
  private readonly feeds: readonly { readonly kinds: ReadonlySet<PropertyKey>; readonly feed: Feed }[];
  private readonly snapshots = new Map<string, KindSnapshot<unknown>>();
  private readonly kinds: ReadonlySet<PropertyKey>;
  private readonly subscriptions = new Set<Subscription>();
  private readonly refined: ReadonlyMap<PropertyKey, RefinedKind>;
  private readonly report: (problem: PluginError) => void;
  private news = Promise.withResolvers<void>();

  constructor(
    store: FollowedStore,
    kinds: KindTable<Values>,
    private readonly options: ReplicaOptions & { readonly refinements?: Refinements<Values> },
  ) {
    const { signal: stop, clock = SYSTEM_CLOCK, random = Math.random, peers = () => 0, report = () => {} } = options;
    const limits = { ...LIMITS, ...options.limits };
    const seen = options.seen ?? NOTHING_SEEN;
    const publish = (updates: readonly KindUpdate[]) => this.publish(updates);
    this.report = report;
    this.kinds = new Set(Object.keys(kinds));
    const refinements: readonly [string, Refinement<unknown>][] = Object.entries(options.refinements ?? {});
    this.refined = new Map(refinements.map(([kind, means]) => [kind, new RefinedKind(kind, means)]));
    this.feeds = planFeeds(kinds, options.watches ?? "together").map((plan) => ({
      kinds: new Set<PropertyKey>(plan.kinds.keys()),
      feed: new Feed(plan, { store, stop, clock, random, peers, limits, seen, publish, report }),
    }));
    this.ended = Promise.all(this.feeds.map(({ feed }) => feed.run())).then(() => {});
  }

  get snapshot(): ReplicaSnapshot<Values> | undefined {
    return this.snapshotOf(this.kinds);
  }

  get status(): ReplicaStatus {
    return this.statusOf(this.kinds);
  }

  updates(signal?: AbortSignal): AsyncGenerator<Update<Values>> {
    return this.updatesOf(this.kinds, signal);
  }

  part<Kind extends keyof Values>(kinds: readonly Kind[]): Replica<Pick<Values, Kind>> {
    return new ReplicaPart<Pick<Values, Kind>>(this, new Set<PropertyKey>(kinds));
  }

  refresh(kind: PropertyKey, keys: Iterable<string>): void {
    const update = this.refined.get(kind)?.refresh(keys);
    if (update !== undefined) this.deliver([update]);
  }

  snapshotOf<Part>(kinds: ReadonlySet<PropertyKey>): ReplicaSnapshot<Part> | undefined {
    const listed = this.listed(kinds);
    return listed.size === kinds.size ? asTable<ReplicaSnapshot<Part>>(listed) : undefined;
  }

  statusOf(kinds: ReadonlySet<PropertyKey>): ReplicaStatus {
    const feeds = this.feeds.filter((each) => !each.kinds.isDisjointFrom(kinds));
    return worstOf(feeds.map(({ feed }) => feed.status.current));
  }

  async *updatesOf<Part>(kinds: ReadonlySet<PropertyKey>, signal?: AbortSignal): AsyncGenerator<Update<Part>> {
    const stop = signal === undefined ? this.options.signal : AbortSignal.any([signal, this.options.signal]);
    const wake = () => this.wakeConsumers();
    stop.addEventListener("abort", wake, { once: true });
    let subscription: Subscription | undefined;
    try {
      while (!stop.aborted) {
        const { promise } = this.news;
        subscription ??= this.subscribe(kinds);
        if (subscription?.isDue) {
          const changes = subscription.take();
          yield { snapshot: asTable(this.listed(kinds)), changes: asTable(changes) };
        } else await promise;
      }
    } finally {
      stop.removeEventListener("abort", wake);
      if (subscription !== undefined) this.subscriptions.delete(subscription);
    }
  }

  private listed(kinds: ReadonlySet<PropertyKey>): ReadonlyMap<string, KindSnapshot<unknown>> {
    return new Map([...this.snapshots].filter(([kind]) => kinds.has(kind)));
  }

  private subscribe(kinds: ReadonlySet<PropertyKey>): Subscription | undefined {
    const listed = this.listed(kinds);
    if (listed.size < kinds.size) return undefined;
    const subscription = new Subscription(listed);
    this.subscriptions.add(subscription);
    return subscription;
  }

  private publish(updates: readonly KindUpdate[]): void {
    this.deliver(
      updates.flatMap((update) => {
        const refined = this.refined.get(update.kind);
        return (refined === undefined ? update : refined.update(update)) ?? [];
      }),
    );
  }

  private deliver(updates: readonly KindUpdate[]): void {
    for (const update of updates) {
      const { kind, snapshot, changed } = update;
      this.snapshots.set(kind, snapshot);
      for (const subscription of this.subscriptions) subscription.add(update);
      for (const key of changed) this.reportUnreadable(snapshot, key);
    }
    this.wakeConsumers();
  }

  private reportUnreadable(snapshot: KindSnapshot<unknown>, key: string): void {
    const held = snapshot.held(key);
    if (held?.kind === "unreadable") this.report(held.failure);
  }

  private wakeConsumers(): void {
    const { resolve } = this.news;
    this.news = Promise.withResolvers<void>();
    resolve();
  }
}

class ReplicaPart<Values> implements Replica<Values> {
  constructor(
    private readonly whole: Pick<StoreReplica<unknown>, "ended" | "refresh" | "snapshotOf" | "statusOf" | "updatesOf">,
    private readonly kinds: ReadonlySet<PropertyKey>,
  ) {}

  get ended(): Promise<void> {
    return this.whole.ended;
  }

  get snapshot(): ReplicaSnapshot<Values> | undefined {
    return this.whole.snapshotOf(this.kinds);
  }

  get status(): ReplicaStatus {
    return this.whole.statusOf(this.kinds);
  }

  updates(signal?: AbortSignal): AsyncIterable<Update<Values>> {
    return this.whole.updatesOf(this.kinds, signal);
  }

  part<Kind extends keyof Values>(kinds: readonly Kind[]): Replica<Pick<Values, Kind>> {
    return new ReplicaPart<Pick<Values, Kind>>(this.whole, new Set<PropertyKey>(kinds));
  }

  refresh(kind: keyof Values, keys: Iterable<string>): void {
    this.whole.refresh(kind, keys);
  }
}

/** The only cast of a replica: TypeScript cannot keep the type of each row in a loop over the table. */
function asTable<Table>(rows: ReadonlyMap<string, unknown>): Table {
  return Object.fromEntries(rows) as Table;
}
