/**
 * An API server in memory, for unit tests and simulations: objects with UIDs and
 * resourceVersions, lists in pages, watches with a history, conflicts,
 * finalizers, JSON patches. It accepts any resource.
 */

import type { ApiObject } from "../../../src/datastore/kube/api.ts";
import type { KubeClient, KubeRequest, KubeResponse, WatchEvent } from "../../../src/kube/api.ts";
import { requireOk } from "../../../src/kube/require-ok.ts";
import { quoteSequenceNumbers } from "../../../src/model/sequence-numbers.ts";
import { type Change, FakeObjects, type Query, type Stored } from "./fake-objects.ts";
import { applyPatch, type FakeObject, mergePatch } from "./fake-patches.ts";
import { isRefusal, type ServerRules } from "./fake-rules.ts";

/** What a request is about. */
interface Target {
  /** Without name and subresource. */
  readonly collection: string;
  readonly name?: string;
  /** Without the subresource. */
  readonly path: string;
}

export interface FakeApi {
  /** A connection to it; `around` sees every request, and may fail before or after it. */
  connect(around?: Around): KubeClient;
  /** What the server responds, at once. */
  respond(request: KubeRequest): KubeResponse;
  /** The same for a watch, before its events. */
  respondToWatch(query: Query): KubeResponse;
  /**
   * Tells about the events of a watch since the `resourceVersion` of its query, and then about each when it happens, until
   * the returned function is called. `undefined` if it has told why it cannot: the history since then is gone.
   */
  follow(path: string, query: Query, listener: (event: WatchEvent) => void): (() => void) | undefined;
  /** The event that says what a watch has seen: everything up to now. */
  bookmark(): WatchEvent;
  /** Discards the history of changes up to now. */
  forgetHistory(): void;
  /** The resourceVersion of the last change. */
  readonly revision: string;
  /** The state of an object, for a test to look at. */
  object(path: string): ApiObject | undefined;
  /** The objects of a collection, sorted by path. */
  list(collection: string): readonly ApiObject[];
  all(): Iterable<{ readonly path: string; readonly object: ApiObject }>;
}

export type Around = (request: KubeRequest, send: () => KubeResponse) => Promise<KubeResponse>;

export interface FakeApiOptions {
  readonly now?: () => Date;
  readonly rules?: ServerRules | undefined;
  /** By how many changes the copy of a collection is behind from which the server responds to a list that may be older. */
  readonly lag?: (revision: number, collection: string) => number;
  /** "refused": as by a server before 1.34. */
  readonly watchList?: "served" | "refused";
}

