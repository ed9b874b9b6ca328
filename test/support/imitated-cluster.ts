/**
 * An API of the orchestrator in memory that refuses what the real one refuses: versions of objects, field managers and their
 * conflicts, dry runs, preconditions. For proofs that count and interrupt writes; it knows nothing of kinds.
 */
import type { KubeClient, KubeRequest, KubeResponse } from "../../src/kube/api.ts";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
type Stored = any;

export interface ImitatedCluster {
  readonly client: Pick<KubeClient, "request">;
  readonly objects: Map<string, Stored>;
  /** Requests that changed something, dry runs not included: `PATCH /api/v1/nodes/a`. */
  readonly writes: string[];
  /** As a user of kubectl does it. */
  edit(path: string, change: object, manager?: string): void;
}

export interface ImitatedPlan {
  readonly objects?: Readonly<Record<string, object>>;
  /** Called before each request that writes; may throw, before or (by `after`) after it took effect. */
  readonly beforeWrite?: (request: KubeRequest) => void;
  readonly afterWrite?: (request: KubeRequest) => void;
}

/** Fixed, so that two runs can be compared. */
const TIME = "2026-01-02T03:04:05Z";
const SERVER_FIELDS = ["resourceVersion", "uid", "managedFields", "creationTimestamp", "generation"];

export function imitateCluster({ objects: first = {}, beforeWrite, afterWrite }: ImitatedPlan = {}): ImitatedCluster {
  const objects = new Map<string, Stored>();
  const writes: string[] = [];
  let version = 0;
  const store = (path: string, object: Stored, before: Stored | undefined, manager: string): Stored => {
    const content = (each: Stored) =>
      JSON.stringify({
        ...each,
        metadata: { ...each?.metadata, ...Object.fromEntries(SERVER_FIELDS.map((name) => [name, null])) },
      });
    if (before !== undefined && content(before) === content(object)) return before;
    version += 1;
    const entries = (before?.metadata.managedFields ?? []).filter((each: Stored) => each.manager !== manager);
    const time = new Date(Date.parse(TIME) + version * 1_000).toISOString();
    const stored = structuredClone({
      ...object,
      metadata: {
        ...object.metadata,
        uid: before?.metadata.uid ?? `uid-${version}`,
        resourceVersion: String(version),
        managedFields: [...entries, { manager, time }],
      },
    });
    objects.set(path, stored);
    return stored;
  };
  for (const [path, object] of Object.entries(first)) store(path, object, undefined, "kubectl");

  const change = (request: KubeRequest): KubeResponse => {
    const { method, path, query = {}, body = "{}" } = request;
    const manager = query["fieldManager"] ?? "vendorctl";
    const given = JSON.parse(body);
    const before = objects.get(path);
    switch (method) {
      case "POST": {
        const place = `${path}/${given.metadata.name}`;
        if (objects.has(place)) return failed(409, `"${given.metadata.name}" already exists`);
        return done(store(place, given, undefined, manager), 201);
      }
      case "PUT": {
        if (before === undefined) return failed(404, "not found");
        const expected = given.metadata.resourceVersion;
        if (expected !== undefined && expected !== before.metadata.resourceVersion)
          return failed(409, "it was changed");
        return done(store(path, given, before, manager));
      }
      case "PATCH": {
        const isApply = request.contentType?.includes("apply") === true;
        if (before === undefined && !isApply) return failed(404, "not found");
        return done(store(path, merged(before ?? {}, given), before, manager));
      }
      default: {
        if (before === undefined) return failed(404, "not found");
        const uid = given.preconditions?.uid;
        if (uid !== undefined && uid !== before.metadata.uid) return failed(409, "another object");
        objects.delete(path);
        return done({});
      }
    }
  };
  const handle = (request: KubeRequest): KubeResponse => {
    if (request.method === "GET") {
      const object = objects.get(request.path);
      if (object !== undefined) return done(object);
      const items = [...objects].flatMap(([key, each]) => (isDirectlyBelow(key, request.path) ? [each] : []));
      return items.length > 0 ? done({ items }) : failed(404, "not found");
    }
    if (request.query?.["dryRun"] !== undefined) {
      const kept = new Map(objects);
      const response = change(request);
      objects.clear();
      for (const [path, object] of kept) objects.set(path, object);
      return response;
    }
    beforeWrite?.(request);
    writes.push(`${request.method} ${request.path}`);
    const response = change(request);
    afterWrite?.(request);
    return response;
  };
  return {
    client: { request: async (request) => handle(request) },
    objects,
    writes,
    edit(path, fields, manager = "kubectl-edit") {
      const before = objects.get(path);
      store(path, merged(before ?? {}, fields), before, manager);
    },
  };
}

function merged(before: Stored, after: Stored): Stored {
  const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(before) || !isObject(after)) return after;
  const members = Object.entries({ ...before, ...after }).flatMap(([name, value]) => {
    if (value === null) return [];
    return [[name, name in after ? merged(before[name], after[name]) : value] as const];
  });
  return Object.fromEntries(members);
}

function isDirectlyBelow(key: string, path: string): boolean {
  return key.startsWith(`${path}/`) && !key.slice(path.length + 1).includes("/");
}

function done(object: Stored, status = 200): KubeResponse {
  return { status, text: JSON.stringify(object) };
}

function failed(status: number, message: string): KubeResponse {
  return { status, text: JSON.stringify({ kind: "Status", message }) };
}
