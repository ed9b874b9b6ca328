/**
 * The guard table as data: one rule for all pods and both families. Pure.
 *
 *   prerouting (raw):  from an interface of a pod, and the route back to the source is another interface?  ──▶ drop
 *
 * The route to each pod's address leads to its interface, so a pod changes nothing
 * here. Link-local addresses and `::` (neighbour discovery) have a route back.
 */
import { identity } from "../identity.ts";
import { matchInterfacePrefix, verdict } from "../linux/nftables/match.ts";
import { changesOf, type NftChange, type Ruleset } from "../linux/nftables/ruleset.ts";
import { hostNumber } from "../linux/nftables/value.ts";
import { GUARD_COMMENT, GUARD_TABLE } from "./guard-table.ts";

const RAW = -300;
const CHAIN = "sources";
const NO_ROUTE = 0;

/** Replaces the table, whatever it was, in one batch. */
export function guardChanges(): readonly NftChange[] {
  const table = GUARD_TABLE;
  return [{ kind: "add-table", table }, { kind: "delete-table", table }, ...changesOf(guardRuleset())];
}

export function guardRuleset(): Ruleset {
  return {
    table: GUARD_TABLE,
    sets: [],
    chains: [{ name: CHAIN, base: { type: "filter", hook: "prerouting", priority: RAW, policy: "accept" } }],
    rules: [
      {
        chain: CHAIN,
        expressions: [
          ...matchInterfacePrefix("iifname", identity.interfacePrefix),
          { kind: "fib", result: "oif", by: ["saddr", "iif"], to: 0 },
          { kind: "compare", operator: "equal", from: 0, value: hostNumber(NO_ROUTE) },
          verdict({ kind: "drop" }),
        ],
        comment: GUARD_COMMENT,
      },
    ],
    elements: [],
  };
}