export function startFakeApi({
  now = () => new Date(0),
  rules,
  lag = () => 0,
  watchList = "served",
}: FakeApiOptions = {}): FakeApi {
  const objects = new FakeObjects();
  let uids = 0;

  const create = (path: string, body: FakeObject, request: KubeRequest): KubeResponse => {
    if (objects.get(path)) return status(409, "AlreadyExists");
    const metadata = { ...body.metadata, uid: `uid-${uids + 1}`, creationTimestamp: now().toISOString() };
    const given = { ...body, metadata };
    const after = rules?.admit({ request, path, before: undefined, after: given }) ?? given;
    if (isRefusal(after)) return after;
    if (isDryRun(request)) return ok(after, 201);
    uids += 1;
    return { status: 201, text: objects.record("ADDED", path, after).text };
  };

  const replace = (stored: Stored, body: FakeObject, request: KubeRequest): KubeResponse => {
    const { object: before, path } = stored;
    const { resourceVersion, uid, creationTimestamp, deletionTimestamp } = before.metadata;
    const given = body.metadata["resourceVersion"];
    if (given !== undefined && given !== resourceVersion) return status(409, "Conflict");
    if (body.metadata["uid"] !== undefined && body.metadata["uid"] !== uid) return status(409, "Conflict");
    const fixed = { resourceVersion, uid, creationTimestamp, ...(deletionTimestamp ? { deletionTimestamp } : {}) };
    const wanted = JSON.parse(JSON.stringify({ ...body, metadata: { ...body.metadata, ...fixed } })) as FakeObject;
    const after = rules?.admit({ request, path, before, after: wanted }) ?? wanted;
    if (isRefusal(after)) return after;
    if (Bun.deepEquals(after, before)) return { status: 200, text: stored.text };
    if (isDryRun(request)) return ok(after);
    const isOver = deletionTimestamp !== undefined && isEmpty(after.metadata["finalizers"]);
    return { status: 200, text: objects.record(isOver ? "DELETED" : "MODIFIED", path, after).text };
  };

  const remove = (stored: Stored, options: Readonly<Record<string, unknown>>): KubeResponse => {
    const { object, path } = stored;
    const wanted = (options["preconditions"] ?? {}) as Readonly<Record<string, unknown>>;
    for (const field of ["uid", "resourceVersion"]) {
      if (wanted[field] !== undefined && wanted[field] !== object.metadata[field]) return status(409, "Conflict");
    }
    // Containers of a pod may run on for a while.
    const isSlow = options["gracePeriodSeconds"] !== undefined && options["gracePeriodSeconds"] !== 0;
    if (isEmpty(object.metadata["finalizers"]) && !isSlow) {
      objects.record("DELETED", path, object);
      return ok({ kind: "Status", status: "Success" });
    }
    if (object.metadata["deletionTimestamp"] !== undefined) return { status: 200, text: stored.text };
    const metadata = { ...object.metadata, deletionTimestamp: now().toISOString() };
    return { status: 200, text: objects.record("MODIFIED", path, { ...object, metadata }).text };
  };

  /** Later than the present one if it is not reached yet. */
  const listedRevision = (collection: string, { resourceVersion = "" }: Query): number => {
    objects.open(collection);
    if (resourceVersion === "") return objects.revision;
    return Math.max(objects.copiedRevision(lag(objects.revision, collection)), Number(resourceVersion));
  };

  const list = ({ collection }: Target, query: Query): KubeResponse => {
    const { limit, continue: token } = query;
    const revision = listedRevision(collection, query);
    if (token === undefined && revision > objects.revision) return status(504, "Timeout");
    const at =
      token === undefined ? { revision, after: "" } : (JSON.parse(token) as { revision: number; after: string });
    if (token !== undefined && at.revision < objects.forgottenUntil) return status(410, "Expired");
    const all = objects.list(collection, query, at.revision).filter(({ path }) => path > at.after);
    const page = limit === undefined ? all : all.slice(0, Number(limit));
    const after = page.length < all.length ? page.at(-1)?.path : undefined;
    const next = after === undefined ? {} : { continue: JSON.stringify({ revision: at.revision, after }) };
    const metadata = JSON.stringify({ resourceVersion: String(at.revision), ...next });
    return { status: 200, text: `{"metadata":${metadata},"items":[${page.map(({ text }) => text).join(",")}]}` };
  };

  /** Creates or changes the object, or says with whom it is in conflict. */
  const apply = (path: string, stored: Stored | undefined, request: KubeRequest): KubeResponse => {
    if (rules === undefined) return status(415, "UnsupportedMediaType");
    const after = rules.apply({ request, path, before: stored?.object, after: bodyOf(request.body) });
    if (isRefusal(after)) return after;
    return stored === undefined ? create(path, after, request) : replace(stored, after, request);
  };

  const respond = (request: KubeRequest): KubeResponse => {
    const { method, path: requested, query = {}, body, contentType } = request;
    const answer = rules?.answer?.(request);
    if (answer !== undefined) return answer;
    const target = targetOf(requested, objects);
    const stored = objects.get(target.path);
    if (method === "POST") {
      const given = bodyOf(body);
      return create(`${target.path}/${given.metadata["name"]}`, given, request);
    }
    if (method === "PATCH" && contentType === "application/apply-patch+yaml")
      return apply(target.path, stored, request);
    if (method === "GET" && stored === undefined && target.name === undefined) return list(target, query);
    if (stored === undefined) return status(404, "NotFound");
    if (method === "GET") return { status: 200, text: stored.text };
    if (method === "PUT") return replace(stored, bodyOf(body), request);
    if (method === "DELETE") return remove(stored, bodyOf(body));
    const isMerged = contentType === "application/merge-patch+json";
    const patched = (isMerged ? mergePatch : applyPatch)(stored.object, JSON.parse(body ?? "[]"));
    return patched === undefined
      ? status(422, "the server rejected our request due to an error in our request")
      : replace(stored, patched, request);
  };

  const bookmark = (revision = objects.revision, more = {}): WatchEvent => {
    // Of an object of the kind that is watched, a real server fills only this field.
    const metadata = { resourceVersion: String(revision), creationTimestamp: null, ...more };
    return { type: "BOOKMARK", text: JSON.stringify({ metadata }) };
  };

  /** Returns the revision from which the watch goes on. */
  const tellList = (path: string, query: Query, listener: (event: WatchEvent) => void): number => {
    const revision = listedRevision(path, query);
    if (revision > objects.revision) return revision;
    for (const { text } of objects.list(path, query, revision)) listener({ type: "ADDED", text });
    listener(bookmark(revision, { annotations: { "k8s.io/initial-events-end": "true" } }));
    return revision;
  };

  const respondToWatch: FakeApi["respondToWatch"] = (query) =>
    query["sendInitialEvents"] === undefined || watchList === "served"
      ? { status: 200, text: "" }
      : status(422, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled");

  const follow: FakeApi["follow"] = (path, query, listener) => {
    const tell = (change: Change) => {
      const event = objects.eventOf(change, path, query);
      if (event) listener(event);
    };
    const begins = query["sendInitialEvents"] === "true";
    const from = begins ? tellList(path, query, listener) : Number(query["resourceVersion"]);
    if (begins && from > objects.revision) listener(failed(504));
    else {
      // The copy of a server that has told a list goes on, whatever others have forgotten.
      const missed = begins ? objects.historyAfter(from) : objects.changesAfter(from, path);
      if (missed === undefined) listener(failed(410));
      else {
        missed.forEach(tell);
        return objects.onChange(path, tell);
      }
    }
    return undefined;
  };

  async function* watch(path: string, query: Query, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    requireOk(respondToWatch(query), { method: "GET", path, query: { ...query, watch: "1" } });
    const due: WatchEvent[] = [];
    let wake = () => {};
    const forget = follow(path, query, (event) => {
      due.push(event);
      wake();
    });
    if (forget === undefined) return yield* due;
    signal.addEventListener("abort", () => wake(), { once: true });
    try {
      yield { type: "OPENED", text: "{}" };
      while (!signal.aborted) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        if (due.length === 0) await promise;
        for (let next = due.shift(); next !== undefined && !signal.aborted; next = due.shift()) yield next;
        if (query["allowWatchBookmarks"] === "true" && !signal.aborted) yield bookmark();
      }
    } finally {
      forget();
    }
  }

  return {
    connect: (around) => ({
      request: async (request) => {
        const send = () => respond(request);
        return around ? around(request, send) : send();
      },
      watch,
      close: async () => {},
    }),
    respond,
    respondToWatch,
    follow,
    bookmark: () => bookmark(),
    forgetHistory: () => objects.forgetHistory(),
    get revision() {
      return String(objects.revision);
    },
    object: (path) => objects.get(path)?.object,
    all: () => objects.all(),
    list: (collection) => objects.list(collection, {}).map(({ object }) => object),
  };
}

