/** What a response other than success means: a PluginError that names the verb, the resource and what is missing. Pure. */
import { type ErrorKind, PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { redact } from "../redaction.ts";
import type { KubeRequest, KubeResponse } from "./api.ts";
import { describeRequest, type RequestTarget, targetOf } from "./request-target.ts";

interface Refusal {
  readonly kind: ErrorKind;
  readonly state: (target: Refused, reason: string) => string;
  readonly details?: (target: RequestTarget) => string;
}

interface Refused extends RequestTarget {
  readonly credentials: string | undefined;
}

const REFUSALS: Readonly<Record<number, Refusal>> = {
  401: {
    kind: "api-unavailable",
    state: ({ credentials }) => `the API does not accept the ${credentials ?? "credentials"} (401 Unauthorized)`,
    details: () => "check that the credentials have not expired and that they belong to this cluster",
  },
  403: {
    kind: "api-unavailable",
    state: (target, reason) => `the role lacks the permission to ${permission(target)} (403 Forbidden: ${reason})`,
    details: (target) => `add ${rule(target)} to the role`,
  },
  404: { kind: "resource-missing", state: (_, reason) => reason },
  409: { kind: "resource-changed", state: (_, reason) => reason },
  410: { kind: "api-unavailable", state: (_, reason) => `the requested history is gone (410 Gone: ${reason})` },
  413: { kind: "record-too-large", state: (_, reason) => reason },
  422: { kind: "resource-invalid", state: (_, reason) => reason },
};

/** The cause of an error that a response of the API means. */
class RefusedRequest extends Error {
  constructor(
    readonly status: number,
    readonly text: string,
  ) {
    super(`status ${status}`);
  }
}

/** A field that another manager has set, which server-side apply without force does not change. */
export interface ApplyConflict {
  /** `.spec.replicas` */
  readonly field: string;
  readonly manager: string;
}

/** None if the failure is not such a conflict. */
export function conflictsIn(failure: unknown): readonly ApplyConflict[] {
  if (!(failure instanceof PluginError) || !(failure.cause instanceof RefusedRequest)) return [];
  const { status, text } = failure.cause;
  const details = status === 409 ? memberOf(parsed(text), "details") : undefined;
  const causes = memberOf(details, "causes");
  return (Array.isArray(causes) ? causes : []).flatMap((cause: unknown) => {
    const [reason, field, message] = [memberOf(cause, "reason"), memberOf(cause, "field"), memberOf(cause, "message")];
    if (reason !== "FieldManagerConflict") return [];
    return [{ field: String(field), manager: /"([^"]*)"/.exec(String(message))?.[1] ?? String(message) }];
  });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** The status of the response that the failure stands for; `undefined` if there was no response. */
export function statusOfRefusal(failure: unknown): number | undefined {
  return failure instanceof PluginError && failure.cause instanceof RefusedRequest ? failure.cause.status : undefined;
}

/** Whether the role of the credentials lacks a permission, or an admission policy refuses the request. */
export function isForbidden(failure: unknown): failure is PluginError {
  return statusOfRefusal(failure) === 403;
}

/**
 * Whether the API server itself says that the role of the credentials lacks the permission: a proxy before it may refuse
 * a request with the same status, but without a Status object.
 */
export function lacksPermission(failure: unknown): failure is PluginError {
  if (!(failure instanceof PluginError) || !(failure.cause instanceof RefusedRequest)) return false;
  const status = failure.cause.status === 403 ? parsed(failure.cause.text) : undefined;
  return memberOf(status, "kind") === "Status" && memberOf(status, "reason") === "Forbidden";
}

/** Whether the server, or one before it, could not carry the request out: it is overloaded, starts, or has lost its storage. */
export function isServerFailure(failure: unknown): boolean {
  if (!(failure instanceof PluginError) || !(failure.cause instanceof RefusedRequest)) return false;
  return failure.cause.status === 429 || failure.cause.status >= 500;
}

/** Whether server-side apply cannot read the object, for example because of entries that are there twice: the server says 500. */
export function isUnreadableByApply(failure: unknown): failure is PluginError {
  if (!(failure instanceof PluginError) || !(failure.cause instanceof RefusedRequest)) return false;
  return failure.cause.status === 500 && failure.cause.text.includes("failed to create typed ");
}

/** Whether the API no longer has the state that a continued list refers to. */
export function isHistoryGone(failure: unknown): boolean {
  return statusOfRefusal(failure) === 410;
}

/** Of a group whose CustomResourceDefinitions are not applied: the response then is not an object of the API. */
const UNKNOWN_RESOURCE: Refusal = {
  kind: "api-unavailable",
  state: ({ resource, group }) => `the API does not know ${resource} of group "${group}" (404 Not Found)`,
  details: () => 'apply the custom resource definitions: "kubectl apply -f deploy/crds"',
};

/** The end of the API server's message if a ValidatingAdmissionPolicy refuses a request. */
const DENIED_BY_POLICY = /ValidatingAdmissionPolicy '([^']*)' with binding '[^']*' denied request: (.*)$/s;

/** `undefined` if the response is not the refusal of an admission policy. */
function policyRefusal(status: number, reason: string): Refusal | undefined {
  const [, policy, why] = (status === 403 ? DENIED_BY_POLICY.exec(reason) : null) ?? [];
  if (policy === undefined || why === undefined) return undefined;
  const description = `see "kubectl describe validatingadmissionpolicy ${policy}"`;
  return {
    kind: "api-unavailable",
    state: () => `the admission policy "${policy}" refuses it: ${why} (403 Forbidden)`,
    details: () => (policy.startsWith(NODE_POLICY) ? `${description}. ${OTHER_NODE}` : description),
  };
}

/** Policies for what belongs to one node: docs/admission.md. */
const NODE_POLICY = `${identity.product}-node-`;
const OTHER_NODE =
  "If this host was renamed, delete the Node of its former name: the controllers then release its addresses";

/** Returns the text of a successful response; throws a PluginError for any other. */
export function requireOk(
  { status, text, credentials }: KubeResponse,
  request: Pick<KubeRequest, "method" | "path" | "query">,
  unavailableAs: ErrorKind = "api-unavailable",
): string {
  if (status >= 200 && status < 300) return text;
  const target = { ...targetOf(request), credentials };
  const reason = redact(reasonIn(text));
  const isUnknown = status === 404 && target.group !== "" && parsed(text) === undefined;
  const refusal = isUnknown ? UNKNOWN_RESOURCE : (policyRefusal(status, reason) ?? REFUSALS[status]);
  const state = refusal?.state(target, reason) ?? `the API returned status ${status}: ${reason}`;
  const kind = refusal?.kind ?? "api-unavailable";
  throw new PluginError(
    kind === "api-unavailable" ? unavailableAs : kind,
    `Cannot ${describeRequest(target)}: ${state}`,
    {
      details: refusal?.details?.(target) ?? "",
      cause: new RefusedRequest(status, text),
    },
  );
}

/** `get pods in all namespaces`, as a role has to allow it. */
function permission({ verb, resource, namespace }: RequestTarget): string {
  return `${verb} ${resource}${namespace === undefined ? "" : ` in namespace "${namespace}"`}`;
}

function rule({ verb, group, resource }: RequestTarget): string {
  return `the rule {apiGroups: ["${group}"], resources: ["${resource}"], verbs: ["${verb}"]}`;
}

/** The message of the API's Status object; of anything else the beginning. */
function reasonIn(text: string): string {
  const status = parsed(text);
  if (typeof status === "object" && status !== null && "message" in status && typeof status.message === "string") {
    return status.message;
  }
  return text.trim().slice(0, 200) || "no reason given";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
