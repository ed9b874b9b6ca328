/**
 * The orchestrator's API as a datastore: one object per record, one request per
 * object.
 *
 *   read     a key: GET; a prefix: a list, narrowed down by a selector if the kind has one
 *   commit   one change after another: POST, PUT at a resourceVersion, DELETE with preconditions
 *   watch    of one collection
 *
 * A revision is a resourceVersion. The store knows no kind: `KindMapping` says
 * where the records of a kind are and what they look like.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
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
import type { Api, ApiObject } from "./api.ts";
import { type KindMapping, mappingOf, mappingsBelow } from "./kind-mapping.ts";
import { KnownObjects } from "./known-objects.ts";
import { currentRevision, Lists, lowestRevision } from "./lists.ts";
import { transactOneByOne } from "./transact-one-by-one.ts";
import { watchCollection } from "./watches.ts";
import { type Outcome, readObject, type WritingChange, write } from "./writes.ts";

/** Reads at once: more would only wait in the API server's queue. */
const READS_AT_ONCE = 32;
/** An unconditional put that others overtake so often can only be a bug. */
const PUTS = 100;

export interface KubeStoreMeans {
  readonly api: Api;
  readonly mappings: readonly KindMapping[];
  readonly close: () => Promise<void>;
}

export function openKubeStore(means: KubeStoreMeans): Datastore {
  return new KubeDatastore(means);
}

class KubeDatastore implements Datastore {
  readonly atomicity = "one object";
  private readonly known = new KnownObjects();
  private readonly lists: Lists;
  private readonly closing = new AbortController();

  constructor(private readonly means: KubeStoreMeans) {
    const { api, mappings } = means;
    this.lists = new Lists({ api, mappings, entryOf: this.entryOf });
  }

  async read(wanted: readonly Wanted[]): Promise<Snapshot> {
    if (wanted.length === 0) return { revision: await this.revision(), answers: [] };
    const answers: (readonly Entry[])[] = [];
    const revisions: string[] = [];
    for (let start = 0; start < wanted.length; start += READS_AT_ONCE) {
      const some = wanted.slice(start, start + READS_AT_ONCE);
      const read = await Promise.all(some.map((each) => this.readOne(each)));
      answers.push(...read.map(({ entries }) => entries));
      revisions.push(...read.flatMap(({ revision }) => revision ?? []));
    }
    return { revision: lowestRevision(revisions), answers };
  }

  commit(changes: readonly OrderedChange[]): Promise<Written> {
    return commitInOrder(changes, ([change]) =>
      change === undefined ? this.nothingToWrite() : commitEffect([change], () => this.commitOne(change)),
    );
  }

  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    return transactOneByOne(this, wanted, decide);
  }

  async *watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    const { api, mappings } = this.means;
    const stop = AbortSignal.any([signal, this.closing.signal]);
    if (stop.aborted) return;
    const [watched, ...others] = mappingsBelow(mappings, prefix).flatMap((each) =>
      each.mapping.collections(each.prefix).map((collection) => ({ mapping: each.mapping, collection, prefix })),
    );
    if (watched === undefined || others.length > 0) {
      throw new PluginError("internal", `Cannot watch ${quoted(prefix)}: it is not the prefix of one kind`);
    }
    try {
      yield* watchCollection(watched, from, { api, entryOf: this.entryOf, signal: stop });
    } catch (failure) {
      if (!stop.aborted) throw failure;
    }
  }

  async close(): Promise<void> {
    if (this.closing.signal.aborted) return;
    this.closing.abort();
    await this.means.close();
  }

  private readonly entryOf = (mapping: KindMapping, object: ApiObject): Entry | undefined => {
    const record = mapping.record(object);
    if (record === undefined) return undefined;
    const { key, value } = record;
    this.known.remember(key, object);
    return value === undefined ? undefined : { key, value, revision: object.metadata.resourceVersion };
  };

  private async readOne(wanted: Wanted): Promise<{ readonly entries: readonly Entry[]; readonly revision?: string }> {
    if (wanted.kind === "prefix") return this.lists.read(wanted);
    const entry = await this.readKey(wanted.key);
    return { entries: entry ? [entry] : [] };
  }

  private async readKey(key: string): Promise<Entry | undefined> {
    const mapping = mappingOf(this.means.mappings, key);
    const path = mapping.path(key);
    const object = path === undefined ? undefined : await readObject(this.means.api, path);
    const entry = object && this.entryOf(mapping, object);
    return entry?.key === key ? entry : undefined;
  }

  private async nothingToWrite(): Promise<Written> {
    return { ok: true, revision: await this.revision() };
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
      throw new PluginError(
        "internal",
        `Cannot store ${quoted(key)} in the orchestrator's API: there is no place for it`,
      );
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
    if (outcome.kind === "written" && outcome.object) this.known.remember(key, outcome.object);
    return outcome;
  }
}

function writtenOf(key: string, outcome: Outcome): Written {
  if (outcome.kind === "refused") return { ok: false, reason: outcome.reason, key };
  return { ok: true, revision: outcome.revision };
}
