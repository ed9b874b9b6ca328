/** What would stop a rolling update of the node agents, found before anything is changed. Pure. */
import type { Fields } from "../../../kube/objects.ts";
import type { Obstacle } from "../../engine/facts.ts";
import {
  type NodeState,
  nameOf,
  nodeStates,
  nodesByName,
  nodeTrouble,
  type RolloutView,
  schedulingProblem,
} from "../../nodes/pods.ts";
import { fieldsIn, itemsIn, textIn } from "../../object-fields.ts";

const AGAIN = "then make the plan again";

/** One for each node. `view`: before the update. */
export function rolloutObstacles(view: RolloutView): readonly Obstacle[] {
  const nodes = nodesByName(view);
  return nodeStates(view).flatMap((state) => obstacleOf(view, state, nodes.get(state.node)) ?? []);
}

function obstacleOf(view: RolloutView, { node, pod }: NodeState, object: Fields | undefined): Obstacle | undefined {
  const trouble = nodeTrouble(object);
  if (trouble !== "" && !waitsForNetwork(object)) {
    return {
      message: `Node ${node} cannot be updated: ${trouble}. The rolling update would wait for it`,
      remedy: `repair the node, or delete the Node ${node} if it does not come back; ${AGAIN}`,
    };
  }
  const problem = podProblem(view, pod);
  if (problem === "") return undefined;
  return {
    message: `Node ${node} cannot be updated: ${problem}. The rolling update would wait for it`,
    remedy: `see the events of the DaemonSet ${nameOf(view.daemonSet)} and of its pod, remove the cause, ${AGAIN}`,
  };
}

/** Its kubelet works, and reports that the network plugin does not: an update may be what helps. */
function waitsForNetwork(node: Fields | undefined): boolean {
  const ready = itemsIn(node?.["status"], "conditions").find(({ type }) => type === "Ready");
  return ready?.["status"] === "False" && /NetworkPluginNotReady/.test(textIn(ready, "message") ?? "");
}

/** Pods that do not work may be replaced; those that cannot start or end cannot. */
function podProblem({ daemonSet, now }: RolloutView, pod: Fields | undefined): string {
  if (pod === undefined) {
    const isObserved = fieldsIn(daemonSet, "status")["observedGeneration"] !== undefined;
    return isObserved ? "it has no pod of the DaemonSet" : "";
  }
  const isOverdue = Date.parse(textIn(pod["metadata"], "deletionTimestamp") ?? "") < now.getTime();
  if (isOverdue) return `pod ${nameOf(pod)} does not end`;
  const unscheduled = schedulingProblem(pod);
  return unscheduled === "" ? "" : `pod ${nameOf(pod)}: ${unscheduled}`;
}

export function rolloutNotes({ daemonSet }: RolloutView): readonly string[] {
  if (fieldsIn(daemonSet, "spec", "updateStrategy")["type"] !== "OnDelete") return [];
  return [
    `The update strategy of DaemonSet ${nameOf(daemonSet)} is OnDelete: while this step waits, delete its pods one node after another, or change the strategy to RollingUpdate before`,
  ];
}
