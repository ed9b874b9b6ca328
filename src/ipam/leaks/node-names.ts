/** Whether a node of ours exists, and its name in the orchestrator. Pure. */
import type { Node } from "../../model/node.ts";
import { orchestratorName } from "../../model/node-orchestrator-name.ts";

/** `undefined` if the node is gone: neither we nor the orchestrator have a record of it. */
export function nameInOrchestrator(
  node: string,
  record: Node | "unreadable" | undefined,
  isInOrchestrator: () => boolean,
): string | undefined {
  if (record === "unreadable") return node;
  if (record !== undefined) return orchestratorName(record);
  return isInOrchestrator() ? node : undefined;
}
