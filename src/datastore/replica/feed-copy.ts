/**
 * The state that one list and one watch maintain: which events are applied, when
 * a list is complete, what changed. Synchronous, and makes no requests.
 *
 *   pages of a list ──> events since the first page ──> bookmark at or past the last page: published
 *                       events ──────────────────────> bookmark: published
 *
 * The pages of a list may have different revisions, so the events since the
 * first page are replayed on top of them, and nothing is published in between.
 * Events are applied only at their bookmark: if the connection is lost before,
 * they are delivered again.
 */
import { type DatastoreEvent, HistoryGone } from "../datastore.ts";
import type { Page } from "../pages.ts";
import { type HeldRecord, holdEntry, isSameToConsumers, KindSnapshot } from "./kind-snapshot.ts";
import type { FeedPlan, KindSource } from "./kinds.ts";

type Held = HeldRecord<unknown>;
type RecordEvent = Exclude<DatastoreEvent, { readonly kind: "bookmark" }>;

/** One kind at a new revision, and the keys whose record has changed. */
export interface KindUpdate {
  readonly kind: string;
  readonly snapshot: KindSnapshot<unknown>;
  readonly changed: readonly string[];
}

/** The revisions of the first and of the last page, the highest that they and the events since show, and the records so far. */
interface Listing {
  readonly first: bigint;
  last: bigint;
  highest: bigint;
  readonly records: ReadonlyMap<string, Map<string, Held>>;
}

/** The current records of a kind, and the events that wait for their bookmark. */
interface KindCopy {
  readonly kind: string;
  readonly source: KindSource<unknown>;
  readonly pending: Map<string, RecordEvent>;
  snapshot: KindSnapshot<unknown>;
}

export class FeedCopy {
  private readonly kinds: readonly KindCopy[];
  private listing: Listing | undefined;
  private position: bigint | undefined;
  /**
   * The highest revision of what was published: the next list may not be older. It is above the bookmark if a store watches
   * several collections together and one is ahead. Each list begins it anew: a restored store has lower revisions.
   */
  private published: bigint | undefined;
  /** What was published is newer than the bookmark for these keys, if a store watches several lists together. */
  private readonly ahead = new Map<string, bigint>();

  /** `published`: by an earlier process, if that is known. */
  constructor(plan: FeedPlan, published?: string) {
    if (published !== undefined) this.published = BigInt(published);
    this.kinds = Array.from(plan.kinds, ([kind, source]) => ({
      kind,
      source,
      pending: new Map(),
      snapshot: KindSnapshot.empty(),
    }));
  }

  /** The bookmark to resume from; `undefined` if everything must be listed. */
  get bookmark(): string | undefined {
    return this.position === undefined ? undefined : String(this.position);
  }

  /** The revision of what consumers have seen, also while everything is listed again. */
  get publishedRevision(): string | undefined {
    return this.published === undefined ? undefined : String(this.published);
  }

  /** Something was listed that is not published yet. */
  get isListing(): boolean {
    return this.listing !== undefined;
  }

  /** Adds a page of a new list; the first page starts it. */
  addPage(kind: string, { entries, revision, highest = revision }: Page): void {
    const moment = BigInt(revision);
    this.listing ??= {
      first: moment,
      last: moment,
      highest: moment,
      records: new Map(this.kinds.map((each) => [each.kind, new Map()])),
    };
    this.listing.last = highestOf([this.listing.last, moment]);
    this.listing.highest = highestOf([this.listing.highest, BigInt(highest)]);
    const copy = this.kinds.find((each) => each.kind === kind);
    const records = this.listing.records.get(kind);
    if (copy === undefined || records === undefined) return;
    for (const entry of entries) {
      const held = holdEntry(entry, copy.source, copy.snapshot.held(entry.key));
      if (held !== undefined) records.set(entry.key, held);
    }
  }

  /** All pages were read: the events since the first of them must be replayed. */
  endList(): void {
    this.position = this.listing?.first;
  }

  /** An event from before the bookmark, or from before an event already collected, is a duplicate. */
  collect(event: RecordEvent): void {
    const key = keyOf(event);
    const pending = this.kinds.find(({ source }) => key.startsWith(source.prefix))?.pending;
    const collected = pending?.get(key);
    const known = collected === undefined ? (this.ahead.get(key) ?? this.position) : revisionOf(collected);
    if (known !== undefined && revisionOf(event) > known) pending?.set(key, event);
  }

