/** Which of our node records refer to a node of the orchestrator: their names may differ. */
import { resourceKey } from "../model/keys.ts";
import { orchestratorReference } from "../model/node-reference.ts";
import type { FactsUpdate } from "./facts.ts";

export class NodeReferences {
  /** By the key of the orchestrator's node. */
  private readonly records = new Map<string, Set<string>>();
  /** By the key of our record: the key of the orchestrator's node. */
  private readonly referred = new Map<string, string>();

  /** How many of our records refer to a node of the orchestrator. */
  get size(): number {
    return this.referred.size;
  }

  /** The keys of our records that a change concerns. */
  recordsIn({ orchestrator, stored }: FactsUpdate): ReadonlySet<string> {
    const keys = new Set<string>();
    for (const change of stored.nodes ?? []) {
      keys.add(change.key);
      this.forget(change.key);
      const reference = change.kind === "put" ? orchestratorReference(change.value.spec) : undefined;
      if (reference !== undefined) this.refer(change.key, resourceKey("nodes", { name: reference }));
    }
    for (const { key } of orchestrator.nodes ?? []) {
      for (const record of this.records.get(key) ?? []) keys.add(record);
    }
    return keys;
  }

  private refer(record: string, node: string): void {
    this.referred.set(record, node);
    this.records.set(node, (this.records.get(node) ?? new Set()).add(record));
  }

  private forget(record: string): void {
    const node = this.referred.get(record) ?? "";
    const others = this.records.get(node);
    this.referred.delete(record);
    others?.delete(record);
    if (others?.size === 0) this.records.delete(node);
  }
}
