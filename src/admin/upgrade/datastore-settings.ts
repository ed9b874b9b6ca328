/** Where the records of a cluster are that is upgraded: as options say, or as the cluster does. */

import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { PluginError } from "../../errors.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { Facts } from "../../upgrade/engine/facts.ts";
import { FORMER_CANAL, FORMER_CONFIG_MAP } from "../../upgrade/former-names.ts";
import { clusterAccess } from "../cluster/access.ts";
import { environmentLayer, isDatastoreSelected, optionLayer } from "../datastore/choice.ts";
import { choiceOf } from "../datastore/open.ts";
import type { Given } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import { requireNoCertificates, settingsOf } from "../status/datastore-of-cluster.ts";

interface Sources {
  readonly objects: ClusterObjects;
  readonly context: DatastoreAccess;
  readonly given: Given;
}

/** `kind`: what the detection has found, or what the user has said to it. */
export async function datastoreSettingsOf(
  kind: Facts["datastore"],
  { objects, context, given }: Sources,
): Promise<DatastoreSettings> {
  if (isDatastoreSelected([optionLayer(given), environmentLayer(context.env)])) {
    return (await choiceOf(context, given, { api: true })).settings;
  }
  if (kind === "kubernetes") return { kind: "orchestrator", access: clusterAccess(given, context.env) };
  const current = await settingsOf(objects, context, given);
  if (current.kind === "etcd") return current;
  return requireNoCertificates(await formerEndpoints(objects));
}

/** In the ConfigMap of the manifests of earlier releases. */
async function formerEndpoints(objects: ClusterObjects): Promise<readonly string[]> {
  for (const name of [FORMER_CONFIG_MAP, FORMER_CANAL.configMap]) {
    const data = (await objects.read(`/api/v1/namespaces/kube-system/configmaps/${name}`))?.["data"];
    const endpoints = isObject(data) ? data["etcd_endpoints"] : undefined;
    if (typeof endpoints === "string") return endpoints.split(",").map((endpoint) => endpoint.trim());
  }
  throw new PluginError(
    "config-invalid",
    "Cannot open the datastore: the cluster does not name the endpoints of etcd",
    {
      details: "add --datastore-type etcdv3 and --etcd-endpoints",
    },
  );
}
