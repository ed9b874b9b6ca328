/**
 * Keeps the table of outgoing NAT equal to the pools: a change of `natOutgoing` takes effect at once, not with the next ADD.
 *
 * While routing is disabled there is no such table. If there is no pool at all and containers run, the datastore has rather
 * lost its records: the table stays as it is, for the containers, until there is a pool again.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { NatPool } from "../../firewall/nat-table.ts";
import { type IPPool, poolPrefix } from "../../model/ip-pool.ts";
import { RoutingSetting, type SettingChanges } from "../routing-setting.ts";

interface PoolUpdate {
  readonly changes: SettingChanges & { readonly pools: readonly RecordChange<IPPool>[] };
}

interface FollowMeans {
  readonly node: string;
  /** Masquerades for exactly these pools; returns whether anything had to be changed. */
  readonly write: (pools: readonly NatPool[]) => Promise<boolean>;
  /** Whether this host has containers of the network. */
  readonly hasContainers: () => boolean;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** Until the updates end. */
export async function followNat(
  updates: AsyncIterable<PoolUpdate>,
  { node, write, hasContainers, log }: FollowMeans,
): Promise<void> {
  const pools = new Map<string, NatPool | "unreadable">();
  const routing = new RoutingSetting(node);
  let isFirst = true;
  for await (const { changes } of updates) {
    const isSwitched = routing.update(changes);
    const isPoolChanged = changes.pools.map((change) => note(pools, change)).some((changed) => changed);
    if (!isSwitched && !isFirst && !(isPoolChanged && routing.isEnabled)) continue;
    isFirst = false;
    const known = routing.isEnabled ? [...pools.values()].filter((pool) => pool !== "unreadable") : [];
    // The table must not forget a pool that may have natOutgoing.
    if (routing.isEnabled && known.length < pools.size) continue;
    try {
      if (routing.isEnabled && pools.size === 0 && hasContainers()) continue;
      if (await write(known)) log("Outgoing NAT follows the changed pools", "INFO");
    } catch (failure) {
      log(failure instanceof Error ? failure.message : String(failure), "WARNING");
    }
  }
}

/** Returns whether something changed that NAT depends on. */
function note(pools: Map<string, NatPool | "unreadable">, change: RecordChange<IPPool>): boolean {
  const { kind, key } = change;
  if (kind === "delete") return pools.delete(key);
  const before = pools.get(key);
  // Of an unreadable pool the former value counts.
  const now = kind === "put" ? natPool(change.value) : (before ?? "unreadable");
  pools.set(key, now);
  return !Bun.deepEquals(before, now);
}

function natPool(pool: IPPool): NatPool {
  return { cidr: poolPrefix(pool), natOutgoing: pool.spec.natOutgoing };
}
