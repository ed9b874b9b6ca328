/** How far the pods of the node agents are, and why one is not further. Pure. */
import type { Fields } from "../../kube/objects.ts";
import { fieldsIn, itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf } from "../pod-template.ts";
import { isWantedOn } from "./wanted-nodes.ts";

export interface RolloutView {
  readonly daemonSet: Fields;
  /** Of the DaemonSet. */
  readonly pods: readonly Fields[];
  readonly nodes: readonly Fields[];
  /** Label `controller-revision-hash` of pods with the present template; absent if it is not known. */
  readonly revision?: string | undefined;
  /** The name of our container. */
  readonly container: string;
  /** With etcd: a pod counts if our container is ready, although others are not. */
  readonly isPartlyReadyAccepted: boolean;
  readonly now: Date;
}

/**
 * "old": its pod has another template. "starting": its pod is new, but does not work yet. "accepted": our container is
 * ready and others are not, which is enough. "ready".
 */
export interface NodeState {
  readonly node: string;
  readonly state: "absent" | "old" | "starting" | "accepted" | "ready";
  readonly pod?: Fields;
  /** Why it is not done; empty if it is, or waits for its turn. */
  readonly why: string;
  /** Its machine was down before its former pod was to end: the release has nothing to do with that. */
  readonly isDown?: true;
}

/** Another container that does not become ready within this time is not waited for. */
const PATIENCE_MILLISECONDS = 30_000;

export function nodeStates(view: RolloutView): readonly NodeState[] {
  const wanted = view.nodes.filter((node) => isWantedOn(view.daemonSet, node)).map(nameOf);
  const pods = Map.groupBy(view.pods, (pod) => textIn(pod["spec"], "nodeName") ?? "");
  const nodes = nodesByName(view);
  const names = new Set([...wanted, ...pods.keys()].filter((name) => name !== ""));
  return [...names]
    .toSorted()
    .map((node) => stateOf(view, node, { pods: pods.get(node) ?? [], object: nodes.get(node) }));
}

export function nodesByName({ nodes }: Pick<RolloutView, "nodes">): ReadonlyMap<string, Fields> {
  return new Map(nodes.map((node) => [nameOf(node), node]));
}

function stateOf(
  view: RolloutView,
  node: string,
  { pods, object }: { readonly pods: readonly Fields[]; readonly object: Fields | undefined },
): NodeState {
  const trouble = nodeTrouble(object);
  const pod = pods.find((each) => isNew(view, each)) ?? pods[0];
  if (pod === undefined) return { node, state: "absent", why: trouble || "it has no pod of the DaemonSet" };
  if (!isNew(view, pod)) {
    const isDown = wasDownBefore(object, pod) ? ({ isDown: true } as const) : {};
    return { node, state: "old", pod, why: trouble || oldPodReason(view, pod), ...isDown };
  }
  const problem = podProblem(pod);
  const unready = unreadyContainers(pod);
  if (problem === "" && unready.length === 0 && isRunning(pod)) return { node, state: "ready", pod, why: "" };
  if (problem === "" && isAccepted(view, pod)) return { node, state: "accepted", pod, why: "" };
  const waiting = unready.length === 0 ? "it does not run yet" : `not ready: ${unready.join(", ")}`;
  return {
    node,
    state: "starting",
    pod,
    why: `pod ${nameOf(pod)}: ${problem || waiting}${trouble === "" ? "" : `; ${trouble}`}`,
  };
}

function isNew({ daemonSet, revision }: RolloutView, pod: Fields): boolean {
  if (revision !== undefined) return fieldsIn(pod, "metadata", "labels")["controller-revision-hash"] === revision;
  return itemsIn(podSpecOf(daemonSet), "containers").every(
    ({ name, image }) => named(itemsIn(pod["spec"], "containers"), String(name))?.["image"] === image,
  );
}

/** Empty if the Node is ready. */
export function nodeTrouble(node: Fields | undefined): string {
  if (node === undefined) return "the Node does not exist";
  const ready = readyOf(node);
  if (ready?.["status"] === "True") return "";
  return `the Node is not ready${detail(ready?.["reason"], ready?.["message"])}`;
}

