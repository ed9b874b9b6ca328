/** Whether a node of the cluster works, as far as its pods are concerned. Pure. */
import { quoted } from "../quote.ts";
import { type LiveObject, listAt, textAt } from "../release/live-object.ts";
import { type FollowedSnapshot, objectNamed } from "./followed-objects.ts";

const NOT_READY_TAINT = "node.kubernetes.io/not-ready";

/** `undefined` if it is ready, or only waits for this network. */
export function nodeProblem(node: LiveObject): string | undefined {
  const ready = readyCondition(node);
  const [status, message] = [textAt(ready, "status"), textAt(ready, "message")];
  if (ready === undefined || status === "True" || waitsForNetwork(message)) return undefined;
  return `Node ${quoted(node.metadata.name)} is not ready${message === "" ? "" : `: ${message}`}`;
}

/** Nobody removes the pods of a node that is gone or does not respond. */
export function isUnreachable(snapshot: FollowedSnapshot, pod: LiveObject): boolean {
  const name = textAt(pod, "spec", "nodeName");
  const node = name === "" ? undefined : objectNamed(snapshot, "nodes", { name });
  return name !== "" && (node === undefined || nodeProblem(node) !== undefined);
}

/** Of a node or a pod. */
export function readyCondition(object: LiveObject): unknown {
  return listAt(object, "status", "conditions").find((each) => textAt(each, "type") === "Ready");
}

/** Whether pods that need a network can run on it only when this network is there; its taint stays a little longer. */
export function isBecomingReady(node: LiveObject): boolean {
  if (nodeProblem(node) !== undefined) return false;
  return listAt(node, "spec", "taints").some((taint) => textAt(taint, "key") === NOT_READY_TAINT);
}

/** What the kubelet says as long as there is no network config. */
function waitsForNetwork(message: string): boolean {
  return /network (plugin is )?not ready|cni plugin not initialized|cni config uninitialized/i.test(message);
}
