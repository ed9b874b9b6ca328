/**
 * A list as the beginning of a watch ("WatchList"): the server sends each object of its copy as an event, then a bookmark
 * that marks the end, and then what changes, all in one response.
 *
 *   ADDED ADDED … BOOKMARK (end) ──> the list, at the bookmark's revision
 *   MODIFIED DELETED BOOKMARK …  ──> the watch from that revision, for whoever asks for it
 *
 * So a list and its watch are one request of one server, which cannot call its own list too old, and the server need not put
 * the whole list together. Older servers refuse it: then collections are listed in pages. So is a collection whose stream
 * failed in any way, once: a stream begins again, whereas pages that were read are kept, and a proxy may not let it through. So is one that the role does not allow to watch:
 * it may allow to list, and if it does not, the failure names that permission first, as on older servers.
 */
import { PluginError } from "../../errors.ts";
import type { WatchEvent } from "../../kube/api.ts";
import { statusOfRefusal } from "../../kube/require-ok.ts";
import type { EnoughState, Entry } from "../datastore.ts";
import { type Api, type ApiObject, isEndOfList, parseBookmark, parseObject, statusCode } from "./api.ts";
import { type Collection, isAbsence, nameOf } from "./kind-mapping.ts";

/** A server that does not know the option, or has it switched off. */
const NOT_SERVED: readonly (number | undefined)[] = [400, 422];
const FORBIDDEN = 403;
/** The server has not reached the revision, or cannot tell what has changed since. */
const NOT_REACHED: readonly (number | undefined)[] = [504, 410];

/** A collection, and the records of one kind that its objects stand for. */
export interface ListedPart {
  /** The prefix of the keys of the kind. */
  readonly kind: string;
  readonly collection: Collection;
  readonly entryOf: (object: ApiObject) => Entry | undefined;
}

/** Of all objects of a collection. */
export interface RecordsOfCollection {
  readonly revision: string;
  readonly entries: readonly Entry[];
}

interface BegunWatch {
  readonly revision: string;
  readonly events: AsyncIterator<WatchEvent>;
  readonly end: () => void;
}

export class StreamedLists {
  /** Watches whose list was read, until somebody goes on with them. */
  private readonly begun = new Map<string, BegunWatch>();
  private readonly failed = new Set<string>();
  private isServed = true;

  constructor(
    private readonly api: Api,
    private readonly stop: AbortSignal,
  ) {
    const forgetAll = () => {
      for (const name of this.begun.keys()) this.forget(name);
    };
    stop.addEventListener("abort", forgetAll, { once: true });
  }

  /** `undefined` if the collection is to be listed in pages. */
  async list(part: ListedPart, { notOlderThan }: EnoughState): Promise<RecordsOfCollection | undefined> {
    const { collection } = part;
    const name = nameOf(collection);
    this.forget(name);
    if (!this.isServed || this.failed.delete(name)) return undefined;
    const watch = this.begin(collection, notOlderThan ?? "");
    try {
      const list = await this.readList(watch, part);
      if (list !== undefined) {
        this.forget(name);
        this.begun.set(name, { ...watch, revision: list.revision });
        return list;
      }
    } catch (failure) {
      watch.end();
      const status = statusOfRefusal(failure);
      if (!NOT_REACHED.includes(status)) {
        if (NOT_SERVED.includes(status)) this.isServed = false;
        else if (isAbsence(collection, failure)) throw failure;
        else if (status !== FORBIDDEN) {
          this.failed.add(name);
          throw failure;
        }
        return undefined;
      }
    }
    watch.end();
    return notOlderThan === undefined ? undefined : this.list(part, {});
  }

  /** The watch that was begun with the list of that revision, until the signal; `undefined` if there is none. */
  watch(collection: Collection, from: string, signal: AbortSignal): AsyncIterable<WatchEvent> | undefined {
    const name = nameOf(collection);
    const begun = this.begun.get(name);
    if (begun?.revision !== from || signal.aborted) {
      this.forget(name);
      return undefined;
    }
    this.begun.delete(name);
    signal.addEventListener("abort", begun.end, { once: true });
    return goOn(begun, () => signal.removeEventListener("abort", begun.end));
  }

  private begin({ path, query }: Collection, resourceVersion: string): Omit<BegunWatch, "revision"> {
    const ending = new AbortController();
    const options = { allowWatchBookmarks: "true", sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" };
    const signal = AbortSignal.any([ending.signal, this.stop]);
    const events = this.api.watch(path, { ...query, ...options, resourceVersion }, signal)[Symbol.asyncIterator]();
    const end = () => {
      ending.abort();
      // Nobody waits for what is left of it.
      events.return?.().catch(() => {});
    };
    return { events, end };
  }

  /** `undefined` if the server has not reached the revision. */
  private async readList(
    { events }: Pick<BegunWatch, "events">,
    { collection, entryOf }: ListedPart,
  ): Promise<RecordsOfCollection | undefined> {
    const { path } = collection;
    const entries = new Map<string, Entry>();
    for (;;) {
      const { value } = await events.next();
      const { type, text }: Partial<WatchEvent> = value ?? {};
      if (type === undefined || text === undefined || type === "SILENT") {
        throw unlisted(path, "the API server ended the response before the end of the list");
      }
      if (type === "ERROR") {
        if (NOT_REACHED.includes(statusCode(text))) return undefined;
        throw unlisted(path, "the API server ended the list", text);
      }
      if (type === "BOOKMARK" && isEndOfList(text, path)) {
        return { revision: parseBookmark(text, path), entries: [...entries.values()] };
      }
      if (type === "OPENED" || type === "BOOKMARK") continue;
      const object = parseObject(text, path);
      const { namespace, name } = object.metadata;
      const entry = type === "DELETED" ? undefined : entryOf(object);
      if (entry === undefined) entries.delete(`${namespace}/${name}`);
      else entries.set(`${namespace}/${name}`, entry);
    }
  }

  private forget(name: string): void {
    this.begun.get(name)?.end();
    this.begun.delete(name);
  }
}

async function* goOn({ events, end }: BegunWatch, ended: () => void): AsyncIterable<WatchEvent> {
  try {
    yield { type: "OPENED", text: "{}" };
    yield* { [Symbol.asyncIterator]: () => events };
  } finally {
    ended();
    end();
  }
}

function unlisted(path: string, state: string, details = ""): PluginError {
  return new PluginError("datastore-unavailable", `Cannot list "${path}": ${state}`, { details });
}
