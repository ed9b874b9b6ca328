/** The orchestrator's API over a list of objects, for tests that only read. */
import type { KubeClient } from "../../src/kube/api.ts";
import { type ClusterObjects, clusterObjects, type Fields } from "../../src/kube/objects.ts";
import { failed } from "./fake-cluster.ts";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
type Any = any;

export interface ObjectTable {
  readonly client: KubeClient;
  readonly objects: ClusterObjects;
  /** Every path that was read. */
  readonly paths: string[];
}

/** `texts`: what other paths return, such as `/version`. */
export function objectTable(items: readonly object[], texts: Readonly<Record<string, Fields>> = {}): ObjectTable {
  const paths: string[] = [];
  const stored = new Map<string, Any>();
  for (const item of items) stored.set(pathOf(item), item);
  const client: KubeClient = {
    async request({ method, path, query = {} }) {
      if (method !== "GET") throw new Error("nothing may be written");
      paths.push(path);
      const object = texts[path] ?? stored.get(path);
      if (object !== undefined) return { status: 200, text: JSON.stringify(object) };
      const [, type] = /^type=(.*)$/.exec(query["fieldSelector"] ?? "") ?? [];
      const isWanted = (key: string, item: Any) => matches(key, path) && (type === undefined || item.type === type);
      const found = [...stored].filter(([key, item]) => isWanted(key, item)).map(([, item]) => item);
      return found.length === 0 ? failed(404, "not found") : { status: 200, text: JSON.stringify({ items: found }) };
    },
    async *watch() {},
    close: async () => {},
  };
  return { client, objects: clusterObjects(client), paths };
}

/** Whether the object is in the list of the path, of one namespace or of all. */
function matches(key: string, list: string): boolean {
  const [, beginning = "", plural = ""] = /^(.*)\/([^/]+)$/.exec(list) ?? [];
  const rest = key.startsWith(`${beginning}/`) ? key.slice(beginning.length + 1) : "";
  return new RegExp(`^(namespaces/[^/]+/)?${plural}/[^/]+$`).test(rest);
}

function pathOf(item: Any): string {
  const { apiVersion, kind, metadata } = item;
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const namespace = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  return `${group}${namespace}/${pluralOf(kind.toLowerCase())}/${metadata.name}`;
}

function pluralOf(word: string): string {
  return word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`;
}
