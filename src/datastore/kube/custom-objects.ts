/**
 * The mapping of a kind that is a custom resource of its own: a record is an
 * object, created by POST, replaced by PUT at its resourceVersion, and deleted
 * under the condition that it is still the same object at the same version.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import type { ApiObject } from "./api.ts";
import type { Collection, Existing, KindMapping, ObjectRecord, Writing } from "./kind-mapping.ts";

/** What the text of a record becomes. */
export interface EncodedRecord {
  /** The metadata that the record itself has; absent if a record is only a part of its object. */
  readonly metadata?: EncodedMetadata;
  /** Added to the labels that the object has. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The members of the object besides `apiVersion`, `kind` and `metadata`, as JSON text: numbers in it may exceed 2^53. */
  readonly members: string;
}

export interface EncodedMetadata {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

export interface CustomKind {
  readonly prefix: string;
  readonly apiVersion: string;
  readonly kind: string;
  /** `/apis/vendor.org/v3/ippools` */
  readonly path: string;
  /** Of a namespaced kind: the namespace that a key or prefix is in; `undefined` if the prefix is that of all namespaces. */
  readonly namespaceOf?: (key: string) => string | undefined;
  /** The name of the object with this key; `undefined` if the key is not one of this kind. */
  readonly nameOf: (key: string) => string | undefined;
  /** A selector of the objects with keys below the prefix, or of those of one node; by default the whole kind is listed. */
  readonly selectorOf?: (prefix: string, node: string | undefined) => Readonly<Record<string, string>> | undefined;
  /** Labels of the records of a node whose changes name it. */
  readonly labelsOfNode?: (node: string) => Readonly<Record<string, string>>;
  readonly encode: (key: string, value: string) => EncodedRecord;
  readonly decode: (object: ApiObject) => ObjectRecord | undefined;
  readonly traits?: Pick<KindMapping, "protection" | "needsProtection" | "order">;
}

export interface CustomObjectMeans {
  /** The annotation that names the last write of an object: if a response is lost, it tells whose write took effect. */
  readonly writeAnnotation: string;
  /** A text that no other write has. */
  readonly newMark: () => string;
}

export function customObjects(kind: CustomKind, { writeAnnotation, newMark }: CustomObjectMeans): KindMapping {
  const { prefix, path } = kind;
  const placeOf = (key: string) => inNamespace(path, kind.namespaceOf?.(key));
  const pathOf = (key: string) => {
    const name = kind.nameOf(key);
    return name === undefined ? undefined : `${placeOf(key)}/${name}`;
  };

  const writing = (
    method: "POST" | "PUT",
    { key, value, node }: { readonly key: string; readonly value: string; readonly node: string | undefined },
    existing: Existing,
  ): Writing => {
    const mark = newMark();
    const encoded = kind.encode(key, value);
    const ofNode = node === undefined ? undefined : kind.labelsOfNode?.(node);
    if (existing?.metadata.deletionTimestamp !== undefined && encoded.metadata === undefined) {
      throw beingDeleted(kind, existing);
    }
    const { labels, annotations } = encoded.metadata ?? existing?.metadata ?? {};
    const metadata = {
      ...carried(existing),
      ...encoded.metadata,
      name: kind.nameOf(key),
      ...(kind.namespaceOf === undefined ? {} : { namespace: kind.namespaceOf(key) }),
      labels: { ...labels, ...encoded.labels, ...ofNode },
      annotations: { ...annotations, [writeAnnotation]: mark },
      ...(existing === undefined ? {} : preconditionsOf(existing)),
    };
    const head = JSON.stringify({ apiVersion: kind.apiVersion, kind: kind.kind, metadata });
    const place = method === "POST" ? placeOf(key) : (pathOf(key) ?? path);
    return {
      request: {
        method,
        path: place,
        body: `${head.slice(0, -1)}${encoded.members === "" ? "" : ","}${encoded.members}}`,
      },
      isResult: ({ metadata: { annotations } }) => annotations?.[writeAnnotation] === mark,
    };
  };

  return {
    ...kind.traits,
    prefix,
    path: pathOf,
    collections: (below, node): readonly Collection[] => {
      const query = kind.selectorOf?.(below, node);
      const place = placeOf(below);
      return [query === undefined ? { path: place } : { path: place, query }];
    },
    record: (object) => {
      const record = kind.decode(object);
      return record && kind.nameOf(record.key) === object.metadata.name ? record : undefined;
    },
    create: (key, value, _, node) => writing("POST", { key, value, node }, undefined),
    update: (key, value, existing, node) => writing("PUT", { key, value, node }, existing),
    remove: (key, existing) => ({
      request: {
        method: "DELETE",
        path: `${placeOf(key)}/${existing.metadata.name}`,
        body: JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", preconditions: preconditionsOf(existing) }),
      },
      // Only marked as deleted, as long as a finalizer keeps it.
      isResult: ({ metadata }) => metadata.uid === existing.metadata.uid && metadata.deletionTimestamp !== undefined,
    }),
  };
}

/** `/apis/vendor.org/v3/namespaces/NAMESPACE/networkpolicies` */
function inNamespace(path: string, namespace: string | undefined): string {
  if (namespace === undefined) return path;
  const at = path.lastIndexOf("/");
  return `${path.slice(0, at)}/namespaces/${namespace}${path.slice(at)}`;
}

/** Metadata that others may have set, and that a replacement must not drop. */
function carried(existing: Existing): Readonly<Record<string, unknown>> {
  if (existing === undefined) return {};
  const { finalizers, ownerReferences } = existing.metadata;
  return { finalizers, ownerReferences };
}

/** What is written to such an object is lost with it, and its readers would have to rely on it. A resource of the operator may be changed. */
function beingDeleted({ kind }: CustomKind, { metadata: { name, finalizers = [] } }: ApiObject): PluginError {
  return new PluginError(
    "try-again-later",
    `Cannot update ${kind} ${quoted(name)}: it is being deleted, and kept only by ${finalizers.map(quoted).join(", ")}`,
    { details: "wait until the program that set this finalizer has removed it" },
  );
}

function preconditionsOf({ metadata: { uid, resourceVersion } }: ApiObject) {
  return { uid, resourceVersion };
}
