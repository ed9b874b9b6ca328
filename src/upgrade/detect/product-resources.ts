/** Resources of the product as plain objects, wherever they are stored: by an earlier release, by this one, or in etcd. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { apiVersionOf, identity, PRODUCT_API } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { Storage } from "../engine/facts.ts";
import { FORMER_API } from "../former-names.ts";
import { fieldsIn } from "../object-fields.ts";

export interface ProductResource {
  readonly name: string;
  readonly labels: Fields;
  readonly spec: Fields;
}

/** `store`: of a cluster that uses etcd. */
export async function productResources(
  plural: string,
  storage: Storage,
  { objects, store }: { readonly objects: ClusterObjects; readonly store: Datastore | undefined },
): Promise<readonly ProductResource[]> {
  if (storage !== "etcd") {
    const api = storage === "former" ? FORMER_API : PRODUCT_API;
    return (await objects.list(`/apis/${apiVersionOf(api)}/${plural}`)).map(resourceOf);
  }
  const entries = store === undefined ? [] : await readAllEntries(store, resourcesPrefix(plural));
  return entries.map(({ value }) => resourceOf(objectIn(value) ?? {}));
}

/** Labels that an earlier release has hidden in an annotation are the ones that count. */
function resourceOf(object: Fields): ProductResource {
  const metadata = fieldsIn(object, "metadata");
  const hidden = objectIn(fieldsIn(metadata, "annotations")[`${identity.labelPrefix}metadata`]);
  return {
    name: String(hidden?.["name"] ?? metadata["name"]),
    labels: { ...fieldsIn(metadata, "labels"), ...fieldsIn(hidden, "labels") },
    spec: fieldsIn(object, "spec"),
  };
}

function objectIn(text: unknown): Fields | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
