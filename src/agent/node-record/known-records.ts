/**
 * The records that the one of this node is computed from, as they were when they could be read last: a setting or a pool
 * that somebody damages changes no address.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import { NODE } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import type { NodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import type { RecordFacts } from "./node-record-keeper.ts";

export interface RecordChanges {
  readonly nodes: readonly RecordChange<Node>[];
  readonly pools: readonly RecordChange<IPPool>[];
  readonly configurations: readonly RecordChange<NodeAgentConfiguration>[];
}

export class KnownRecords {
  private readonly nodeKey: string;
  private node: Node | undefined;
  private readonly pools = new Map<string, IPPool>();
  private readonly unreadPools = new Set<string>();
  private readonly configurations = new Map<string, NodeAgentConfiguration>();
  private isComplete = false;

  constructor(node: string) {
    this.nodeKey = NODE.key({ name: node });
  }

  /** `undefined` until the first update. */
  get facts(): RecordFacts | undefined {
    if (!this.isComplete) return undefined;
    return {
      node: this.node,
      pools: [...this.pools.values()],
      hasUnknownPool: [...this.unreadPools].some((key) => !this.pools.has(key)),
      configurations: [...this.configurations.values()],
    };
  }

  /** Returns whether anything may follow from the changes. */
  update({ nodes, pools, configurations }: RecordChanges): boolean {
    const own = nodes.find(({ key }) => key === this.nodeKey);
    const isRelevant = !this.isComplete || own !== undefined || pools.length + configurations.length > 0;
    this.isComplete = true;
    if (own?.kind === "put") this.node = own.value;
    else if (own?.kind === "delete") this.node = undefined;
    for (const change of pools) {
      if (change.kind === "unreadable") this.unreadPools.add(change.key);
      else this.unreadPools.delete(change.key);
      apply(change, this.pools);
    }
    for (const change of configurations) apply(change, this.configurations);
    return isRelevant;
  }
}

function apply<Value>(change: RecordChange<Value>, known: Map<string, Value>): void {
  if (change.kind === "put") known.set(change.key, change.value);
  else if (change.kind === "delete") known.delete(change.key);
}
