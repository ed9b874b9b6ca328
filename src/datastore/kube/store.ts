/**
 * The orchestrator's API as a datastore: one object per record, one request per
 * object.
 *
 *   read     a key: GET; a prefix: a list, narrowed down by a selector if the kind has one
 *   commit   one change after another: POST, PUT at a resourceVersion, DELETE with preconditions
 *   watch    of one collection, or of several together
 *
 * A revision is a resourceVersion. The store knows no kind: `KindMapping` says
 * where the records of a kind are and what they look like.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { ServerClock, type ServerTime } from "../../server-clock.ts";
import { aborted, SYSTEM_TIMERS, type Timers } from "../../timers.ts";
import { commitEffect } from "../commit-effect.ts";
import type {
  Change,
  Datastore,
  DatastoreEvent,
  Decide,
  Entry,
  OrderedChange,
  Snapshot,
  Transacted,
  Wanted,
  Written,
} from "../datastore.ts";
import { commitInOrder } from "../ordered-changes.ts";
import { transactOneByOne } from "../transact-one-by-one.ts";
import { type Api, type ApiObject, parseObject } from "./api.ts";
import type { Observer } from "./copying-store.ts";
import { type Collection, type KindMapping, mappingOf, mappingsBelow } from "./kind-mapping.ts";
import { KnownObjects } from "./known-objects.ts";
import { currentRevision, highestRevision, Lists, lowestRevision } from "./lists.ts";
import { StreamedLists } from "./streamed-lists.ts";
import { watchTogether } from "./watch-together.ts";
import { type Outcome, readObject, sendWriting, type WritingChange, write } from "./writes.ts";

/** Reads at once: more would only wait in the API server's queue. */
const READS_AT_ONCE = 32;
/** An unconditional put that others overtake so often can only be a bug. */
const PUTS = 100;

export interface KubeStoreMeans {
  readonly api: Api;
  readonly mappings: readonly KindMapping[];
  readonly close: () => Promise<void>;
  /** Told about records that responses show. */
  readonly observer?: Observer;
  readonly timers?: Timers;
  /** Milliseconds that never go back. */
  readonly elapsed?: () => number;
  /** Milliseconds of the clock of this host; absent with `elapsed`: no jump of it is noticed. */
  readonly wall?: () => number;
}

interface ReadRecords {
  readonly entries: readonly Entry[];
  /** Of a list. */
  readonly revision?: string;
  readonly highest?: string;
}

const NOTHING: ReadRecords = { entries: [] };

export function openKubeStore(means: KubeStoreMeans): Datastore {
  const serverClock = new ServerClock(means.elapsed, means.wall ?? means.elapsed);
  return new KubeDatastore({ ...means, api: hearing(means.api, serverClock) }, serverClock);
}

/** Each response tells the time of the server. */
function hearing(api: Api, clock: ServerClock): Api {
  return {
    request: async (request) => {
      const response = await api.request(request);
      clock.hear(response.date);
      return response;
    },
    watch: (path, query, signal) => api.watch(path, query, signal),
  };
}

class KubeDatastore implements Datastore {
  readonly atomicity = "one object";
  readonly isOrchestratorApi = true;
  private readonly known = new KnownObjects();
  private readonly streamed: StreamedLists;
  private readonly lists: Lists;
  private readonly closing = new AbortController();
  private readonly silent = new Map<string, number>();
  /** For the present revision. */
  private asking: Promise<string> | undefined;
  /** What was seen of them was used. */
  private readonly seen = new WeakSet<Wanted>();

  constructor(
    private readonly means: KubeStoreMeans,
    private readonly serverClock: ServerClock,
  ) {
    const { api, mappings } = means;
    this.streamed = new StreamedLists(api, this.closing.signal);
    this.lists = new Lists({ api, streamed: this.streamed, mappings, entryOf: this.entryOf });
  }

  async read(wanted: readonly Wanted[]): Promise<Snapshot> {
    if (wanted.length === 0) return { revision: await this.revision(), answers: [] };
    const found = new Map<Wanted, ReadRecords>();
    for (const group of this.inOrder(wanted)) {
      for (let start = 0; start < group.length; start += READS_AT_ONCE) {
        const some = group.slice(start, start + READS_AT_ONCE);
        const read = await Promise.all(some.map((each) => this.readOne(each)));
        some.forEach((each, index) => void found.set(each, read[index] ?? NOTHING));
      }
    }
    const read = wanted.map((each) => found.get(each) ?? NOTHING);
    return {
      revision: lowestRevision(read.flatMap(({ revision }) => revision ?? [])),
      highest: highestRevision(read.flatMap(({ highest }) => highest ?? [])),
      answers: read.map(({ entries }) => entries),
    };
  }

