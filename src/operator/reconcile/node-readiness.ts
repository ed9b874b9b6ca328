/** Whether a node of the cluster works, as far as its pods are concerned. Pure. */
import { quoted } from "../../quote.ts";
import { type LiveObject, listAt, textAt } from "./live-object.ts";

/** `undefined` if it is ready, or only waits for this network. */
export function nodeProblem(node: LiveObject): string | undefined {
  const ready = readyCondition(node);
  const [status, message] = [textAt(ready, "status"), textAt(ready, "message")];
  if (ready === undefined || status === "True" || waitsForNetwork(message)) return undefined;
  return `Node ${quoted(node.metadata.name)} is not ready${message === "" ? "" : `: ${message}`}`;
}

/** Of a node or a pod. */
export function readyCondition(object: LiveObject): unknown {
  return listAt(object, "status", "conditions").find((each) => textAt(each, "type") === "Ready");
}

/** What the kubelet says as long as there is no network config. */
function waitsForNetwork(message: string): boolean {
  return /network (plugin is )?not ready|cni plugin not initialized|cni config uninitialized/i.test(message);
}
