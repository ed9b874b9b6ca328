/** Which of our node records refer to a node of the orchestrator: their names may differ. */
import { resourceKey } from "../model/keys.ts";
import { orchestratorReference } from "../model/node-reference.ts";
import type { FactsUpdate } from "./facts.ts";

export class NodeReferences {
  /** By the key of the orchestrator's node. What was deleted or changed stays: a key too many is decided again, and no more. */
  private readonly records = new Map<string, Set<string>>();

  /** The keys of our records that a change concerns. */
  recordsIn({ orchestrator, stored }: FactsUpdate): ReadonlySet<string> {
    const keys = new Set<string>();
    for (const change of stored.nodes ?? []) {
      keys.add(change.key);
      const reference = change.kind === "put" ? orchestratorReference(change.value.spec) : undefined;
      if (reference === undefined) continue;
      const key = resourceKey("nodes", { name: reference });
      this.records.set(key, (this.records.get(key) ?? new Set()).add(change.key));
    }
    for (const { key } of orchestrator.nodes ?? []) {
      for (const record of this.records.get(key) ?? []) keys.add(record);
    }
    return keys;
  }
}