  clock(): ServerTime {
    return this.serverClock.now();
  }

  prefetch(prefixes: readonly string[]): void {
    for (const prefix of prefixes) this.lists.prefetch(prefix);
  }

  /** All at once, unless some have to be read after others. */
  private inOrder(wanted: readonly Wanted[]): readonly (readonly Wanted[])[] {
    const { mappings } = this.means;
    const isOf = (order: KindMapping["order"]) => (each: Wanted) =>
      each.kind === "key" && mappingOf(mappings, each.key).order === order;
    if (!wanted.some(isOf("first"))) return [wanted];
    return [wanted.filter((each) => !isOf("last")(each)), wanted.filter(isOf("last"))];
  }

  commit(changes: readonly OrderedChange[]): Promise<Written> {
    const protects = this.protects(changes);
    return commitInOrder(changes, async ([change]) => {
      if (change === undefined) return { ok: true, revision: await this.revision() };
      if (change.kind === "expect" && protects) return this.protect(change.key, change.revision);
      return commitEffect([change], () => this.commitOne(change));
    });
  }

  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    const isProtection = ({ key }: Change) => mappingOf(this.means.mappings, key).protection !== undefined;
    return transactOneByOne(
      this,
      wanted,
      decide,
      (expected, changes) => isProtection(expected) && this.protects(changes),
    );
  }

  /** Whether the expectations of a commit protect what it expects. */
  private protects(changes: readonly OrderedChange[]): boolean {
    const { mappings } = this.means;
    return changes.some(({ kind, key }) => kind === "create" && mappingOf(mappings, key).needsProtection === true);
  }

  async *watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    const { api, mappings } = this.means;
    const stop = AbortSignal.any([signal, this.closing.signal]);
    if (stop.aborted) return;
    const below = mappingsBelow(mappings, prefix);
    const watched = below.flatMap((each) =>
      each.mapping.collections(each.prefix).map((collection) => ({ mapping: each.mapping, collection, prefix })),
    );
    if (watched.length === 0 && below.length > 0) {
      // A kind that the API does not have: there will never be one.
      yield { kind: "bookmark", revision: from, isFinal: true };
      await aborted(stop);
      return;
    }
    if (watched.length === 0) {
      throw new PluginError("internal", `Cannot watch ${quoted(prefix)}: it is not the prefix of a kind`);
    }
    try {
      const { entryOf, lists, streamed, silent, currentTogether: current } = this;
      const { timers = SYSTEM_TIMERS } = this.means;
      yield* watchTogether(watched, from, { api, lists, streamed, entryOf, signal: stop, timers, silent, current });
    } catch (failure) {
      if (!stop.aborted) throw failure;
    }
  }

  async close(): Promise<void> {
    if (this.closing.signal.aborted) return;
    this.closing.abort();
    await this.means.close();
  }

  /** One request for all watches that ask while it is under way; one that may not be sent is no matter of the others. */
  private readonly currentTogether = async (collection: Collection): Promise<string> => {
    const { api } = this.means;
    const shared = this.asking;
    if (shared !== undefined) return shared.catch(() => currentRevision(api, collection));
    const asking = currentRevision(api, collection);
    this.asking = asking;
    try {
      return await asking;
    } finally {
      this.asking = undefined;
    }
  };

  private readonly entryOf = (mapping: KindMapping, object: ApiObject): Entry | undefined => {
    const record = mapping.record(object);
    if (record === undefined) return undefined;
    const { key, value } = record;
    this.known.remember(key, object, mapping.neededStatus?.(object["status"]));
    if (value === undefined) return undefined;
    const entry = { key, value, revision: object.metadata.resourceVersion };
    this.means.observer?.saw(entry);
    return entry;
  };

  private async readOne(wanted: Wanted): Promise<ReadRecords> {
    if (wanted.kind === "prefix") return this.lists.read(wanted);
    const entry = await this.readKey(wanted.key, this.takeSeen(wanted));
    return { entries: entry ? [entry] : [] };
  }

  /** What the caller has seen replaces one read; the next one is an attempt after a lost race. */
  private takeSeen(wanted: Extract<Wanted, { readonly kind: "key" }>): string | undefined {
    if (wanted.seen === undefined || this.seen.has(wanted)) return undefined;
    this.seen.add(wanted);
    return wanted.seen;
  }

  private async readKey(key: string, seen?: string): Promise<Entry | undefined> {
    const mapping = mappingOf(this.means.mappings, key);
    const path = mapping.path(key);
    if (path === undefined) return undefined;
    const object = seen === undefined ? await readObject(this.means.api, path) : parseObject(seen, path);
    const entry = object && this.entryOf(mapping, object);
    if (entry?.key === key) return entry;
    this.means.observer?.missed(key);
    if (object !== undefined && !mapping.existsBefore) {
      throw new PluginError("record-malformed", `Cannot read ${quoted(key)}: "${path}" is an object of another record`);
    }
    return undefined;
  }

  /** The present revision, of any collection: all kinds share one count. */
  private async revision(): Promise<string> {
    const [collection] = this.means.mappings.flatMap(({ collections, prefix }) => collections(prefix));
    if (collection === undefined) throw new PluginError("internal", "Cannot read the revision: there are no kinds");
    return currentRevision(this.means.api, collection);
  }

  private async commitOne(change: Change): Promise<Written> {
    switch (change.kind) {
      case "expect":
        return this.expect(change.key, change.revision);
      case "put":
        return this.put(change.key, change.value);
      default:
        return writtenOf(change.key, await this.write(change));
    }
  }

  private async expect(key: string, expected: string | undefined): Promise<Written> {
    const current = (await this.readKey(key))?.revision;
    if (current === expected) return { ok: true, revision: current ?? "0" };
    if (expected === undefined) return { ok: false, reason: "exists", key };
    return { ok: false, reason: current === undefined ? "missing" : "stale", key };
  }

  /** Like an expectation, but the object stays until what this commit creates is gone. */
  private async protect(key: string, revision: string | undefined): Promise<Written> {
    const { api, mappings } = this.means;
    const { protection, path: pathOf } = mappingOf(mappings, key);
    const path = pathOf(key);
    const seen = revision === undefined ? undefined : this.known.find(key, revision);
    if (protection === undefined || path === undefined || revision === undefined || seen === undefined) {
      return this.expect(key, revision);
    }
    if (protection.isProtected(seen)) return { ok: true, revision };
    const outcome = await sendWriting(api, protection.protect(path, seen), { path, existing: seen });
    if (outcome.kind === "written" && outcome.object) this.known.remember(key, outcome.object);
    return writtenOf(key, outcome);
  }

  private async put(key: string, value: string): Promise<Written> {
    for (let attempt = 1; attempt <= PUTS; attempt++) {
      const current = await this.readKey(key);
      const change = current
        ? ({ kind: "update", key, value, revision: current.revision } as const)
        : ({ kind: "create", key, value } as const);
      const outcome = await this.write(change);
      if (outcome.kind === "written") return writtenOf(key, outcome);
    }
    throw new PluginError("try-again-later", `Cannot write ${quoted(key)}: lost the race against others ${PUTS} times`);
  }

  private async write(change: WritingChange): Promise<Outcome> {
    const { api, mappings } = this.means;
    const { key } = change;
    const mapping = mappingOf(mappings, key);
    const path = mapping.path(key);
    if (path === undefined) {
      if (change.kind !== "create") return { kind: "refused", reason: "missing" };
      // The kind knows why it cannot be stored.
      mapping.create(key, change.value, undefined);
      throw new PluginError("internal", `Cannot store ${quoted(key)} in the Kubernetes API: there is no place for it`);
    }
    const revision = change.kind === "create" ? undefined : change.revision;
    let existing = revision === undefined && !mapping.existsBefore ? undefined : this.known.find(key, revision);
    if (existing === undefined && (revision !== undefined || mapping.existsBefore)) {
      existing = await readObject(api, path);
      if (existing === undefined && revision !== undefined) return { kind: "refused", reason: "missing" };
      if (revision !== undefined && existing?.metadata.resourceVersion !== revision) {
        return { kind: "refused", reason: "stale" };
      }
    }
    const outcome = await write(api, { change, mapping, path, existing });
    this.means.observer?.missed(key);
    if (change.kind === "delete") await this.finishDeletion(mapping, path, outcome);
    else if (outcome.kind === "written" && outcome.object) this.entryOf(mapping, outcome.object);
    return outcome;
  }

  /** A protected object is only marked by its deletion: whoever deletes it knows that nothing needs it any more. */
  private async finishDeletion({ protection }: KindMapping, path: string, outcome: Outcome): Promise<void> {
    if (outcome.kind === "refused" || outcome.object === undefined || !protection?.isProtected(outcome.object)) return;
    const { object } = outcome;
    await sendWriting(this.means.api, protection.release(path, object), { path, existing: object });
  }
}

function writtenOf(key: string, outcome: Outcome): Written {
  if (outcome.kind === "refused") return { ok: false, reason: outcome.reason, key };
  return { ok: true, revision: outcome.revision };
}
