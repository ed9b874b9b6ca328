/**
 * The resources of the product while an upgrade is planned. An earlier release has stored them as `crd.vendor.org/v1`; until they
 * are moved, a copy in memory shows what they will be. Reads only.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { CLUSTER_INFORMATION, HOST_ENDPOINT, NODE } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";
import type { PlanningSite } from "../engine/step.ts";
import { readFormer } from "./read-former.ts";

const DEFINITION = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${HOST_ENDPOINT.plural}.${identity.apiGroup}`;
const MOVED = `/apis/${API_VERSION}/${CLUSTER_INFORMATION.plural}/default`;

export async function openResources(site: PlanningSite): Promise<Datastore> {
  return site.facts.storage === "former" && !(await isMoved(site)) ? copyOf(site) : site.openDatastore();
}

async function isMoved({ objects }: PlanningSite): Promise<boolean> {
  return (await objects.read(DEFINITION)) !== undefined && (await objects.read(MOVED)) !== undefined;
}

async function copyOf({ objects }: PlanningSite): Promise<Datastore> {
  const store = openMemory();
  const { records } = await readFormer(objects);
  for (const { key, value } of [...records, ...(await nodeRecords(objects))]) {
    await store.commit([{ kind: "put", key, value }]);
  }
  return store;
}

/** A Node is the node of the cluster, before and after. */
async function nodeRecords(objects: PlanningSite["objects"]): Promise<readonly { key: string; value: string }[]> {
  return (await objects.list("/api/v1/nodes")).flatMap(({ metadata }) => {
    if (!isObject(metadata) || typeof metadata["name"] !== "string") return [];
    const { name, labels = {} } = metadata;
    const node = { apiVersion: NODE.codec.apiVersion, kind: NODE.kind, metadata: { name, labels }, spec: {} };
    return [{ key: NODE.key({ name: metadata["name"] }), value: JSON.stringify(node) }];
  });
}
