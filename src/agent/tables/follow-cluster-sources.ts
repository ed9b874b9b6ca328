/**
 * Keeps the addresses of pools and nodes in the guard table: pods with further sources (`allowedSourcePrefixes`) may not send
 * from them. A new pool or node counts at once.
 *
 * Runs only if the network config allows further sources. Until the table has the addresses, no such source is accepted.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { type ClusterSources, clusterSources } from "../../firewall/cluster-sources.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { type IPPool, poolPrefix } from "../../model/ip-pool.ts";
import type { Node } from "../../model/node.ts";

interface ClusterUpdate {
  readonly changes: {
    readonly pools: readonly RecordChange<IPPool>[];
    readonly nodes: readonly RecordChange<Node>[];
  };
}

interface FollowMeans {
  readonly permitted: readonly Prefix[];
  /** Returns whether anything had to be changed. */
  readonly write: (sources: ClusterSources) => Promise<boolean>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** Until the updates end. */
export async function followClusterSources(updates: AsyncIterable<ClusterUpdate>, means: FollowMeans): Promise<void> {
  const keeper = new ClusterSourcesKeeper(means);
  for await (const { changes } of updates) await keeper.update(changes);
}

class ClusterSourcesKeeper {
  private readonly pools = new Map<string, Prefix | "unreadable">();
  private readonly nodes = new Map<string, Node["spec"]>();
  private isKnown = false;
  private reported = "";

  constructor(private readonly means: FollowMeans) {}

  async update({ pools, nodes }: ClusterUpdate["changes"]): Promise<void> {
    const changed = [...pools.map((change) => this.notePool(change)), ...nodes.map((change) => this.noteNode(change))];
    const isFirst = !this.isKnown;
    this.isKnown = true;
    if (isFirst || changed.includes(true)) await this.write();
  }

  /** Of an unreadable pool the former value counts. */
  private notePool(change: RecordChange<IPPool>): boolean {
    const { kind, key } = change;
    if (kind === "delete") return this.pools.delete(key);
    const before = this.pools.get(key);
    const now = kind === "put" ? poolPrefix(change.value) : (before ?? "unreadable");
    this.pools.set(key, now);
    return !Bun.deepEquals(before, now);
  }

  private noteNode(change: RecordChange<Node>): boolean {
    const { kind, key } = change;
    if (kind === "delete") return this.nodes.delete(key);
    if (kind !== "put" || Bun.deepEquals(this.nodes.get(key), change.value.spec)) return false;
    this.nodes.set(key, change.value.spec);
    return true;
  }

  private async write(): Promise<void> {
    const pools = [...this.pools.values()].filter((pool) => pool !== "unreadable");
    // The table must not forget a pool: it keeps what it has.
    if (pools.length < this.pools.size) return;
    const sources = clusterSources({ pools, nodes: [...this.nodes.values()], permitted: this.means.permitted });
    let failed = "";
    try {
      if (await this.means.write(sources)) this.means.log("Sources of pods: excluded those of pools and nodes", "INFO");
    } catch (failure) {
      failed = `Cannot exclude the addresses of pools and nodes from further sources of pods: ${reasonOf(failure)}`;
    }
    if (failed !== "" && failed !== this.reported) this.means.log(failed, "WARNING");
    this.reported = failed;
  }
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
