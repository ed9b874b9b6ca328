/**
 * Watches one collection from a resourceVersion. Every change of the API is a
 * commit of its own, so each event is followed by a bookmark, and so is each
 * time that the server accepts the watch; in a quiet time it sends bookmarks itself.
 */
import { PluginError } from "../../errors.ts";
import type { WatchEvent } from "../../kube/api.ts";
import { isForbidden } from "../../kube/require-ok.ts";
import type { Timers } from "../../timers.ts";
import { type DatastoreEvent, type Entry, HistoryGone } from "../datastore.ts";
import { type Api, type ApiObject, parseBookmark, parseObject, statusCode } from "./api.ts";
import { type Collection, isAbsence, type KindMapping, nameOf } from "./kind-mapping.ts";
import { currentRevision, type Lists } from "./lists.ts";
import type { StreamedLists } from "./streamed-lists.ts";

/** The second: "Too large resource version". */
const GONE: readonly (number | undefined)[] = [410, 504];
/** A server sends no bookmarks of a kind of which it has heard nothing since it started; asked for it again, it does. */
const SILENT_WATCHES = 2;
/** Milliseconds between two looks for an optional collection: who has just applied its definition need not wait long. */
const FIRST_LOOK = 1_000;
const LAST_LOOK = 60_000;

export interface Watched {
  readonly mapping: KindMapping;
  readonly collection: Collection;
  /** Only keys with this prefix are reported. */
  readonly prefix: string;
}

export interface WatchMeans {
  readonly api: Api;
  readonly lists: Pick<Lists, "listedAt" | "isAbsent">;
  /** Some of its lists go on as watches. */
  readonly streamed: Pick<StreamedLists, "watch">;
  readonly entryOf: (mapping: KindMapping, object: ApiObject) => Entry | undefined;
  readonly signal: AbortSignal;
  readonly timers: Timers;
  /** How many watches of a collection in succession were accepted and delivered nothing, not even a bookmark. */
  readonly silent: Map<string, number>;
  /** The present revision, which watches that begin at the same time may ask for together: all kinds share one count. */
  readonly current: (collection: Collection) => Promise<string>;
}

export async function* watchCollection(
  watched: Watched,
  from: string,
  means: WatchMeans,
): AsyncGenerator<DatastoreEvent> {
  const { mapping, collection, prefix } = watched;
  const { api, lists, streamed, entryOf, signal, silent } = means;
  const name = nameOf(collection);
  if (lists.isAbsent(collection)) return yield* untilPresent(collection, from, means);
  if (from === "0") throw new HistoryGone(from);
  let seen = lists.listedAt(collection, from);
  let begun = streamed.watch(collection, seen, signal);
  let isReached = begun !== undefined;
  while (!signal.aborted) {
    const query = { ...collection.query, resourceVersion: seen, allowWatchBookmarks: "true" };
    const events =
      begun ?? openedIfForbidden(goneIfAbsent(collection, seen, api.watch(collection.path, query, signal)));
    begun = undefined;
    let hasDelivered = false;
    for await (const { type, text } of events) {
      if (signal.aborted) return;
      if (type === "ERROR") throw failureOfWatch(text, seen);
      if (type === "SILENT") {
        if (!hasDelivered) requireDelivery(means, collection);
        // Behind a proxy that stays, the server may have been restored meanwhile.
        isReached = false;
        continue;
      }
      // Only of a server that has accepted the watch: one that is away or starts is not asked twice.
      if (!isReached) await requireReached(means, collection, seen);
      isReached = true;
      if (type !== "OPENED") {
        hasDelivered = true;
        silent.delete(name);
      }
      if (type === "BOOKMARK") seen = parseBookmark(text, collection.path);
      else if (type !== "OPENED") {
        const object = parseObject(text, collection.path);
        seen = object.metadata.resourceVersion;
        const record = mapping.record(object);
        const entry = type === "DELETED" ? undefined : entryOf(mapping, object);
        if (entry?.key.startsWith(prefix)) yield { kind: "put", entry };
        else if (entry === undefined && record?.key.startsWith(prefix)) {
          yield { kind: "delete", key: record.key, revision: seen };
        }
        if (signal.aborted) return;
      }
      const isUnheard = (silent.get(name) ?? 0) >= SILENT_WATCHES;
      yield { kind: "bookmark", revision: seen, ...(isUnheard && { isUnheard }) };
    }
  }
}

/** Looks again and again whether the API has the collection; then it is to be listed. Meanwhile it is as it was listed: empty. */
async function* untilPresent(
  collection: Collection,
  from: string,
  { api, signal, timers }: WatchMeans,
): AsyncGenerator<DatastoreEvent> {
  for (let pause = FIRST_LOOK; !signal.aborted; pause = Math.min(2 * pause, LAST_LOOK)) {
    yield { kind: "bookmark", revision: from };
    await unlessAborted(pause, { signal, timers });
    if (!signal.aborted && (await isPresent(api, collection))) throw new HistoryGone(from);
  }
}

async function isPresent(api: Api, collection: Collection): Promise<boolean> {
  try {
    await currentRevision(api, collection);
    return true;
  } catch (failure) {
    if (isAbsence(collection, failure)) return false;
    throw failure;
  }
}

function unlessAborted(milliseconds: number, { signal, timers }: Pick<WatchMeans, "signal" | "timers">): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const cancel = timers.after(milliseconds, end);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  return promise.finally(() => {
    cancel();
    signal.removeEventListener("abort", end);
  });
}

/** With its definition the objects are gone, whatever events were missed. */
async function* goneIfAbsent(
  collection: Collection,
  from: string,
  events: AsyncIterable<WatchEvent>,
): AsyncIterable<WatchEvent> {
  try {
    yield* events;
  } catch (failure) {
    throw isAbsence(collection, failure) ? new HistoryGone(from) : failure;
  }
}

/** A role may allow to list, but not to watch: what was listed counts all the same, and then the watch fails. */
async function* openedIfForbidden(events: AsyncIterable<WatchEvent>): AsyncIterable<WatchEvent> {
  try {
    yield* events;
  } catch (failure) {
    if (isForbidden(failure)) yield { type: "OPENED", text: "{}" };
    throw failure;
  }
}

/** A watch has delivered nothing: the next one may, or it is the same with every one. */
function requireDelivery({ silent }: WatchMeans, collection: Collection): void {
  const name = nameOf(collection);
  const watches = (silent.get(name) ?? 0) + 1;
  silent.set(name, watches);
  if (watches < SILENT_WATCHES) return;
  const what = `the API server accepts the watch of "${collection.path}" and delivers nothing, not even bookmarks`;
  throw new PluginError("datastore-unavailable", `Cannot follow the datastore: ${what}`, {
    details: "Check that no proxy between this host and the API server holds responses back",
  });
}

/** The API server waits for a revision that it has not reached, as after a restore from an older copy. */
async function requireReached({ api, current }: WatchMeans, collection: Collection, from: string): Promise<void> {
  // Another watch may have asked before this revision was reached.
  if (BigInt(await current(collection)) >= BigInt(from)) return;
  if (BigInt(await currentRevision(api, collection)) < BigInt(from)) throw new HistoryGone(from);
}

function failureOfWatch(text: string, from: string): PluginError {
  if (GONE.includes(statusCode(text))) return new HistoryGone(from);
  return new PluginError("datastore-unavailable", "Cannot follow the datastore: the API server ended the watch", {
    details: text,
  });
}
