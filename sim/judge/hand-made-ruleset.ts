/** Sets in the tables of a kernel model, put there without the kernel: for tests of invariants. */
import { identity } from "../../src/identity.ts";
import { interfaceValue } from "../../src/linux/nftables/value.ts";
import { FROM_WORKLOADS, TO_WORKLOADS } from "../../src/policy/render/base-chains.ts";
import type { NetfilterState } from "../kernel/nftables/state.ts";

export function putInterfaces(state: NetfilterState, names: readonly string[]): void {
  const keys = names.map((name) => interfaceValue(name));
  for (const map of [FROM_WORKLOADS, TO_WORKLOADS]) putElements(state, identity.policyTable, map, keys);
}

export function putElements(state: NetfilterState, table: string, set: string, keys: readonly Uint8Array[]): void {
  const sets = state.tables.get(`inet ${table}`)?.sets ?? new Map();
  sets.set(set, { elements: new Map(keys.map((key) => [key.toHex(), { key }])) });
  state.tables.set(`inet ${table}`, { family: "inet", name: table, sets } as never);
}