/** Nothing is stored. */
function isDryRun({ query }: KubeRequest): boolean {
  return query?.["dryRun"] !== undefined;
}

/** Numbers beyond 2^53 become strings, which every reader accepts too. */
function bodyOf(text = "{}"): FakeObject {
  return JSON.parse(quoteSequenceNumbers(text));
}

/** An object has a path of an even number of steps below its API; a subresource is only known below an object. */
function targetOf(path: string, objects: FakeObjects): Target {
  const parent = path.slice(0, path.lastIndexOf("/"));
  const whole = path.endsWith("/status") && objects.get(parent) !== undefined ? parent : path;
  if (isCollection(whole)) return { collection: whole, path: whole };
  const at = whole.lastIndexOf("/");
  return { collection: whole.slice(0, at), name: whole.slice(at + 1), path: whole };
}

/** `/api/v1/pods`, `/apis/group/version/plural`, or the same below `namespaces/NAME`. */
function isCollection(path: string): boolean {
  const steps = path.split("/").slice(path.startsWith("/apis/") ? 4 : 3);
  return steps.length === 1 || steps.length === 3;
}

function isEmpty(list: unknown): boolean {
  return !Array.isArray(list) || list.length === 0;
}

function ok(value: unknown, code = 200): KubeResponse {
  return { status: code, text: JSON.stringify(value) };
}

function failed(code: number): WatchEvent {
  return { type: "ERROR", text: JSON.stringify({ kind: "Status", code }) };
}

function status(code: number, reason: string): KubeResponse {
  return { status: code, text: JSON.stringify({ kind: "Status", status: "Failure", message: reason, reason, code }) };
}
