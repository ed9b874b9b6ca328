/** Which workloads have pods with an older sidecar, and which of them a restart renews. Pure. */
import { FORMER_SIDECAR, identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { listed } from "../../upgrade/engine/wording.ts";
import { type MeshPod, type Owner, releaseOf, topOwner } from "../mesh/mesh-pods.ts";

export interface OutdatedWorkload {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  /** Pods with an older sidecar. */
  readonly pods: readonly string[];
  /** Some of them have the sidecar of a release up to v3.28. */
  readonly hasEarlierSidecar: boolean;
}

/** `isOutdated`: by default, of another release than this, or of a time when it had another name. */
export function outdatedWorkloads(
  pods: readonly MeshPod[],
  owners: ReadonlyMap<string, Owner>,
  isOutdated: (pod: MeshPod) => boolean,
): readonly OutdatedWorkload[] {
  const groups = Map.groupBy(pods.filter(isOutdated), (pod) => {
    const { kind, name } = topOwner(pod, owners);
    return `${pod.namespace}/${kind}/${name}`;
  });
  return [...groups]
    .map(([key, members]) => {
      const [namespace = "", kind = "", name = ""] = key.split("/");
      const hasEarlierSidecar = members.some((pod) => pod.hasEarlierSidecar);
      return { namespace, kind, name, pods: members.map((pod) => pod.name).toSorted(), hasEarlierSidecar };
    })
    .toSorted((one, other) => (titleOf(one) < titleOf(other) ? -1 : 1));
}

export function isOlderThan(target: string): (pod: MeshPod) => boolean {
  return (pod) => pod.hasEarlierSidecar || (pod.sidecarImage !== undefined && releaseOf(pod) !== target);
}

/** `Deployment shop/web` */
export function titleOf({ kind, namespace, name }: OutdatedWorkload): string {
  return `${kind} ${namespace}/${name}`;
}

const PLURALS: Readonly<Record<string, string>> = {
  Deployment: "deployments",
  StatefulSet: "statefulsets",
  DaemonSet: "daemonsets",
};

/** `undefined`: nothing restarts its pods. */
export function workloadPath({ kind, namespace, name }: OutdatedWorkload): string | undefined {
  const plural = PLURALS[kind];
  return plural === undefined ? undefined : `/apis/apps/v1/namespaces/${namespace}/${plural}/${name}`;
}

/** Why a restart does not renew its sidecars; `undefined` if it does. */
export function notRestarted(workload: OutdatedWorkload, object: Fields | undefined): string | undefined {
  if (workloadPath(workload) === undefined || object === undefined) {
    return `nothing restarts ${listed(workload.pods)}: replace it`;
  }
  const spec = partOf(object, "spec");
  const containers = partOf(partOf(spec, "template"), "spec")["containers"];
  const names = Array.isArray(containers) ? containers.filter(isObject).map(({ name }) => name) : [];
  const own = names.find((name) => name === FORMER_SIDECAR || name === identity.sidecar);
  if (own !== undefined) return `its own template has the container ${String(own)}: change it there`;
  const strategy = partOf(spec, "updateStrategy");
  if (strategy["type"] === "OnDelete") return `its update strategy is OnDelete: delete ${listed(workload.pods)}`;
  if (Number(partOf(strategy, "rollingUpdate")["partition"] ?? 0) > 0) return "its rolling update is partitioned";
  return spec["paused"] === true ? "it is paused: resume and restart it" : undefined;
}

/** What its rolling update still waits for; `undefined` if it is complete. */
export function rolloutPending(kind: string, object: Fields): string | undefined {
  const { generation = 0 } = partOf(object, "metadata");
  const [spec, status] = [partOf(object, "spec"), partOf(object, "status")];
  const count = (field: string) => Number(status[field] ?? 0);
  if (count("observedGeneration") < Number(generation)) return "its change has not been processed yet";
  if (kind === "DaemonSet") {
    const wanted = count("desiredNumberScheduled");
    return shortOf(wanted, count("updatedNumberScheduled"), count("numberAvailable"));
  }
  const wanted = Number(spec["replicas"] ?? 1);
  const isOneRevision = kind === "StatefulSet" && status["currentRevision"] === status["updateRevision"];
  const updated = isOneRevision ? wanted : count("updatedReplicas");
  const available = count(kind === "StatefulSet" ? "readyReplicas" : "availableReplicas");
  const surplus = count("replicas") - wanted;
  return shortOf(wanted, updated, available) ?? (surplus > 0 ? `${surplus} former pods are still there` : undefined);
}

function shortOf(wanted: number, updated: number, available: number): string | undefined {
  if (updated < wanted) return `${updated} of ${wanted} pods are updated`;
  return available < wanted ? `${available} of ${wanted} pods are ready` : undefined;
}

function partOf(value: unknown, field: string): Fields {
  const part = isObject(value) ? value[field] : undefined;
  return isObject(part) ? part : {};
}
