/**
 * The next step in removing an Installation: the pods of the components go while the plugin still works, then the nodes are
 * cleaned up, then goes what both needed. Pure; every step is decided from what there is, so that an operator that starts in
 * the middle goes on where the last one stopped.
 *
 *   1 controllers   Deployment deleted, pods gone
 *   2 node agents   DaemonSet deleted, pods gone
 *   3 nodes         DaemonSet that removes everything from its node, until it is done on each
 *   4 the rest      accounts and roles, that DaemonSet, the namespace
 */
import { counted } from "../../counted.ts";
import { identity } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import { UNINSTALL } from "../render/names.ts";
import { type FollowedSnapshot, labelledObjects, type Namespaces, objectNamed, objectsOf } from "./followed-objects.ts";
import { isApplied, isBeingDeleted, type LiveObject, listAt, numberAt, textAt } from "./live-object.ts";
import { SKIP_CLEANUP_ANNOTATION } from "./names.ts";
import { nodeProblem } from "./node-readiness.ts";
import { podProblem } from "./pod-problems.ts";
import { podsOf } from "./workload-state.ts";

export type DeletionStep =
  | { readonly kind: "delete"; readonly objects: readonly LiveObject[]; readonly why: string }
  | { readonly kind: "wait"; readonly message: string; readonly problem?: string }
  /** Applies the DaemonSet that cleans up the nodes. */
  | { readonly kind: "clean up nodes" }
  | { readonly kind: "finish" };

export interface DeletionView {
  readonly snapshot: FollowedSnapshot;
  readonly namespaces: Namespaces;
  /** An administrator does not want to wait for nodes that cannot be cleaned up. */
  readonly skipsNodes: boolean;
}

export function nextDeletionStep(view: DeletionView): DeletionStep {
  const { snapshot, namespaces } = view;
  const namespace = namespaces.components;
  const workloads = [
    ["deployments", identity.controllers],
    ["daemonsets", identity.nodeAgent],
  ] as const;
  for (const [row, name] of workloads) {
    const step = removal(view, objectNamed(snapshot, row, { namespace, name }), name);
    if (step !== undefined) return step;
  }
  return cleanUpNodes(view) ?? removeRest(view);
}

/** `undefined` if the workload and its pods are gone. */
function removal(view: DeletionView, workload: LiveObject | undefined, name: string): DeletionStep | undefined {
  if (workload !== undefined && !isBeingDeleted(workload)) {
    return { kind: "delete", objects: [workload], why: "the Installation is being deleted" };
  }
  const left = objectsOf(view.snapshot, "pods").filter((pod) => isPodOf(pod, name) && !isUnreachable(view, pod));
  if (workload === undefined && left.length === 0) return undefined;
  return { kind: "wait", message: `waiting for ${counted(left.length, "pod")} of ${quoted(name)} to end` };
}

/** By its labels: the workload may be gone already. */
function isPodOf({ metadata }: LiveObject, name: string): boolean {
  return metadata.labels?.["app.kubernetes.io/name"] === name;
}

/** Nobody removes the pods of a node that is gone or does not respond. */
function isUnreachable({ snapshot }: DeletionView, pod: LiveObject): boolean {
  const name = textAt(pod, "spec", "nodeName");
  const node = name === "" ? undefined : objectNamed(snapshot, "nodes", { name });
  return name !== "" && (node === undefined || nodeProblem(node) !== undefined);
}

/** `undefined` if they are cleaned up, or nothing was ever installed on them: an agent needs its account. */
function cleanUpNodes(view: DeletionView): DeletionStep | undefined {
  const { snapshot, namespaces, skipsNodes } = view;
  const namespace = namespaces.components;
  const account = objectNamed(snapshot, "serviceaccounts", { namespace, name: identity.nodeAgent });
  if (skipsNodes || account === undefined || isBeingDeleted(account)) return undefined;
  const cleaner = objectNamed(snapshot, "daemonsets", { namespace, name: UNINSTALL });
  if (cleaner === undefined) return { kind: "clean up nodes" };
  const isKnown = numberAt(cleaner, "status", "observedGeneration") >= (cleaner.metadata.generation ?? 0);
  const desired = isKnown ? numberAt(cleaner, "status", "desiredNumberScheduled") : Number.POSITIVE_INFINITY;
  const pods = podsOf(cleaner, objectsOf(snapshot, "pods")).filter((pod) => !isBeingDeleted(pod));
  const done = pods.filter(isReady);
  const unreachable = pods.filter((pod) => !isReady(pod) && isUnreachable(view, pod));
  if (done.length + unreachable.length >= desired) return undefined;
  const [problem] = pods.flatMap((pod) => podProblem(pod) ?? []);
  const waiting = isKnown
    ? `waiting until ${desired - done.length} of ${counted(desired, "node")} are cleaned up`
    : "waiting for the orchestrator to clean up the nodes";
  const skip = `to delete the Installation without it, run "kubectl annotate installation default ${SKIP_CLEANUP_ANNOTATION}=true"`;
  return { kind: "wait", message: waiting, ...(problem === undefined ? {} : { problem: `${problem}; ${skip}` }) };
}

function isReady(pod: LiveObject): boolean {
  const ready = listAt(pod, "status", "conditions").find((each) => textAt(each, "type") === "Ready");
  return textAt(ready, "status") === "True";
}

/** The account of the node agent first: without it the nodes are not cleaned up once more. */
function removeRest({ snapshot }: DeletionView): DeletionStep {
  const left = labelledObjects(snapshot).filter((object) => isApplied(object) && !isBeingDeleted(object));
  const ranked = left.toSorted((first, second) => rankOf(first) - rankOf(second));
  const [next] = ranked;
  if (next === undefined) return { kind: "finish" };
  const objects = ranked.filter((object) => rankOf(object) === rankOf(next));
  return { kind: "delete", objects, why: "the Installation is being deleted" };
}

function rankOf({ kind, metadata }: LiveObject): number {
  if (kind === "ServiceAccount" && metadata.name === identity.nodeAgent) return 0;
  // With the namespace goes the permission to read Secrets in it; the DaemonSet shows that the nodes are clean.
  if (kind === "Namespace") return 3;
  return kind === "DaemonSet" ? 2 : 1;
}

/** Nodes that nobody cleaned up: what is installed on them stays. */
export function uncleanedNodes({ snapshot, namespaces }: DeletionView): readonly string[] {
  const cleaner = objectNamed(snapshot, "daemonsets", { namespace: namespaces.components, name: UNINSTALL });
  if (cleaner === undefined) return [];
  const pods = podsOf(cleaner, objectsOf(snapshot, "pods"));
  return pods.filter((pod) => !isReady(pod)).map((pod) => textAt(pod, "spec", "nodeName"));
}
