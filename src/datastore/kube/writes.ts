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
import { type Api, type ApiObject, isStatus, parseObject, requestOf, requireSuccess } from "./api.ts";
import type { Existing, KindMapping, Writing } from "./kind-mapping.ts";

type Reason = Extract<Written, { readonly ok: false }>["reason"];
export type Outcome =
  | { readonly kind: "written"; readonly revision: string; readonly object?: ApiObject }
  | { readonly kind: "refused"; readonly reason: Reason };
export type WritingChange = Extract<Change, { readonly kind: "create" | "update" | "delete" }>;

export interface Write extends Place {
  readonly change: WritingChange;
  readonly mapping: KindMapping;
}

/** Where a write goes, and the object at the version that it expects. */
interface Place {
  readonly path: string;
  readonly existing: Existing;
}

interface Sent extends Place {
  readonly kind: WritingChange["kind"];
}

const ATTEMPTS = 5;

export function write(api: Api, given: Write): Promise<Outcome> {
  return sendAs(api, writingOf(given), { ...given, kind: given.change.kind });
}

/** A write that changes an object. */
export function sendWriting(api: Api, writing: Writing, place: Place): Promise<Outcome> {
  return sendAs(api, writing, { ...place, kind: "update" });
}

async function sendAs(api: Api, writing: Writing, sent: Sent): Promise<Outcome> {
  let lost: unknown;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const response = await send(api, writing, (failure) => {
      lost = failure;
    });
    const outcome = response && outcomeOf(response, sent, writing);
    if (outcome?.kind === "written" || (outcome && lost === undefined)) return outcome;
    const found = await findOutcome(api, sent, writing);
    if (found) return found;
  }
  throw lost;
}

function writingOf({ change, mapping, existing }: Write): Writing {
  const { key } = change;
  if (change.kind === "create") return mapping.create(key, change.value, existing, change.node);
  if (existing === undefined) throw new PluginError("internal", `Cannot ${change.kind} "${key}": it was never read`);
  if (change.kind === "delete") return mapping.remove(key, existing);
  return mapping.update(key, change.value, existing, change.node);
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

function outcomeOf({ status, text }: KubeResponse, { kind, path, existing }: Sent, writing: Writing): Outcome {
  if (kind === "create" && status === 409) return { kind: "refused", reason: "exists" };
  if (status === 409 || writing.staleIf?.({ status, text })) return { kind: "refused", reason: "stale" };
  if (status === 404 && kind !== "create") return { kind: "refused", reason: "missing" };
  if (status >= 300) requireSuccess({ status, text }, writing.request);
  // The response to a deletion is a Status, unless a finalizer keeps the object.
  if (kind === "delete" && isStatus(text)) return deleted(existing);
  const object = parseObject(text, path);
  return { kind: "written", revision: object.metadata.resourceVersion, object };
}

/** `undefined` if the write did not take effect: it can be tried again. */
async function findOutcome(api: Api, { kind, path, existing }: Sent, writing: Writing): Promise<Outcome | undefined> {
  const object = await readObject(api, path);
  if (object === undefined) {
    if (kind === "create") return undefined;
    return kind === "delete" ? deleted(existing) : { kind: "refused", reason: "missing" };
  }
  const { resourceVersion } = object.metadata;
  if (writing.isResult(object)) return { kind: "written", revision: resourceVersion, object };
  if (existing?.metadata.resourceVersion === resourceVersion) return undefined;
  return { kind: "refused", reason: kind === "create" ? "exists" : "stale" };
}

function deleted(existing: Existing): Outcome {
  return { kind: "written", revision: existing?.metadata.resourceVersion ?? "0" };
}

export async function readObject(api: Api, path: string): Promise<ApiObject | undefined> {
  const { status, text } = await requestOf(api, { method: "GET", path }, [404]);
  return status === 404 ? undefined : parseObject(text, path);
}