  /** Every event up to this revision was collected. Returns what is published: nothing while a list is incomplete. */
  reach(revision: string): readonly KindUpdate[] | undefined {
    const reached = BigInt(revision);
    // Only a store that was restored from an older copy counts backwards.
    if (this.position === undefined || reached < this.position) throw new HistoryGone(this.bookmark ?? revision);
    this.position = reached;
    const { listing } = this;
    const waiting = this.kinds.flatMap(({ pending }) => Array.from(pending.values(), revisionOf));
    const highest = highestOf([listing?.highest ?? this.published ?? reached, reached, ...waiting]);
    if (listing !== undefined) {
      listing.highest = highest;
      for (const copy of this.kinds) replay(copy, listing.records.get(copy.kind));
      if (reached < listing.last) return undefined;
      this.listing = undefined;
      for (const { key, revision: at } of heldIn(listing)) this.noteAhead(key, BigInt(at));
    }
    this.published = highest;
    for (const [key, at] of this.ahead) if (at <= reached) this.ahead.delete(key);
    for (const { pending } of this.kinds) for (const [key, event] of pending) this.noteAhead(key, revisionOf(event));
    return this.kinds.map((copy) => {
      const changes = listing === undefined ? pendingChanges(copy) : difference(copy, listing.records.get(copy.kind));
      copy.pending.clear();
      const before = copy.snapshot;
      copy.snapshot = before.with(revision, changes);
      const isNews = ([key, held]: readonly [string, Held | undefined]) =>
        !isSameToConsumers(copy.source, before.held(key), held);
      const changed = Array.from(changes).filter(isNews);
      return { kind: copy.kind, snapshot: copy.snapshot, changed: changed.map(([key]) => key) };
    });
  }

  private noteAhead(key: string, revision: bigint): void {
    if (this.position !== undefined && revision > this.position) this.ahead.set(key, revision);
  }

  /** The connection is lost: what has no bookmark yet is delivered again. */
  interrupt(): void {
    for (const { pending } of this.kinds) pending.clear();
  }

  /** Neither the history since the bookmark nor an incomplete list can be used: list everything again. */
  startOver(): void {
    this.interrupt();
    this.ahead.clear();
    this.position = undefined;
    this.listing = undefined;
  }
}

/**
 * Applies the waiting events to the listed records. A page may contain a later version of a record: the event that
 * created it follows before anything is published.
 */
function replay({ pending, source, snapshot }: KindCopy, listed: Map<string, Held> = new Map()): void {
  for (const [key, event] of pending) {
    const held = event.kind === "put" ? holdEntry(event.entry, source, snapshot.held(key)) : undefined;
    if (held === undefined) listed.delete(key);
    else listed.set(key, held);
  }
  pending.clear();
}

function pendingChanges({ pending, source, snapshot }: KindCopy): ReadonlyMap<string, Held | undefined> {
  const changes = new Map<string, Held | undefined>();
  for (const [key, event] of pending) {
    const before = snapshot.held(key);
    const held = event.kind === "put" ? holdEntry(event.entry, source, before) : undefined;
    if (held !== before) changes.set(key, held);
  }
  return changes;
}

function difference(
  { snapshot }: KindCopy,
  listed: ReadonlyMap<string, Held> = new Map(),
): ReadonlyMap<string, Held | undefined> {
  const changes = new Map<string, Held | undefined>();
  for (const key of snapshot.keys()) if (!listed.has(key)) changes.set(key, undefined);
  for (const [key, held] of listed) if (snapshot.held(key) !== held) changes.set(key, held);
  return changes;
}

function heldIn({ records }: Listing): readonly Held[] {
  return Array.from(records.values()).flatMap((held) => [...held.values()]);
}

function highestOf(revisions: readonly bigint[]): bigint {
  let highest = 0n;
  for (const each of revisions) if (each > highest) highest = each;
  return highest;
}

function keyOf(event: RecordEvent): string {
  return event.kind === "put" ? event.entry.key : event.key;
}

function revisionOf(event: RecordEvent): bigint {
  return BigInt(event.kind === "put" ? event.entry.revision : event.revision);
}
