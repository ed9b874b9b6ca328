/** Which datastore the network of a cluster uses: as options say, or as the network config of its node agents. */

import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { ETCD_SECRET_HASH, NETWORK_CONFIG_KEY, NETWORK_CONFIG_MAP } from "../../release/workloads/names.ts";
import { clusterAccess } from "../cluster/access.ts";
import { COMPONENT_NAMESPACES } from "../cluster/installed-image.ts";
import { environmentLayer, isDatastoreSelected, optionLayer } from "../datastore/choice.ts";
import { choiceOf } from "../datastore/open.ts";
import type { Given } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import type { DatastoreState } from "./facts.ts";
import { readDatastoreState } from "./read-datastore.ts";

/** A datastore that cannot be read is reported, and the rest of the status with it. */
export async function datastoreOfCluster(
  objects: ClusterObjects,
  context: DatastoreAccess,
  given: Given,
): Promise<DatastoreState> {
  let kind = "unknown";
  try {
    const settings = await settingsOf(objects, context, given);
    kind = settings.kind === "orchestrator" ? "kubernetes" : settings.kind;
    const store = await context.openDatastore(settings);
    try {
      return await readDatastoreState(store, kind);
    } finally {
      await store.close();
    }
  } catch (failure) {
    context.signal.throwIfAborted();
    return { kind, pools: [], agents: [], problem: `pools and releases are unknown: ${describeFailure(failure)}` };
  }
}

export async function settingsOf(
  objects: ClusterObjects,
  context: DatastoreAccess,
  given: Given,
): Promise<DatastoreSettings> {
  if (isDatastoreSelected([optionLayer(given), environmentLayer(context.env)])) {
    return (await choiceOf(context, given, { api: true })).settings;
  }
  const settings = await etcdSettings(objects);
  const access: KubeAccess = clusterAccess(given, context.env);
  return settings ?? { kind: "orchestrator", access };
}

export function requireNoCertificates(endpoints: readonly string[]): DatastoreSettings {
  if (endpoints.some((endpoint) => !endpoint.startsWith("http://"))) {
    throw withoutCertificates(endpoints.join(","), "--etcd-endpoints");
  }
  return { kind: "etcd", source: { kind: "endpoints", endpoints } };
}

/** Their files are where this tool does not see them. */
function withoutCertificates(place: string, option: string): PluginError {
  return new PluginError("config-invalid", `the datastore is etcd at ${place}, which needs certificates`, {
    details: `add --datastore-type etcdv3, ${option}, --etcd-ca-cert-file, --etcd-cert-file and --etcd-key-file`,
  });
}

/** Of the network config of the node agents, or of the settings of a manifest; `undefined` if the datastore is not etcd. */
async function etcdSettings(objects: ClusterObjects): Promise<DatastoreSettings | undefined> {
  for (const namespace of COMPONENT_NAMESPACES) {
    const plugin = pluginIn((await readData(objects, namespace, NETWORK_CONFIG_MAP))[NETWORK_CONFIG_KEY]);
    if (plugin === undefined) continue;
    if (plugin["datastore_type"] !== undefined && plugin["datastore_type"] !== "etcdv3") return undefined;
    const settings = await readData(objects, namespace, MANIFEST_SETTINGS);
    const domain = plugin["etcd_discovery_srv"];
    if (typeof domain === "string") {
      const hasFiles = CERTIFICATE_FIELDS.some((field) => (plugin[field] ?? settings[field] ?? "") !== "");
      if (hasFiles || (await hasEtcdSecret(objects, namespace))) {
        throw withoutCertificates(`domain ${domain}`, "--etcd-discovery-srv");
      }
      return { kind: "etcd", source: { kind: "discovery", domain } };
    }
    const endpoints = plugin["etcd_endpoints"] ?? settings["etcd_endpoints"];
    const texts = String(endpoints ?? "unknown endpoints").split(",");
    return requireNoCertificates(texts.map((endpoint) => endpoint.trim()));
  }
  return undefined;
}

/** Of a network config, and of the settings of a manifest. */
const CERTIFICATE_FIELDS = [
  ...["etcd_ca_cert_file", "etcd_cert_file", "etcd_key_file"],
  ...["etcd_ca", "etcd_cert", "etcd_key"],
];

/** The operator gives the node agents the certificates of a Secret. */
async function hasEtcdSecret(objects: ClusterObjects, namespace: string): Promise<boolean> {
  const agents = await objects.read(`/apis/apps/v1/namespaces/${namespace}/daemonsets/${identity.nodeAgent}`);
  const path = ["spec", "template", "metadata", "annotations", ETCD_SECRET_HASH];
  return path.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), agents) !== undefined;
}

/** The ConfigMap with what a user sets in a manifest. */
const MANIFEST_SETTINGS = `${identity.product}-config`;

async function readData(objects: ClusterObjects, namespace: string, name: string): Promise<Fields> {
  const data = (await objects.read(`/api/v1/namespaces/${namespace}/configmaps/${name}`))?.["data"];
  return isObject(data) ? data : {};
}

/** The entry of the plugin in a network config. */
function pluginIn(text: unknown): Fields | undefined {
  const list = typeof text === "string" ? parseJson(text) : undefined;
  const plugins = isObject(list) ? list["plugins"] : undefined;
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [];
  return entries.filter(isObject).find(({ type }) => type === identity.product);
}
