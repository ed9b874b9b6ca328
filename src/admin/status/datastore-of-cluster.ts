/** Which datastore the network of a cluster uses: as options say, or as the network config of its node agents. */
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { isObject } from "../../model/shape.ts";
import { NETWORK_CONFIG_KEY, NETWORK_CONFIG_MAP } from "../../operator/render/names.ts";
import { parseJson } from "../../parse-json.ts";
import { clusterAccess } from "../cluster/access.ts";
import { COMPONENT_NAMESPACES } from "../cluster/installed-image.ts";
import type { ClusterObjects } from "../cluster/objects.ts";
import type { Context, Given } from "../command.ts";
import { environmentLayer, isDatastoreSelected, optionLayer } from "../datastore/choice.ts";
import { choiceOf } from "../datastore/open.ts";
import { errorMessage } from "../error-message.ts";
import type { DatastoreState } from "./facts.ts";
import { readDatastoreState } from "./read-datastore.ts";

/** A datastore that cannot be read is reported, and the rest of the status with it. */
export async function datastoreOfCluster(
  objects: ClusterObjects,
  context: Context,
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
    return { kind, pools: [], agents: [], problem: `pools and releases are unknown: ${errorMessage(failure)}` };
  }
}

async function settingsOf(objects: ClusterObjects, context: Context, given: Given): Promise<DatastoreSettings> {
  if (isDatastoreSelected([optionLayer(given), environmentLayer(context.env)])) {
    return (await choiceOf(context, given, { api: true })).settings;
  }
  const endpoints = etcdEndpoints(await installedConfig(objects));
  const access: KubeAccess = clusterAccess(given, context.env);
  if (endpoints === undefined) return { kind: "orchestrator", access };
  if (endpoints.every((endpoint) => endpoint.startsWith("http://"))) {
    return { kind: "etcd", source: { kind: "endpoints", endpoints } };
  }
  throw new PluginError("config-invalid", `the datastore is etcd at ${endpoints.join(",")}, which needs certificates`, {
    details: "add --datastore-type etcdv3, --etcd-endpoints, --etcd-ca-cert-file, --etcd-cert-file and --etcd-key-file",
  });
}

/** The entry of the plugin in the network config of the node agents; `undefined` if the cluster has none. */
async function installedConfig(objects: ClusterObjects): Promise<Readonly<Record<string, unknown>> | undefined> {
  for (const namespace of COMPONENT_NAMESPACES) {
    const map = await objects.read(`/api/v1/namespaces/${namespace}/configmaps/${NETWORK_CONFIG_MAP}`);
    const data = map?.["data"];
    const text = isObject(data) ? data[NETWORK_CONFIG_KEY] : undefined;
    const list = typeof text === "string" ? parseJson(text) : undefined;
    const plugins = isObject(list) ? list["plugins"] : undefined;
    if (Array.isArray(plugins)) return plugins.filter(isObject).find(({ type }) => type === identity.product);
  }
  return undefined;
}

function etcdEndpoints(config: Readonly<Record<string, unknown>> | undefined): readonly string[] | undefined {
  const { etcd_endpoints: endpoints, datastore_type: type = "etcdv3" } = config ?? {};
  if (type !== "etcdv3" || typeof endpoints !== "string") return undefined;
  return endpoints.split(",").map((endpoint) => endpoint.trim());
}
