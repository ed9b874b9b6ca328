/**
 * Resources that are custom resources of the same shape: the text of a record is
 * the object without what only the API server writes.
 */
import { API_VERSION } from "../../identity.ts";
import { parseKey, resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { isObject } from "../../model/shape.ts";
import { parseStored } from "../../model/stored.ts";
import type { ApiObject } from "./api.ts";
import type { CustomKind, EncodedRecord } from "./custom-objects.ts";
import { resourcePath } from "./ipam-kinds.ts";
import { isObjectName } from "./object-names.ts";

/** Written by the API server alone. */
const SERVER_FIELDS = [
  "uid",
  "creationTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "selfLink",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
];
/** Of those, what a reader does not need. */
const UNREAD_FIELDS = ["generation", "managedFields", "resourceVersion", "selfLink"];

interface ResourceKindOptions extends Pick<CustomKind, "traits"> {
  readonly writeAnnotation: string;
  readonly namespaced?: boolean;
  /** Whether readers need to know that the spec was changed since the object was created. */
  readonly withGeneration?: boolean;
}

export function resourceKind(
  plural: string,
  kind: string,
  { writeAnnotation, traits = {}, namespaced = false, withGeneration = false }: ResourceKindOptions,
): CustomKind {
  const prefix = resourcesPrefix(plural);
  const unread = withGeneration ? UNREAD_FIELDS.filter((field) => field !== "generation") : UNREAD_FIELDS;
  return {
    traits,
    prefix,
    apiVersion: API_VERSION,
    kind,
    path: resourcePath(plural),
    nameOf: (key) => {
      const parts = parseKey(key);
      if (parts?.kind !== "resource" || (parts.namespace !== undefined) !== namespaced) return undefined;
      if (parts.namespace !== undefined && !isObjectName(parts.namespace)) return undefined;
      return isObjectName(parts.name) ? parts.name : undefined;
    },
    ...(namespaced ? { namespaceOf: (key: string) => namespaceIn(key, prefix) } : {}),
    encode: (key, value) => encode(value, key, kind),
    decode: (object) => ({
      key: resourceKey(plural, namespaced ? object.metadata : { name: object.metadata.name }),
      value: JSON.stringify({ ...object, metadata: readMetadata(object, { writeAnnotation, unread }) }),
    }),
  };
}

/** A prefix may end in the namespace, or in a name. A namespace that is not one has no objects, and no path. */
function namespaceIn(key: string, prefix: string): string | undefined {
  const [namespace = "", ...rest] = key.slice(prefix.length).split("/");
  return rest.length > 0 && isObjectName(namespace) ? namespace : undefined;
}

function encode(value: string, key: string, kind: string): EncodedRecord {
  const whole = parseStored(value, kind, key);
  const { metadata = {}, apiVersion: _, kind: __, ...members } = isObject(whole) ? whole : {};
  return {
    metadata: without(isObject(metadata) ? metadata : {}, SERVER_FIELDS),
    members: JSON.stringify(members).slice(1, -1),
  };
}

/** Without the mark of the last write. */
function readMetadata(
  { metadata }: ApiObject,
  { writeAnnotation, unread }: { readonly writeAnnotation: string; readonly unread: readonly string[] },
): Readonly<Record<string, unknown>> {
  const { annotations = {}, ...others } = without(metadata, unread);
  const own = without(isObject(annotations) ? annotations : {}, [writeAnnotation]);
  return Object.keys(own).length === 0 ? others : { ...others, annotations: own };
}

function without(
  fields: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}
