/** The orchestrator's name of a node, as our Node records it on etcd: it may be another one than ours. Pure. */
import type { Node } from "./node.ts";

const KUBERNETES = "k8s";

/** `undefined` if the node is not known to be one of the orchestrator. */
export function orchestratorReference({ orchRefs = [] }: Node["spec"]): string | undefined {
  return orchRefs.find(({ orchestrator }) => orchestrator === KUBERNETES)?.nodeName || undefined;
}

/** A node is only one node of the orchestrator: another reference is replaced. Those of other orchestrators stay. */
export function withOrchestratorReference(spec: Node["spec"], nodeName: string): Node["spec"] {
  if (orchestratorReference(spec) === nodeName) return spec;
  const others = (spec.orchRefs ?? []).filter(({ orchestrator }) => orchestrator !== KUBERNETES);
  return { ...spec, orchRefs: [...others, { nodeName, orchestrator: KUBERNETES }] };
}
