/** An object with owner references to resources of the product, and what is recorded of it. Pure. */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { ApiResource } from "./api-resources.ts";

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** With `controller` and `blockOwnerDeletion`, as they were. */
  readonly [field: string]: unknown;
}

/** As it is kept in the backup, with everything that is needed to add the references again. */
export interface OwnedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
  /** Only those to the product's group. */
  readonly references: readonly OwnerReference[];
}

/** What a search finds: also who has set the references, as far as the object tells. */
export interface FoundObject extends OwnedObject {
  /** In the list of all its owner references. */
  readonly positions: readonly number[];
  readonly managers: readonly string[];
}

/** What the items of a list own to the product's group, in any version of it. Objects that are being deleted are left out. */
export function ownedObjectsIn(resource: ApiResource, items: readonly Fields[]): readonly FoundObject[] {
  return items.flatMap((item) => {
    const metadata = fieldsOf(item["metadata"]);
    if (metadata["deletionTimestamp"] !== undefined) return [];
    const all = referencesIn(metadata);
    const positions = [...all.keys()].filter((index) => isOfProduct(all[index]?.apiVersion));
    if (positions.length === 0) return [];
    const references = positions.flatMap((index) => all[index] ?? []);
    const { apiVersion, kind, plural } = resource;
    const { namespace, name, uid } = metadata;
    return [
      {
        apiVersion,
        kind,
        plural,
        ...(typeof namespace === "string" ? { namespace } : {}),
        name: String(name),
        uid: String(uid),
        references,
        positions,
        managers: managersOf(metadata["managedFields"], references),
      },
    ];
  });
}

export function referencesIn(metadata: Fields): readonly OwnerReference[] {
  const references = metadata["ownerReferences"];
  return Array.isArray(references) ? references : [];
}

/** In any version. */
export function isOfProduct(apiVersion: string | undefined): boolean {
  return apiVersion?.split("/")[0] === identity.apiGroup;
}

/** Who has set these references, by the names that programs give themselves. */
export function managersOf(managedFields: unknown, references: readonly OwnerReference[]): readonly string[] {
  const entries = Array.isArray(managedFields) ? managedFields.filter(isObject) : [];
  const keys = references.map(({ uid }) => `k:${JSON.stringify({ uid })}`);
  const managers = entries.filter(({ fieldsV1 }) => {
    const owned = fieldsOf(fieldsOf(fieldsOf(fieldsV1)["f:metadata"])["f:ownerReferences"]);
    return keys.some((key) => key in owned);
  });
  return [...new Set(managers.map(({ manager }) => String(manager)))];
}

/** `ConfigMap default/settings` */
export function describeOwned({ kind, namespace, name }: Pick<OwnedObject, "kind" | "namespace" | "name">): string {
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

/** The same object, and the same instance of it. */
export function ownedKey({ apiVersion, plural, namespace = "", name, uid }: OwnedObject): string {
  return [apiVersion, plural, namespace, name, uid].join(" ");
}

export function pathOf(place: {
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespace?: string;
  readonly name: string;
}): string {
  const { apiVersion, plural, namespace, name } = place;
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return `${root}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural}/${name}`;
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}
