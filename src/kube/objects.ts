/** Reads and writes objects of the orchestrator's API by their paths. */

import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import type { KubeClient, KubeRequest } from "./api.ts";
import { isHistoryGone, requireOk } from "./require-ok.ts";

export type Fields = Readonly<Record<string, unknown>>;

export interface ClusterObjects {
  /** `undefined` if there is no such object, or no such kind. */
  read(path: string, query?: Readonly<Record<string, string>>): Promise<Fields | undefined>;
  /** Its items, read in pages; none if there is no such kind. Starts again if the history of a list that takes long is gone. */
  list(path: string, query?: Readonly<Record<string, string>>): Promise<readonly Fields[]>;
  /** Like `list`, but remembers only what `keep` makes of each item: no more than one page is in memory. */
  collect<Kept>(path: string, wanted: Collected<Kept>): Promise<readonly Kept[]>;
  /** `undefined` if there is nothing at the path. */
  readText(path: string, query?: Readonly<Record<string, string>>): Promise<string | undefined>;
  create(path: string, object: object): Promise<Fields>;
  /** With the resourceVersion of its metadata it fails with `resource-changed` if somebody else has changed it since. */
  replace(path: string, object: object, options?: WriteOptions): Promise<Fields>;
  /** Server-side apply as the admin tool; `force` takes fields of other managers. `resource-missing`: no such kind or namespace. */
  apply(path: string, object: object, options: ApplyOptions): Promise<Fields>;
  /** A merge patch; `undefined` if there is no such object. */
  patch(path: string, changes: object): Promise<Fields | undefined>;
  /** A JSON patch; a `test` that fails is `resource-invalid`. `undefined` if there is no such object. */
  patchJson(path: string, operations: readonly object[]): Promise<Fields | undefined>;
  /** Returns whether there was such an object. */
  remove(path: string, options?: object): Promise<boolean>;
}

export interface Collected<Kept> {
  /** "metadata": the rest is not sent, if the server can: some servers return the whole objects. */
  readonly content: "whole" | "metadata";
  /** May be called with an item again, if the list starts again. */
  readonly keep: (item: Fields) => readonly Kept[];
}

export interface WriteOptions {
  /** The server does everything but store the result. */
  readonly isDryRun?: boolean;
}

export interface ApplyOptions extends WriteOptions {
  readonly force: boolean;
}

/** `signal` ends every request, and its reason is thrown. */
export function clusterObjects(client: Pick<KubeClient, "request">, signal?: AbortSignal): ClusterObjects {
  const send = async (request: KubeRequest): Promise<string | undefined> => {
    signal?.throwIfAborted();
    try {
      const response = await client.request({ ...request, ...(signal === undefined ? {} : { signal }) });
      const isAbsent = response.status === 404 && request.method !== "POST";
      return isAbsent ? undefined : requireOk(response, request);
    } catch (failure) {
      signal?.throwIfAborted();
      throw failure;
    }
  };
  const readText: ClusterObjects["readText"] = (path, query) =>
    send({ method: "GET", path, ...(query === undefined ? {} : { query }) });
  const read: ClusterObjects["read"] = async (path, query) => fieldsOf(await readText(path, query));
  const collectOnce = async <Kept>(request: ListRequest, keep: Collected<Kept>["keep"]) => {
    const kept: Kept[] = [];
    let next: string | undefined = "";
    while (next !== undefined) {
      const position: Readonly<Record<string, string>> = next === "" ? {} : { continue: next };
      const query = { ...request.query, limit: PAGE, ...position };
      const page = fieldsOf(await send({ ...request, method: "GET", query }));
      kept.push(...itemsOf(page).flatMap(keep));
      next = continuationOf(page);
    }
    return kept;
  };
  const collect = async <Kept>(request: ListRequest, keep: Collected<Kept>["keep"]) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await collectOnce(request, keep);
      } catch (failure) {
        if (!isHistoryGone(failure) || attempt === LIST_ATTEMPTS) throw failure;
      }
    }
  };
  return {
    readText,
    read,
    list: (path, query) => collect({ path, ...(query === undefined ? {} : { query }) }, (item) => [item]),
    collect: (path, { content, keep }) =>
      collect({ path, ...(content === "metadata" ? { accept: ONLY_METADATA } : {}) }, keep),
    async replace(path, object, { isDryRun = false } = {}) {
      const query = { fieldManager: identity.adminTool, ...(isDryRun ? { dryRun: "All" } : {}) };
      const text = await send({ method: "PUT", path, query, body: JSON.stringify(object) });
      if (text === undefined)
        throw new PluginError("resource-missing", `Cannot replace "${path}": there is no such object`);
      return fieldsOf(text) ?? {};
    },
    create: async (path, object) => fieldsOf(await send({ method: "POST", path, body: JSON.stringify(object) })) ?? {},
    async apply(path, object, { force, isDryRun = false }) {
      const dryRun: Readonly<Record<string, string>> = isDryRun ? { dryRun: "All" } : {};
      const query = { fieldManager: identity.adminTool, force: String(force), ...dryRun };
      const contentType = "application/apply-patch+yaml";
      const body = JSON.stringify(object);
      // The same again changes nothing.
      const text = await send({ method: "PATCH", path, query, contentType, body, attempt: "retry" });
      if (text === undefined)
        throw new PluginError("resource-missing", `Cannot apply "${path}": there is no such kind or namespace`);
      return fieldsOf(text) ?? {};
    },
    async patch(path, changes) {
      const contentType = "application/merge-patch+json";
      const body = JSON.stringify(changes);
      return fieldsOf(await send({ method: "PATCH", path, contentType, body, attempt: "retry" }));
    },
    async patchJson(path, operations) {
      const contentType = "application/json-patch+json";
      return fieldsOf(await send({ method: "PATCH", path, contentType, body: JSON.stringify(operations) }));
    },
    async remove(path, options = {}) {
      return (await send({ method: "DELETE", path, body: JSON.stringify(options) })) !== undefined;
    },
  };
}

type ListRequest = Pick<KubeRequest, "path" | "query" | "accept">;

const PAGE = "500";
/** A later page fails once the server has discarded the state of the first one, after some minutes. */
const LIST_ATTEMPTS = 5;
const ONLY_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

function itemsOf(page: Fields | undefined): readonly Fields[] {
  const items = page?.["items"];
  return Array.isArray(items) ? items.filter(isObject) : [];
}

/** Where the next page begins; `undefined` after the last. */
function continuationOf(page: Fields | undefined): string | undefined {
  const metadata = page?.["metadata"];
  const next = isObject(metadata) ? metadata["continue"] : undefined;
  return typeof next === "string" && next !== "" ? next : undefined;
}

function fieldsOf(text: string | undefined): Fields | undefined {
  if (text === undefined) return undefined;
  const value = parseJson(text);
  return isObject(value) ? value : {};
}
