/**
 * The step of a deletion that cleans up the nodes: a DaemonSet removes everything from its node, and the accounts stay until
 * it is done on each. A node that does not respond (a reboot, a restarted kubelet) is waited for during a grace period. Pure.
 */
import { counted } from "../counted.ts";
import { identity } from "../identity.ts";
import { quoted } from "../quote.ts";
import { isBeingDeleted, type LiveObject, listAt, memberAt, numberAt, textAt } from "../release/live-object.ts";
import { CLEANED_UP_ANNOTATION } from "../release/operator-names.ts";
import { UNINSTALL } from "../release/workloads/names.ts";
import {
  type DeletionStep,
  type DeletionView,
  GRACE_MILLISECONDS,
  isAnnotated,
  latestOf,
  SKIP_REMEDY,
} from "./deletion-view.ts";
import { objectNamed, objectsOf } from "./followed-objects.ts";
import { nodeProblem, readyCondition } from "./node-readiness.ts";
import { podProblem } from "./pod-problems.ts";
import { SKIP_CLEANUP_ANNOTATION } from "./request-deletion.ts";
import { podsOf } from "./workload-state.ts";

/** `undefined` if they are cleaned up, or nothing was ever installed on them. */
export function cleanUpNodes(view: DeletionView): DeletionStep | undefined {
  const { snapshot, namespaces, installation } = view;
  const namespace = namespaces.components;
  const account = objectNamed(snapshot, "serviceaccounts", { namespace, name: identity.nodeAgent });
  if (isAnnotated(installation, CLEANED_UP_ANNOTATION)) return undefined;
  const cleaner = objectNamed(snapshot, "daemonsets", { namespace, name: UNINSTALL });
  if (account === undefined || isBeingDeleted(account)) {
    // Deleted by hand, perhaps with its namespace: without it nothing can run on the nodes.
    const wasInstalled = memberAt(installation, "status", "computed") !== undefined;
    return wasInstalled ? leaveUnclean(view, cleaner) : undefined;
  }
  if (isAnnotated(installation, SKIP_CLEANUP_ANNOTATION)) return leaveUnclean(view, cleaner);
  if (cleaner === undefined) return { kind: "clean up nodes" };
  return waitForNodes(view, cleaner);
}

function waitForNodes(view: DeletionView, cleaner: LiveObject): DeletionStep {
  if (numberAt(cleaner, "status", "observedGeneration") < (cleaner.metadata.generation ?? 0)) {
    return { kind: "wait", message: "waiting for the orchestrator to clean up the nodes" };
  }
  const desired = numberAt(cleaner, "status", "desiredNumberScheduled");
  const pods = podsOf(cleaner, objectsOf(view.snapshot, "pods")).filter((pod) => !isBeingDeleted(pod));
  const done = pods.filter(isReady);
  const unclean = pods.filter((pod) => !isReady(pod));
  const given = unclean.filter((pod) => isGivenUp(view, pod));
  if (done.length + given.length >= desired) return { kind: "nodes are done", unclean: given.map(nodeNameOf) };
  const message = `waiting until ${desired - done.length} of ${counted(desired, "node")} are cleaned up`;
  const [broken] = unclean.flatMap((pod) => podProblem(pod) ?? []);
  if (broken !== undefined) return { kind: "wait", message, problem: `${broken}; ${SKIP_REMEDY}` };
  const silent = unclean.filter((pod) => !given.includes(pod)).flatMap((pod) => silentNode(view, pod) ?? []);
  if (silent.length === 0) return { kind: "wait", message };
  return { kind: "wait", message, problem: `${silent.join("; ")}; ${SKIP_REMEDY}`, reason: "NodeNotReady" };
}

/** An administrator does not want to wait, or has deleted what the cleanup needs. */
function leaveUnclean({ snapshot }: DeletionView, cleaner: LiveObject | undefined): DeletionStep {
  if (cleaner === undefined) {
    return { kind: "nodes are done", unclean: objectsOf(snapshot, "nodes").map(({ metadata }) => metadata.name) };
  }
  const pods = podsOf(cleaner, objectsOf(snapshot, "pods")).filter((pod) => !isReady(pod));
  return { kind: "nodes are done", unclean: pods.map(nodeNameOf) };
}

/** Its node is gone, or has not responded for the whole grace period. */
function isGivenUp(view: DeletionView, pod: LiveObject): boolean {
  const node = nodeOf(view, pod);
  if (node === undefined) return nodeNameOf(pod) !== "";
  return nodeProblem(node) !== undefined && view.now.getTime() >= graceEnd(view, node);
}

function silentNode(view: DeletionView, pod: LiveObject): string | undefined {
  const node = nodeOf(view, pod);
  const problem = node === undefined ? undefined : nodeProblem(node);
  if (node === undefined || problem === undefined) return undefined;
  const until = new Date(graceEnd(view, node)).toISOString().replace(/\.\d+Z$/, "Z");
  return `${problem}; the deletion waits for it until ${until}`;
}

/** From the beginning of the deletion, or from when the node stopped responding. */
function graceEnd({ installation }: DeletionView, node: LiveObject): number {
  const since = textAt(readyCondition(node), "lastTransitionTime");
  return latestOf([installation.metadata.deletionTimestamp, since]) + GRACE_MILLISECONDS;
}

function nodeOf({ snapshot }: DeletionView, pod: LiveObject): LiveObject | undefined {
  return objectNamed(snapshot, "nodes", { name: nodeNameOf(pod) });
}

/** A pod of a DaemonSet that is not scheduled yet names its node in its affinity. */
function nodeNameOf(pod: LiveObject): string {
  const name = textAt(pod, "spec", "nodeName");
  if (name !== "") return name;
  const required = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
  const fields = listAt(pod, ...required, "nodeSelectorTerms").flatMap((term) => listAt(term, "matchFields"));
  const [value] = fields.flatMap((field) => listAt(field, "values"));
  return typeof value === "string" ? value : "";
}

function isReady(pod: LiveObject): boolean {
  return textAt(readyCondition(pod), "status") === "True";
}

/** What an administrator has to know about nodes that were not cleaned up. */
export function uncleanMessage(nodes: readonly string[]): string {
  const remedy = `when they are back, apply ${identity.product}-uninstall.yaml to clean them up`;
  return `Nodes that were not cleaned up, so that the plugin is still installed there: ${nodes.map(quoted).join(", ")}; ${remedy}`;
}
