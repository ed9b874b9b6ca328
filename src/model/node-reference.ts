/** The orchestrator's name of a node, as our Node records it on etcd: it may be another one than ours. Pure. */
import type { Node } from "./node.ts";

const KUBERNETES = "k8s";

/** `undefined` if the node is not known to be one of the orchestrator. */
export function orchestratorReference({ orchRefs = [] }: Node["spec"]): string | undefined {
  return orchRefs.find(({ orchestrator }) => orchestrator === KUBERNETES)?.nodeName;
}
