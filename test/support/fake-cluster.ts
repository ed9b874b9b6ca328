/**
 * An API of the orchestrator in memory, for tests of commands on a whole cluster: it stores what is created under its path,
 * and knows nothing of kinds. What a real cluster does to objects, a test does in `onCreate` and `read`.
 */
import type { KubeClient, KubeRequest, KubeResponse } from "../../src/kube/api.ts";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
export type Stored = any;

export interface FakePlan {
  /** By path: objects that exist from the beginning. */
  readonly objects?: Readonly<Record<string, object>>;
  /** Called with each object that is created, and may change it. */
  readonly onCreate?: (path: string, object: Stored) => void;
  /** Called before each request; what it returns is the response. */
  readonly respond?: (request: KubeRequest) => KubeResponse | undefined;
}

export interface FakeCluster {
  readonly client: KubeClient;
  readonly objects: Map<string, Stored>;
  /** `POST /api/v1/namespaces` … */
  readonly requests: string[];
}

export function fakeCluster({ objects: first = {}, onCreate, respond }: FakePlan = {}): FakeCluster {
  const objects = new Map<string, Stored>(Object.entries(first));
  const requests: string[] = [];
  const handle = (request: KubeRequest): KubeResponse => {
    const { method, path, body = "{}" } = request;
    requests.push(`${method} ${path}`);
    const special = respond?.(request);
    if (special !== undefined) return special;
    switch (method) {
      case "POST": {
        const object = JSON.parse(body);
        const place = `${path}/${object.metadata.name}`;
        if (objects.has(place)) return failed(409, `"${object.metadata.name}" already exists`);
        objects.set(place, object);
        onCreate?.(place, object);
        return { status: 201, text: JSON.stringify(object) };
      }
      case "PUT":
      case "PATCH": {
        const isNew = !objects.has(path);
        objects.set(path, merged(objects.get(path), JSON.parse(body)));
        if (isNew) onCreate?.(path, objects.get(path));
        return { status: isNew ? 201 : 200, text: JSON.stringify(objects.get(path)) };
      }
      case "DELETE": {
        // With a namespace goes everything in it.
        const within = /\/namespaces\/[^/]+$/.exec(path)?.[0];
        const isBelow = (key: string) => within !== undefined && key.includes(`${within}/`);
        const found = [...objects.keys()].filter((key) => key === path || isBelow(key));
        for (const key of found) objects.delete(key);
        return found.length === 0 ? failed(404, "not found") : { status: 200, text: "{}" };
      }
      case "GET": {
        const object = objects.get(path);
        if (object !== undefined) return { status: 200, text: JSON.stringify(object) };
        const items = [...objects].filter(([key]) => isDirectlyBelow(key, path)).map(([, each]) => each);
        return isCollection(path) || items.length > 0
          ? { status: 200, text: JSON.stringify({ items }) }
          : failed(404, "not found");
      }
    }
  };
  const client: KubeClient = {
    request: async (request) => handle(request),
    async *watch() {},
    close: async () => {},
  };
  return { client, objects, requests };
}

/** As a merge patch does it; server-side apply would also remove what was applied before. */
function merged(before: Stored, after: Stored): Stored {
  const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(before) || !isObject(after)) return after;
  const members = Object.entries(after).map(([name, value]) => [name, merged(before[name], value)]);
  return { ...before, ...Object.fromEntries(members) };
}

function isDirectlyBelow(key: string, path: string): boolean {
  return key.startsWith(`${path}/`) && !key.slice(path.length + 1).includes("/");
}

/** Lists exist even if they are empty. */
function isCollection(path: string): boolean {
  return /\/(pods|nodes|services|events|namespaces|daemonsets)$/.test(path);
}

export function failed(status: number, message: string): KubeResponse {
  return { status, text: JSON.stringify({ kind: "Status", message }) };
}