/** Its kubelet does not report: nothing on it ends, nor is anybody sure that it runs. */
export function isSilent(node: Fields | undefined): boolean {
  return readyOf(node)?.["status"] === "Unknown";
}

function readyOf(node: Fields | undefined): Fields | undefined {
  return itemsIn(node?.["status"], "conditions").find(({ type }) => type === "Ready");
}

/**
 * The kubelet is silent, and was so before the pod was deleted, by whomever. Both times are of the orchestrator's own clock;
 * one that is missing proves nothing.
 */
function wasDownBefore(node: Fields | undefined, pod: Fields): boolean {
  if (!isSilent(node)) return false;
  const { deletionTimestamp, deletionGracePeriodSeconds } = fieldsIn(pod, "metadata");
  if (deletionTimestamp === undefined) return true;
  const deletedAt = Date.parse(String(deletionTimestamp)) - Number(deletionGracePeriodSeconds ?? 0) * 1_000;
  return Date.parse(String(readyOf(node)?.["lastTransitionTime"])) < deletedAt;
}

function oldPodReason({ daemonSet }: RolloutView, pod: Fields): string {
  const name = nameOf(pod);
  if (fieldsIn(daemonSet, "spec", "updateStrategy")["type"] === "OnDelete") {
    return `pod ${name} is of the earlier release, and the update strategy is OnDelete: delete the pod`;
  }
  return fieldsIn(pod, "metadata")["deletionTimestamp"] === undefined ? "" : `pod ${name} does not end`;
}

export function isRunning(pod: Fields): boolean {
  return fieldsIn(pod, "status")["phase"] === "Running" && fieldsIn(pod, "metadata")["deletionTimestamp"] === undefined;
}

/** The first that will not pass by itself. */
export function podProblem(pod: Fields): string {
  const status = fieldsIn(pod, "status");
  const statuses = [...itemsIn(status, "initContainerStatuses"), ...itemsIn(status, "containerStatuses")];
  for (const each of statuses) {
    const waiting = fieldsIn(each, "state", "waiting");
    const reason = textIn(waiting, "reason");
    if (reason === undefined || reason === "PodInitializing" || reason === "ContainerCreating") continue;
    const last = fieldsIn(each, "lastState", "terminated");
    const ended =
      last["exitCode"] === undefined
        ? ""
        : `; it ended with ${last["exitCode"]}${detail(last["reason"], last["message"])}`;
    return `container ${each["name"]}: ${reason}${detail(undefined, waiting["message"])}${ended}`;
  }
  const unscheduled = schedulingProblem(pod);
  if (unscheduled !== "") return unscheduled;
  return status["phase"] === "Failed" ? `it has failed${detail(status["reason"], status["message"])}` : "";
}

export function schedulingProblem(pod: Fields): string {
  const unscheduled = itemsIn(pod["status"], "conditions").find(
    (each) => each["type"] === "PodScheduled" && each["status"] === "False",
  );
  return unscheduled === undefined ? "" : `it is not scheduled${detail(unscheduled["reason"], unscheduled["message"])}`;
}

export function unreadyContainers(pod: Fields): readonly string[] {
  const statuses = itemsIn(pod["status"], "containerStatuses");
  return itemsIn(pod["spec"], "containers")
    .map(({ name }) => String(name))
    .filter((name) => named(statuses, name)?.["ready"] !== true);
}

/** Our container is ready, and the others have had their time. */
function isAccepted({ isPartlyReadyAccepted, container, now }: RolloutView, pod: Fields): boolean {
  if (!isPartlyReadyAccepted || !isRunning(pod)) return false;
  const own = named(itemsIn(pod["status"], "containerStatuses"), container);
  if (own?.["ready"] !== true) return false;
  const running = fieldsIn(own, "state", "running");
  const startedAt = Date.parse(textIn(running, "startedAt") ?? "");
  return now.getTime() - startedAt >= PATIENCE_MILLISECONDS;
}

/** In parentheses; empty if there is nothing to say. */
export function detail(reason: unknown, message: unknown): string {
  const parts = [reason, message].filter((part) => typeof part === "string" && part !== "");
  return parts.length === 0 ? "" : ` (${parts.join(": ")})`;
}

export function nameOf(object: Fields): string {
  return textIn(object["metadata"], "name") ?? "";
}
