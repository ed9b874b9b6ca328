/**
 * One write to the API, and what became of it.
 *
 * A write whose response was lost may have taken effect. The object tells: it
 * still is at the version that the write expected, or it is the result of the
 * write, or of another one.
 */
import { PluginError } from "../../errors.ts";
import type { KubeRequest, KubeResponse } from "../../kube/api.ts";
import { mayHaveTakenEffect } from "../../kube/failure.ts";
import type { Change, Written } from "../datastore.ts";
import { type Api, type ApiObject, parseObject, requestOf, requireSuccess } from "./api.ts";
import type { Existing, KindMapping, Writing } from "./kind-mapping.ts";

type Reason = Extract<Written, { readonly ok: false }>["reason"];
export type Outcome =
  | { readonly kind: "written"; readonly revision: string; readonly object?: ApiObject }
  | { readonly kind: "refused"; readonly reason: Reason };
export type WritingChange = Extract<Change, { readonly kind: "create" | "update" | "delete" }>;

export interface Write {
  readonly change: WritingChange;
  readonly mapping: KindMapping;
  readonly path: string;
  /** The object at the revision that the change expects. */
  readonly existing: Existing;
}

const ATTEMPTS = 5;

export async function write(api: Api, given: Write): Promise<Outcome> {
  const writing = writingOf(given);
  let lost: unknown;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const response = await send(api, writing, (failure) => {
      lost = failure;
    });
    const outcome = response && outcomeOf(response, given, writing);
    if (outcome?.kind === "written" || (outcome && lost === undefined)) return outcome;
    const found = await findOutcome(api, given, writing);
    if (found) return found;
  }
  throw lost;
}

function writingOf({ change, mapping, existing }: Write): Writing {
  const { key } = change;
  if (change.kind === "create") return mapping.create(key, change.value, existing);
  if (existing === undefined) throw new PluginError("internal", `Cannot ${change.kind} "${key}": it was never read`);
  return change.kind === "update" ? mapping.update(key, change.value, existing) : mapping.remove(key, existing);
}

/** `undefined` if the outcome is unknown. */
async function send(
  api: Api,
  { request }: Writing,
  lose: (failure: unknown) => void,
): Promise<KubeResponse | undefined> {
  try {
    const response = await api.request(request);
    if (response.status < 500) return response;
    // Such as a timeout between the API server and etcd: the write may have taken effect.
    lose(failureOf(response, request));
    return undefined;
  } catch (failure) {
    if (!mayHaveTakenEffect(failure)) throw failure;
    lose(failure);
    return undefined;
  }
}

function failureOf(response: KubeResponse, request: KubeRequest): unknown {
  try {
    return requireSuccess(response, request);
  } catch (failure) {
    return failure;
  }
}

function outcomeOf({ status, text }: KubeResponse, { change, path }: Write, writing: Writing): Outcome {
  if (change.kind === "create" && status === 409) return { kind: "refused", reason: "exists" };
  if (status === 409 || writing.staleIf?.({ status, text })) return { kind: "refused", reason: "stale" };
  if (status === 404 && change.kind !== "create") return { kind: "refused", reason: "missing" };
  if (status >= 300) requireSuccess({ status, text }, writing.request);
  if (change.kind === "delete") return { kind: "written", revision: change.revision };
  const object = parseObject(text, path);
  return { kind: "written", revision: object.metadata.resourceVersion, object };
}

/** `undefined` if the write did not take effect: it can be tried again. */
async function findOutcome(
  api: Api,
  { change, path, existing }: Write,
  writing: Writing,
): Promise<Outcome | undefined> {
  const object = await readObject(api, path);
  if (object === undefined) {
    if (change.kind === "create") return undefined;
    return change.kind === "delete"
      ? { kind: "written", revision: change.revision }
      : { kind: "refused", reason: "missing" };
  }
  const { resourceVersion } = object.metadata;
  if (writing.isResult(object)) return { kind: "written", revision: resourceVersion, object };
  if (existing?.metadata.resourceVersion === resourceVersion) return undefined;
  return { kind: "refused", reason: change.kind === "create" ? "exists" : "stale" };
}

export async function readObject(api: Api, path: string): Promise<ApiObject | undefined> {
  const { status, text } = await requestOf(api, { method: "GET", path }, [404]);
  return status === 404 ? undefined : parseObject(text, path);
}
