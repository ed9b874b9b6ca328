/** Finds out what is installed in a cluster. Reads only. */
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { Facts, Obstacle } from "../facts.ts";
import { FORMER_NODE_DAEMON_SET } from "../former-names.ts";
import type { Detection, DetectionRequest } from "./detection.ts";

const INSTALLATION = `/apis/${apiVersionOf(OPERATOR_API)}/installations/default`;

export async function detectFacts(objects: ClusterObjects, request: DetectionRequest): Promise<Detection> {
  const isOperator = (await objects.read(INSTALLATION)) !== undefined;
  const namespace = isOperator ? identity.systemNamespace : "kube-system";
  const daemonSet = await objects.read(`/apis/apps/v1/namespaces/${namespace}/daemonsets/${FORMER_NODE_DAEMON_SET}`);
  const version = request.version ?? versionIn(daemonSet);
  if (version === undefined) return { kind: "unclear", obstacles: [nothingFound(namespace)], partial: { namespace } };
  const facts: Facts = {
    method: isOperator ? { kind: "operator" } : { kind: "manifest", network: request.network ?? "own" },
    datastore: request.datastore ?? "kubernetes",
    storage: request.datastore === "etcd" ? "etcd" : "current",
    version,
    target: request.target,
    parts: [{ part: `DaemonSet ${namespace}/${FORMER_NODE_DAEMON_SET}`, version }],
    orchestratorVersion: String((await objects.read("/version"))?.["gitVersion"] ?? "unknown"),
    nodes: (await objects.list("/api/v1/nodes")).map(nameOf),
    namespace,
    hasAggregatedApi: false,
    unfinished: [],
    hasApplicationLayerPolicy: false,
    hostEndpoints: [],
    hasUpgradePolicy: false,
    ownedObjects: [],
  };
  return { kind: "found", facts };
}

/** The tag of the image of its first container. */
function versionIn(daemonSet: Fields | undefined): string | undefined {
  const image = /"image":"[^"]*:(v\d+\.\d+\.\d+[^"@]*)"/.exec(JSON.stringify(daemonSet ?? {}));
  return image?.[1];
}

function nothingFound(namespace: string): Obstacle {
  return {
    message: `no DaemonSet ${FORMER_NODE_DAEMON_SET} with a released version in namespace "${namespace}"`,
    remedy: "name the version with --from-version, or the method with --method",
  };
}

function nameOf({ metadata }: Fields): string {
  return isObject(metadata) ? String(metadata["name"]) : "";
}
