/** The names of our nodes in the orchestrator. Pure. */
import { resourceKey } from "../model/keys.ts";
import type { Node } from "../model/node.ts";
import type { Facts } from "./facts.ts";

/** `undefined` if the node is gone: neither we nor the orchestrator have a record of it. */
export function nodeNamed({ orchestrator, stored }: Facts, node: string): string | undefined {
  const key = resourceKey("nodes", { name: node });
  const held = stored.nodes.held(key);
  if (held?.kind === "readable") return orchestratorName(held.value);
  return held !== undefined || orchestrator.nodes.held(key) !== undefined ? node : undefined;
}

/** Of a node on etcd, whose name may be another one there; its own name if nothing else is recorded. */
export function orchestratorName({ metadata, spec }: Node): string {
  return orchestratorReference(spec) ?? metadata.name;
}

/** `undefined` if the node is not known to be one of the orchestrator. */
export function orchestratorReference({ orchRefs = [] }: Node["spec"]): string | undefined {
  return orchRefs.find(({ orchestrator }) => orchestrator === "k8s")?.nodeName;
}
