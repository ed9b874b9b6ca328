/**
 * The part of the API client that the store uses, and how it reads responses.
 *
 * Responses stay text until they are parsed here: sequence numbers exceed 2^53
 * and are quoted first.
 */
import { PluginError } from "../../errors.ts";
import type { KubeClient, KubeRequest, KubeResponse } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { quoteSequenceNumbers } from "../../model/sequence-numbers.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

/** Requests and watches. Closing the client is left to whoever opened it. */
export type Api = Pick<KubeClient, "request" | "watch">;

/** The metadata that the store needs; the rest of an object is passed on as it is. */
export interface ObjectMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly deletionTimestamp?: string;
  readonly [field: string]: unknown;
}

export interface ApiObject {
  readonly metadata: ObjectMetadata;
  readonly [field: string]: unknown;
}

export interface ApiList {
  readonly revision: string;
  readonly items: readonly ApiObject[];
  /** The token of the next page; absent after the last one. */
  readonly next?: string;
}

/** Any status of `accepted` is returned, every other one is thrown as the error that it means. */
export async function requestOf(
  api: Api,
  request: KubeRequest,
  accepted: readonly number[] = [],
): Promise<KubeResponse> {
  const response = await api.request(request);
  if (!accepted.includes(response.status)) requireSuccess(response, request);
  return response;
}

/** Throws the error that a status other than success means. */
export function requireSuccess(response: KubeResponse, request: KubeRequest): void {
  requireOk(response, request, "datastore-unavailable");
}

export function parseObject(text: string, path: string): ApiObject {
  const value = parsed(text, path);
  if (!isApiObject(value)) throw malformed(path, "it is not an object with metadata");
  return value;
}

/** Of the object of a bookmark, which has nothing else: no name either. */
export function parseBookmark(text: string, path: string): string {
  const value = parsed(text, path);
  const metadata = isObject(value) ? value["metadata"] : undefined;
  const revision = isObject(metadata) ? metadata["resourceVersion"] : undefined;
  if (typeof revision !== "string") throw malformed(path, "it is a bookmark without a resourceVersion");
  return revision;
}

/** Whether the bookmark marks the end of the objects that a watch began with. */
export function isEndOfList(text: string, path: string): boolean {
  const value = parsed(text, path);
  const metadata = isObject(value) ? value["metadata"] : undefined;
  const annotations = isObject(metadata) ? metadata["annotations"] : undefined;
  return isObject(annotations) && annotations["k8s.io/initial-events-end"] === "true";
}

export function parseList(text: string, path: string): ApiList {
  const value = parsed(text, path);
  const metadata = isObject(value) ? value["metadata"] : undefined;
  const items: unknown = isObject(value) ? (value["items"] ?? []) : undefined;
  if (!isObject(metadata) || !Array.isArray(items) || typeof metadata["resourceVersion"] !== "string") {
    throw malformed(path, "it is not a list");
  }
  const next = metadata["continue"];
  return {
    revision: metadata["resourceVersion"],
    items: items.filter(isApiObject),
    ...(typeof next === "string" && next !== "" ? { next } : {}),
  };
}

/** Whether the text is a `Status` instead of an object. */
export function isStatus(text: string): boolean {
  const value = parsed(text, "");
  return isObject(value) && value["kind"] === "Status";
}

/** The code of a `Status` object; `undefined` for anything else. */
export function statusCode(text: string): number | undefined {
  const value = parsed(text, "");
  return isObject(value) && typeof value["code"] === "number" ? value["code"] : undefined;
}

function isApiObject(value: unknown): value is ApiObject {
  if (!isObject(value) || !isObject(value["metadata"])) return false;
  const { name, resourceVersion } = value["metadata"];
  return typeof name === "string" && typeof resourceVersion === "string";
}

function parsed(text: string, path: string): unknown {
  try {
    return parseJson(quoteSequenceNumbers(text));
  } catch (cause) {
    throw malformed(path, "it is not JSON", cause);
  }
}

function malformed(path: string, state: string, cause?: unknown): PluginError {
  return new PluginError(
    "datastore-unavailable",
    `Cannot read the response of the API server for "${path}": ${state}`,
    {
      cause,
    },
  );
}
