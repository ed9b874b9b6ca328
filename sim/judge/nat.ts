/**
 * Outgoing NAT has one writer while an agent runs, and is for the pools that there are.
 *
 * An ADD has read pools some time before it prepares its host, and the agent may have written the table for later ones
 * meanwhile. So the server of calls leaves the table to the agent while that follows the pools, and says so by a lock. An ADD
 * in a process of its own, which the agent does not serve, writes it: the agent corrects it.
 */
import { NAT_TABLE } from "../../src/firewall/nat-table.ts";
import { addressFromBytes, formatAddress } from "../../src/ip/address.ts";
import { formatPrefix } from "../../src/ip/prefix.ts";
import { rangeOfPrefix } from "../../src/ip/range.ts";
import { type IPPool, poolPrefix } from "../../src/model/ip-pool.ts";
import { POOL } from "../../src/model/kinds.ts";
import type { NetworkNamespace } from "../kernel/model.ts";
import { type ModelSet, type ModelTable, tableKey } from "../kernel/nftables/state.ts";
import { type Invariant, SERVER_OF_CALLS } from "./invariant.ts";

/** Of another table another handle, even if its content is the same. */
type SeenTable = Pick<ModelTable, "handle"> | undefined;

export function servedCallsLeaveNat(): Invariant {
  /** By the namespace of the host: each start of a machine is another one. */
  const seen = new WeakMap<NetworkNamespace, { readonly changes: number; readonly table: SeenTable }>();
  return {
    name: "served calls leave NAT to the agent",
    when: "after each step",
    check({ nodes }) {
      return Array.from(nodes.values()).flatMap(({ name, host }) => {
        if (host === undefined) return [];
        const { changes, changedBy = "" } = host.root.nftables;
        const before = seen.get(host.root);
        if (before?.changes === changes) return [];
        const table = natTableOf(host.root);
        seen.set(host.root, { changes, table });
        if (before?.table?.handle === table?.handle || host.isNatFollowed !== true) return [];
        if (!changedBy.startsWith(`${SERVER_OF_CALLS} `)) return [];
        return [`${name}: "${changedBy}" has written the table, of which the agent is the writer`];
      });
    },
  };
}

export function natFollowsPools(): Invariant {
  return {
    name: "outgoing NAT follows the pools",
    when: "at rest",
    check({ nodes, records }) {
      const pools = records.under(POOL.prefix()).map(({ key, value }) => POOL.codec.read(value, key));
      return Array.from(nodes.values()).flatMap(({ name, host, isRegistered }) =>
        host === undefined || !isRegistered
          ? []
          : problemsOf(natTableOf(host.root), pools).map((what) => `${name}: ${what}`),
      );
    },
  };
}

function natTableOf({ nftables }: NetworkNamespace): ModelTable | undefined {
  return nftables.tables.get(tableKey(NAT_TABLE.family, NAT_TABLE.name));
}

/** Pools do not overlap: a range that is too much shows as the beginning or the end of none. */
function problemsOf(table: ModelTable | undefined, pools: readonly IPPool[]): readonly string[] {
  const masqueraded = pools.filter(({ spec }) => spec.natOutgoing);
  if (masqueraded.length === 0) return table === undefined ? [] : ["there is a table, and no pool has natOutgoing"];
  if (table === undefined) return [`there is no table, and ${titleOf(masqueraded)} has natOutgoing`];
  return [...differences("masquerade", table, masqueraded), ...differences("pools", table, pools)];
}

function differences(purpose: string, { sets }: ModelTable, pools: readonly IPPool[]): readonly string[] {
  const present = [sets.get(`${purpose}4`), sets.get(`${purpose}6`)].flatMap(edgesIn);
  const wanted = pools.map(poolPrefix).flatMap((prefix) => {
    const { first, last } = rangeOfPrefix(prefix);
    return [formatAddress(first), formatAddress({ ...last, value: last.value + 1n })];
  });
  const odd = new Set(present).symmetricDifference(new Set(wanted));
  // Where one pool begins and another ends there is no edge.
  const edges = [...odd].filter((edge) => wanted.filter((each) => each === edge).length < 2);
  return edges.length === 0 ? [] : [`"${purpose}" is not ${titleOf(pools)}: it differs at ${edges.sort().join(", ")}`];
}

function edgesIn(set: ModelSet | undefined): readonly string[] {
  return Array.from(set?.elements.values() ?? []).flatMap(({ key }) => {
    const address = addressFromBytes(key);
    return address === undefined ? [] : [formatAddress(address)];
  });
}

function titleOf(pools: readonly IPPool[]): string {
  return pools.map((pool) => formatPrefix(poolPrefix(pool))).join(", ");
}
