/**
 * An API server in memory, for unit tests: objects with UIDs and
 * resourceVersions, lists in pages, watches with a history, conflicts,
 * finalizers, JSON patches. It accepts any resource.
 */
import type { KubeClient, KubeRequest, KubeResponse, WatchEvent } from "../../kube/api.ts";
import { quoteSequenceNumbers } from "../../model/sequence-numbers.ts";

interface Stored {
  readonly path: string;
  readonly object: FakeObject;
}

interface FakeObject {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

interface Change {
  readonly revision: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly stored: Stored;
}

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
  /** Discards the history of changes up to now. */
  forgetHistory(): void;
  /** The state of an object, for a test to look at. */
  object(path: string): FakeObject | undefined;
}

export type Around = (request: KubeRequest, send: () => KubeResponse) => Promise<KubeResponse>;

export function startFakeApi(): FakeApi {
  const objects = new Map<string, Stored>();
  let history: Change[] = [];
  let revision = 100;
  let forgottenUntil = 0;
  let uids = 0;
  let news = Promise.withResolvers<void>();

  const record = (type: Change["type"], path: string, object: FakeObject): FakeObject => {
    revision += 1;
    const versioned = { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
    const stored = { path, object: versioned };
    if (type === "DELETED") objects.delete(path);
    else objects.set(path, stored);
    history.push({ revision, type, stored });
    const { resolve } = news;
    news = Promise.withResolvers();
    resolve();
    return versioned;
  };

  const create = ({ collection }: Target, body: FakeObject): KubeResponse => {
    const path = `${collection}/${body.metadata["name"]}`;
    if (objects.has(path)) return status(409, "AlreadyExists");
    uids += 1;
    const metadata = { ...body.metadata, uid: `uid-${uids}`, creationTimestamp: new Date(0).toISOString() };
    return ok(record("ADDED", path, { ...body, metadata }), 201);
  };

  const replace = ({ object: before, path }: Stored, body: FakeObject): KubeResponse => {
    const { resourceVersion, uid, creationTimestamp, deletionTimestamp } = before.metadata;
    const given = body.metadata["resourceVersion"];
    if (given !== undefined && given !== resourceVersion) return status(409, "Conflict");
    if (body.metadata["uid"] !== undefined && body.metadata["uid"] !== uid) return status(409, "Conflict");
    const fixed = { resourceVersion, uid, creationTimestamp, ...(deletionTimestamp ? { deletionTimestamp } : {}) };
    const after = { ...body, metadata: { ...body.metadata, ...fixed } };
    if (Bun.deepEquals(JSON.parse(JSON.stringify(after)), before)) return ok(before);
    const isOver = deletionTimestamp !== undefined && isEmpty(after.metadata["finalizers" as never]);
    return ok(record(isOver ? "DELETED" : "MODIFIED", path, JSON.parse(JSON.stringify(after))));
  };

  const remove = ({ object, path }: Stored, options: Readonly<Record<string, unknown>>): KubeResponse => {
    const wanted = (options["preconditions"] ?? {}) as Readonly<Record<string, unknown>>;
    for (const field of ["uid", "resourceVersion"]) {
      if (wanted[field] !== undefined && wanted[field] !== object.metadata[field]) return status(409, "Conflict");
    }
    if (isEmpty(object.metadata["finalizers"])) {
      record("DELETED", path, object);
      return { status: 200, text: JSON.stringify({ kind: "Status", status: "Success" }) };
    }
    const metadata = { ...object.metadata, deletionTimestamp: new Date(0).toISOString() };
    return ok(record("MODIFIED", path, { ...object, metadata }));
  };

  const list = ({ collection }: Target, query: Readonly<Record<string, string>>): KubeResponse => {
    const { limit, continue: token } = query;
    const at =
      token === undefined ? { revision, start: 0 } : (JSON.parse(token) as { revision: number; start: number });
    if (at.revision < forgottenUntil) return status(410, "Expired");
    const all = [...objects.values()]
      .filter(({ path, object }) => isIn(path, collection) && isSelected(object, query))
      .toSorted((left, right) => (left.path < right.path ? -1 : 1));
    const end = limit === undefined ? all.length : at.start + Number(limit);
    const next = end < all.length ? { continue: JSON.stringify({ revision: at.revision, start: end }) } : {};
    const metadata = { resourceVersion: String(at.revision), ...next };
    return ok({ metadata, items: all.slice(at.start, end).map(({ object }) => object) });
  };

  const respond = ({ method, path: requested, query = {}, body, contentType }: KubeRequest): KubeResponse => {
    const target = targetOf(requested, objects);
    const stored = objects.get(target.path);
    if (method === "POST") return create({ ...target, collection: target.path }, bodyOf(body));
    if (method === "GET" && stored === undefined && target.name === undefined) return list(target, query);
    if (stored === undefined) return status(404, "NotFound");
    if (method === "GET") return ok(stored.object);
    if (method === "PUT") return replace(stored, bodyOf(body));
    if (method === "DELETE") return remove(stored, bodyOf(body));
    const isMerged = contentType === "application/merge-patch+json";
    const patched = (isMerged ? mergePatch : applyPatch)(stored.object, JSON.parse(body ?? "[]"));
    return patched === undefined
      ? status(422, "the server rejected our request due to an error in our request")
      : replace(stored, patched);
  };

  async function* watch(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    let seen = Number(query["resourceVersion"]);
    if (seen < forgottenUntil) return yield { type: "ERROR", text: JSON.stringify({ kind: "Status", code: 410 }) };
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    while (!signal.aborted) {
      const { promise } = news;
      const due = history.filter((change) => change.revision > seen);
      for (const { type, stored, revision: at } of due) {
        seen = at;
        if (!isIn(stored.path, path) || !isSelected(stored.object, query)) continue;
        yield { type, text: JSON.stringify(stored.object) };
        if (signal.aborted) return;
      }
      if (due.length === 0) await Promise.race([promise, aborted]);
      else if (query["allowWatchBookmarks"] === "true") yield { type: "BOOKMARK", text: bookmark(seen) };
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
    forgetHistory: () => {
      history = [];
      forgottenUntil = revision;
    },
    object: (path) => objects.get(path)?.object,
  };
}

/** Of an object of the kind that is watched, a real server fills only this field. */
function bookmark(revision: number): string {
  return JSON.stringify({ metadata: { resourceVersion: String(revision), creationTimestamp: null } });
}

/** Numbers beyond 2^53 become strings, which every reader accepts too. */
function bodyOf(text = "{}"): FakeObject {
  return JSON.parse(quoteSequenceNumbers(text));
}

/** An object has a path of an even number of steps below its API; a subresource is only known below an object. */
function targetOf(path: string, objects: ReadonlyMap<string, unknown>): Target {
  const parent = path.slice(0, path.lastIndexOf("/"));
  const whole = path.endsWith("/status") && objects.has(parent) ? parent : path;
  if (isCollection(whole)) return { collection: whole, path: whole };
  const at = whole.lastIndexOf("/");
  return { collection: whole.slice(0, at), name: whole.slice(at + 1), path: whole };
}

/** `/api/v1/pods`, `/apis/group/version/plural`, or the same below `namespaces/NAME`. */
function isCollection(path: string): boolean {
  const steps = path.split("/").slice(path.startsWith("/apis/") ? 4 : 3);
  return steps.length === 1 || steps.length === 3;
}

/** Also of all namespaces. */
function isIn(path: string, collection: string): boolean {
  const parent = path.slice(0, path.lastIndexOf("/"));
  return parent === collection || parent.replace(/\/namespaces\/[^/]+(?=\/)/, "") === collection;
}

function isSelected(object: FakeObject, { labelSelector, fieldSelector }: Readonly<Record<string, string>>): boolean {
  const labels = (object.metadata["labels"] ?? {}) as Readonly<Record<string, string>>;
  const matches = (selector: string | undefined, fieldOf: (name: string) => unknown) =>
    (selector ?? "").split(",").every((term) => {
      const [name = "", value] = term.split("=");
      return term === "" || fieldOf(name) === value;
    });
  return (
    matches(labelSelector, (name) => labels[name]) &&
    matches(fieldSelector, (name) => name.split(".").reduce<unknown>((part, step) => memberOf(part, step), object))
  );
}

function memberOf(value: unknown, name: string): unknown {
  return (value as Readonly<Record<string, unknown>> | undefined)?.[name];
}

interface Operation {
  readonly op: "add" | "replace" | "remove" | "test";
  readonly path: string;
  readonly value?: unknown;
}

/** `undefined` if a test fails or a parent is missing. */
function applyPatch(object: FakeObject, operations: readonly Operation[]): FakeObject | undefined {
  const copy = structuredClone(object) as Record<string, unknown> & FakeObject;
  for (const { op, path, value } of operations) {
    const steps = path
      .split("/")
      .slice(1)
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = steps.pop() ?? "";
    let parent: unknown = copy;
    for (const step of steps) parent = (parent as Record<string, unknown> | undefined)?.[step];
    if (parent === undefined) return undefined;
    const members = parent as Record<string, unknown>;
    if (op === "test" && !Bun.deepEquals(members[last] ?? null, value ?? null)) return undefined;
    if (op === "remove") delete members[last];
    if (op === "add" || op === "replace") members[last] = value;
  }
  return copy;
}

function mergePatch(object: FakeObject, patch: Readonly<Record<string, unknown>>): FakeObject {
  const merged: Record<string, unknown> = { ...object };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (typeof value === "object" && !Array.isArray(value))
      merged[name] = mergePatch((merged[name] ?? {}) as FakeObject, value as FakeObject);
    else merged[name] = value;
  }
  return merged as FakeObject;
}

function isEmpty(list: unknown): boolean {
  return !Array.isArray(list) || list.length === 0;
}

function ok(value: unknown, code = 200): KubeResponse {
  return { status: code, text: JSON.stringify(value) };
}

function status(code: number, reason: string): KubeResponse {
  return { status: code, text: JSON.stringify({ kind: "Status", status: "Failure", message: reason, reason, code }) };
}
