/** The names of our nodes in the orchestrator, and which of those the orchestrator does not have any more. Pure. */
import { nameInOrchestrator } from "../ipam/leaks/node-names.ts";
import { resourceKey } from "../model/keys.ts";
import { orchestratorReference } from "../model/node-reference.ts";
import type { Facts } from "./facts.ts";

/** `undefined` if the node is gone. */
export function nodeNamed({ orchestrator, stored }: Facts, node: string): string | undefined {
  const key = resourceKey("nodes", { name: node });
  const held = stored.nodes.held(key);
  const record = held?.kind === "readable" ? held.value : held && "unreadable";
  return nameInOrchestrator(node, record, () => orchestrator.nodes.held(key) !== undefined);
}

/** Keys of our Node records, by our name, whose node was deleted in the orchestrator: the records are deleted, too. */
export function recordsWithoutNode({ orchestrator, stored }: Facts): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [key, { metadata, spec }] of stored.nodes) {
    const reference = orchestratorReference(spec);
    const isGone =
      reference !== undefined && orchestrator.nodes.get(resourceKey("nodes", { name: reference })) === undefined;
    if (isGone) found.set(metadata.name, key);
  }
  return found;
}
