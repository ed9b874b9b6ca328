/**
 * What the orchestrator's API server does to objects besides storing them: owners of fields, generations, subresources,
 * fields that never change, namespaces that do not exist or are being deleted. Pure, but for the clock.
 */

import { identity } from "../../../src/identity.ts";
import type { KubeResponse } from "../../../src/kube/api.ts";
import type { FakeObject } from "../../../test/support/kube-api/fake-patches.ts";
import type { AdmittedWrite, ServerRules } from "../../../test/support/kube-api/fake-rules.ts";
import { Discovery } from "./discovery.ts";
import { type Fields, isFields } from "./field-sets.ts";
import { applyFields, type Manager, trackUpdate } from "./server-side-apply.ts";

/** Removed by the namespace controller when the namespace is empty; the real one has it in its spec. */
export const NAMESPACE_FINALIZER = "kubernetes";

const WITH_STATUS = new Set([
  "namespaces",
  "nodes",
  "pods",
  "daemonsets",
  "deployments",
  "poddisruptionbudgets",
  "customresourcedefinitions",
  "installations",
  `${identity.product}statuses`,
]);
/** Whoever may write the status may write labels and annotations with it. */
const METADATA_WITH_STATUS = new Set(["nodes", "pods"]);

/** What else the server holds at present. */
interface ServerView {
  object(path: string): FakeObject | undefined;
  list(collection: string): readonly FakeObject[];
}

export function serverRules(now: () => Date, view: ServerView): ServerRules {
  const discovery = new Discovery((collection) => view.list(collection));
  const managerOf = ({ request, path, after, before }: AdmittedWrite): Manager => ({
    name: request.query?.["fieldManager"] ?? "client",
    apiVersion: String(after["apiVersion"] ?? before?.["apiVersion"] ?? "v1"),
    time: now()
      .toISOString()
      .replace(/\.\d+Z$/, "Z"),
    ...(request.path === path || request.method === "POST" ? {} : { subresource: request.path.slice(path.length + 1) }),
  });
  return {
    answer: (request) => discovery.answer(request),
    apply: (write) => {
      const { before, after, request } = write;
      const isForced = request.query?.["force"] === "true";
      const outcome = applyFields(before, withoutServerFields(after), { manager: managerOf(write), isForced });
      if (outcome.kind === "applied") return outcome.object as FakeObject;
      const conflicts = outcome.managers.map((name) => `conflict with "${name}"`).join(", ");
      return refusal(409, "Conflict", `Apply failed with conflicts: ${conflicts}`);
    },
    admit: (write) => {
      const { path, before, request } = write;
      const refused = refusalOf(write, (path) => view.object(path));
      if (refused !== undefined) return refused;
      const isApply = request.contentType?.includes("apply-patch") === true;
      const split = splitSubresource(write);
      const tracked = isApply ? split : (trackUpdate(before, split, managerOf(write)) as FakeObject);
      return withGeneration(path, before, before === undefined ? asCreated(path, tracked) : tracked);
    },
  };
}

function pluralOf(path: string): string {
  return path.split("/").at(-2) ?? "";
}

function withoutServerFields(object: FakeObject): Fields {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function refusalOf(
  { path, before, after }: AdmittedWrite,
  object: (path: string) => FakeObject | undefined,
): KubeResponse | undefined {
  if (before === undefined) {
    const namespace = /\/namespaces\/([^/]+)\/[^/]+\/[^/]+$/.exec(path)?.[1];
    const found = namespace === undefined ? undefined : object(`/api/v1/namespaces/${namespace}`);
    if (namespace !== undefined && found === undefined) {
      return refusal(404, "NotFound", `namespaces "${namespace}" not found`);
    }
    if (found?.metadata["deletionTimestamp"] === undefined) return undefined;
    return refusal(
      403,
      "Forbidden",
      `unable to create new content in namespace ${namespace} because it is being terminated`,
    );
  }
  const [old, now] = [memberOf(before, "spec", "selector"), memberOf(after, "spec", "selector")];
  const isWorkload = ["daemonsets", "deployments"].includes(pluralOf(path));
  if (isWorkload && !Bun.deepEquals(old, now))
    return refusal(422, "Invalid", "spec.selector: Invalid value: field is immutable");
  const isBinding = pluralOf(path).endsWith("rolebindings");
  if (isBinding && !Bun.deepEquals(before["roleRef"], after["roleRef"])) {
    return refusal(422, "Invalid", "roleRef: Invalid value: cannot change roleRef");
  }
  return undefined;
}

/** The status is written with its subresource alone, and nothing else is. */
function splitSubresource({ request, path, before, after }: AdmittedWrite): FakeObject {
  const plural = pluralOf(path);
  if (!WITH_STATUS.has(plural)) return after;
  const { status: given, ...rest } = after;
  if (request.path === `${path}/status`) {
    if (before === undefined) return after;
    const metadata = METADATA_WITH_STATUS.has(plural) ? after.metadata : before.metadata;
    return {
      ...before,
      metadata: { ...metadata, managedFields: before.metadata["managedFields"] ?? [] },
      ...(given === undefined ? {} : { status: given }),
    };
  }
  const status = before?.["status"];
  return { ...rest, ...(status === undefined ? {} : { status }) };
}

function asCreated(path: string, object: FakeObject): FakeObject {
  if (!/^\/api\/v1\/namespaces\/[^/]+$/.test(path)) return object;
  const finalizers = [...((object.metadata["finalizers"] as string[] | undefined) ?? []), NAMESPACE_FINALIZER];
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/** Counts what is desired, not what is reported of it. */
function withGeneration(path: string, before: FakeObject | undefined, after: FakeObject): FakeObject {
  if (!WITH_STATUS.has(pluralOf(path))) return after;
  const last = Number(before?.metadata["generation"] ?? 0);
  const hasChanged = before === undefined || !Bun.deepEquals(desired(before), desired(after));
  return { ...after, metadata: { ...after.metadata, generation: hasChanged ? last + 1 : last } };
}

function desired({ metadata: _, status: __, ...object }: FakeObject): Fields {
  return JSON.parse(JSON.stringify(object));
}

function memberOf(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce((part, name) => (isFields(part) ? part[name] : undefined), value);
}

function refusal(code: number, reason: string, message: string): KubeResponse {
  return { status: code, text: JSON.stringify({ kind: "Status", status: "Failure", message, reason, code }) };
}
