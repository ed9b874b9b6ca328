/**
 * The resources of the product while an upgrade is planned. An earlier release has stored them as `crd.vendor.org/v1`; until they
 * are moved, a copy in memory shows what they will be. Reads only.
 */
import type { Datastore } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../identity.ts";
import type { Fields } from "../kube/objects.ts";
import {
  BGP_PEER,
  CLUSTER_INFORMATION,
  GLOBAL_NETWORK_POLICY,
  GLOBAL_NETWORK_SET,
  HOST_ENDPOINT,
  KUBE_CONTROLLERS_CONFIGURATION,
  NETWORK_POLICY,
  NETWORK_SET,
  NODE,
  POOL,
  TIER,
} from "../model/kinds.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import { FORMER_API } from "./former-names.ts";
import type { PlanningSite } from "./step.ts";

const KINDS = [
  ...[HOST_ENDPOINT, TIER, GLOBAL_NETWORK_POLICY, NETWORK_POLICY, GLOBAL_NETWORK_SET, NETWORK_SET],
  ...[POOL, BGP_PEER, KUBE_CONTROLLERS_CONFIGURATION],
];
const DEFINITION = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${HOST_ENDPOINT.plural}.${identity.apiGroup}`;
const MOVED = `/apis/${API_VERSION}/${CLUSTER_INFORMATION.plural}/default`;
const FORMER_PATH = `/apis/${FORMER_API.group}/${FORMER_API.version}`;

export async function openResources(site: PlanningSite): Promise<Datastore> {
  return site.facts.storage === "former" && !(await isMoved(site)) ? readFormer(site) : site.openDatastore();
}

async function isMoved({ objects }: PlanningSite): Promise<boolean> {
  return (await objects.read(DEFINITION)) !== undefined && (await objects.read(MOVED)) !== undefined;
}

async function readFormer({ objects }: PlanningSite): Promise<Datastore> {
  const store = openMemory();
  const put = async (key: string, value: object) =>
    void (await store.commit([{ kind: "put", key, value: JSON.stringify(value) }]));
  for (const kind of KINDS) {
    for (const item of await objects.list(`${FORMER_PATH}/${kind.plural}`)) {
      const metadata = metadataOf(item);
      const { name, namespace } = metadata;
      const at = { name, ...(namespace === undefined ? {} : { namespace }) };
      await put(kind.key(at), { apiVersion: kind.codec.apiVersion, kind: kind.kind, metadata, spec: item["spec"] });
    }
  }
  for (const { metadata } of await objects.list("/api/v1/nodes")) {
    if (!isObject(metadata) || typeof metadata["name"] !== "string") continue;
    const { name, labels = {} } = metadata;
    const node = { apiVersion: NODE.codec.apiVersion, kind: NODE.kind, metadata: { name, labels }, spec: {} };
    await put(NODE.key({ name: metadata["name"] }), node);
  }
  return store;
}

const HIDDEN_METADATA = `${identity.labelPrefix}metadata`;
/** Names of policies had the tier in front; in the default tier they have not. */
const DEFAULT_TIER_PREFIX = "default.";

interface FormerMetadata {
  readonly [field: string]: unknown;
  readonly name: string;
  readonly namespace?: string;
}

/** Labels and annotations that users wrote are in an annotation. */
function metadataOf({ kind, metadata }: Fields): FormerMetadata {
  const { name, namespace, uid, annotations, labels: plain } = isObject(metadata) ? metadata : {};
  const hidden = isObject(annotations) ? annotations[HIDDEN_METADATA] : undefined;
  const own = typeof hidden === "string" ? parseJson(hidden) : {};
  const isPolicy = String(kind).endsWith("NetworkPolicy");
  const text = String(name);
  const { labels = plain, annotations: users } = isObject(own) ? own : {};
  return {
    name: isPolicy && text.startsWith(DEFAULT_TIER_PREFIX) ? text.slice(DEFAULT_TIER_PREFIX.length) : text,
    ...(typeof namespace === "string" ? { namespace } : {}),
    ...(uid === undefined ? {} : { uid }),
    ...(labels === undefined ? {} : { labels }),
    ...(users === undefined ? {} : { annotations: users }),
  };
}
