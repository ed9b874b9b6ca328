/**
 * The next step in removing an Installation: the pods of the components go while the plugin still works, then the nodes are
 * cleaned up, then goes what both needed. Pure; every step is decided from what there is, so that an operator that starts in
 * the middle goes on where the last one stopped.
 *
 *   1 console       Deployment deleted, pods gone; if there is one
 *   2 controllers   Deployment deleted, pods gone
 *   3 node agents   DaemonSet deleted, pods gone
 *   4 nodes         DaemonSet that removes everything from its node, until it is done on each
 *   5 the rest      accounts and roles, that DaemonSet, the namespace
 */
import { counted } from "../counted.ts";
import { identity } from "../identity.ts";
import { quoted } from "../quote.ts";
import { isListWithEntries } from "../release/admission/annotation-users.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { isApplied, isBeingDeleted, type LiveObject, textAt } from "../release/live-object.ts";
import { RENDERED_KINDS } from "../release/object-kinds.ts";
import { CONSOLE } from "../release/workloads/names.ts";
import {
  type DeletionStep,
  type DeletionView,
  GRACE_MILLISECONDS,
  isAnnotated,
  latestOf,
  SKIP_REMEDY,
  WHY_DELETED,
} from "./deletion-view.ts";
import { labelledObjects, objectNamed, objectsOf } from "./followed-objects.ts";
import { cleanUpNodes } from "./node-cleanup.ts";
import { isUnreachable } from "./node-readiness.ts";
import { SKIP_CLEANUP_ANNOTATION } from "./request-deletion.ts";

export function nextDeletionStep(view: DeletionView): DeletionStep {
  const { snapshot, namespaces } = view;
  const namespace = namespaces.components;
  const workloads = [
    ["deployments", CONSOLE],
    ["deployments", identity.controllers],
    ["daemonsets", identity.nodeAgent],
  ] as const;
  for (const [row, name] of workloads) {
    const { apiVersion, kind } = RENDERED_KINDS[row];
    const named = { apiVersion, kind, metadata: { namespace, name } };
    const step = removal(view, objectNamed(snapshot, row, named.metadata), named);
    if (step !== undefined) return step;
  }
  return cleanUpNodes(view) ?? removeRest(view);
}

/**
 * `undefined` if the workload and its pods are gone. One that somebody took the operator's label from is not followed, but
 * its pods are: if nobody ends them it is looked for by its name.
 */
function removal(view: DeletionView, workload: LiveObject | undefined, named: KubeObject): DeletionStep | undefined {
  const { name } = named.metadata;
  if (workload !== undefined && !isBeingDeleted(workload)) return removalOf([workload]);
  const left = objectsOf(view.snapshot, "pods").filter(
    (pod) => isPodOf(pod, name) && !isUnreachable(view.snapshot, pod),
  );
  if (workload === undefined && left.length === 0) return undefined;
  if (isAnnotated(view.installation, SKIP_CLEANUP_ANNOTATION)) return undefined;
  const unfollowed = workload === undefined && !left.every(isBeingDeleted) ? { unfollowed: named } : {};
  const message = `waiting for ${counted(left.length, "pod")} of ${quoted(name)} to end`;
  const stuck = left.filter((pod) => isStuck(view, pod));
  return { kind: "wait", message, ...unfollowed, ...(stuck.length === 0 ? {} : { problem: stuckMessage(stuck) }) };
}

/** It should have ended long ago: the time of deletion of a pod includes the time that it is given to end. */
function isStuck({ installation, now }: DeletionView, { metadata }: LiveObject): boolean {
  const since = latestOf([installation.metadata.deletionTimestamp, metadata.deletionTimestamp]);
  return now.getTime() >= since + GRACE_MILLISECONDS;
}

function stuckMessage(pods: readonly LiveObject[]): string {
  const places = pods.map(
    (pod) => `Pod ${quoted(pod.metadata.name)} on node ${quoted(textAt(pod, "spec", "nodeName"))}`,
  );
  const [namespace = "", names] = [pods[0]?.metadata.namespace, pods.map(({ metadata }) => metadata.name).join(" ")];
  const force = `kubectl delete pod --namespace ${namespace} --force ${names}`;
  return `${places.join(", ")} has not ended; check the kubelet of the node, or run "${force}"; ${SKIP_REMEDY}`;
}

/** By its labels: the workload may be gone already. */
function isPodOf({ metadata }: LiveObject, name: string): boolean {
  return metadata.labels?.["app.kubernetes.io/name"] === name;
}

/** The account of the node agent first: without it no node is cleaned up any more. */
function removeRest({ snapshot }: DeletionView): DeletionStep {
  const left = labelledObjects(snapshot).filter(
    (object) => isApplied(object) && !isBeingDeleted(object) && !isListWithEntries(object),
  );
  const ranked = left.toSorted((first, second) => rankOf(first) - rankOf(second));
  const [next] = ranked;
  if (next === undefined) return { kind: "finish" };
  const objects = ranked.filter((object) => rankOf(object) === rankOf(next));
  return removalOf(objects);
}

function removalOf(objects: readonly LiveObject[]): DeletionStep {
  return { kind: "delete", objects, why: WHY_DELETED };
}

function rankOf({ kind, metadata }: LiveObject): number {
  if (kind === "ServiceAccount" && metadata.name === identity.nodeAgent) return 0;
  // With the namespace goes the permission to read Secrets in it; the DaemonSet shows that the nodes are clean.
  if (kind === "Namespace") return 3;
  return kind === "DaemonSet" ? 2 : 1;
}
