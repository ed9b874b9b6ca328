/** The names of our nodes in the orchestrator. Pure. */
import { nameInOrchestrator } from "../ipam/leaks/node-names.ts";
import { resourceKey } from "../model/keys.ts";
import type { Facts } from "./facts.ts";

/** `undefined` if the node is gone. */
export function nodeNamed({ orchestrator, stored }: Facts, node: string): string | undefined {
  const key = resourceKey("nodes", { name: node });
  const held = stored.nodes.held(key);
  const record = held?.kind === "readable" ? held.value : held && "unreadable";
  return nameInOrchestrator(node, record, () => orchestrator.nodes.held(key) !== undefined);
}
