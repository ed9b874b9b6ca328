/** What of an object of the API is its content: what somebody has set, without what the server and controllers report. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";

/** Set by the server, and different in every object. */
const SERVER_FIELDS: ReadonlySet<string> = new Set([
  "managedFields",
  "resourceVersion",
  "uid",
  "creationTimestamp",
  "generation",
  "selfLink",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
]);

/** Written by kubectl and by controllers of workloads, and no setting of the object. */
const OTHERS_ANNOTATIONS: ReadonlySet<string> = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  "deployment.kubernetes.io/revision",
  "deprecated.daemonset.template.generation",
]);

export function contentOf(object: Fields): Fields {
  const { status: _, metadata, ...rest } = object;
  return { ...rest, metadata: isObject(metadata) ? metadataContent(metadata) : {} };
}

function metadataContent(metadata: Fields): Fields {
  const { annotations, ...rest } = metadata;
  const kept = isObject(annotations) ? without(annotations, OTHERS_ANNOTATIONS) : {};
  return { ...without(rest, SERVER_FIELDS), ...(Object.keys(kept).length === 0 ? {} : { annotations: kept }) };
}

function without(fields: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.has(name)));
}

/** The same for objects with the same content, whatever the order of their members. */
export function contentHash(object: Fields | undefined): string {
  return object === undefined ? ABSENT : digestOf(JSON.stringify(sorted(contentOf(object))));
}

/** In place of the hash of an object that does not exist. */
export const ABSENT = "absent";

export function digestOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const);
  return Object.fromEntries(members.sort(([one], [other]) => (one < other ? -1 : 1)));
}
