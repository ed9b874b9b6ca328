/**
 * What changed of the table -> the steps of one batch, each after what it refers to:
 *
 *   new chains, empty -> new sets with their elements -> rules -> elements of other sets -> old sets -> old chains
 */
import type { NftChange, TableReference } from "../../linux/nftables/ruleset.ts";
import type { DesiredTable, TableDelta } from "./desired-table.ts";

export function tableChanges(reference: TableReference, table: DesiredTable, delta: TableDelta): NftChange[] {
  const chainsThat = (...kinds: readonly string[]) =>
    Array.from(delta.chains).flatMap(([name, kind]) => (kinds.includes(kind) ? [name] : []));
  const setsThat = (wanted: string) =>
    Array.from(delta.sets).flatMap(([name, kind]) => (kind === wanted ? [name] : []));
  const gone = chainsThat("deleted");
  return [
    ...chainsThat("created").flatMap((name) => addChain(reference, table, name)),
    ...setsThat("created").flatMap((name) => addSet(reference, table, name)),
    ...chainsThat("changed").map((chain): NftChange => ({ kind: "flush-chain", table: reference, chain })),
    ...chainsThat("created", "changed").flatMap((name) => addRules(reference, table, name)),
    ...elementChanges(reference, delta),
    // Old chains refer to each other.
    ...gone.map((chain): NftChange => ({ kind: "flush-chain", table: reference, chain })),
    // The elements of an old verdict map refer to old chains.
    ...setsThat("deleted").map((set): NftChange => ({ kind: "delete-set", table: reference, set })),
    ...gone.map((chain): NftChange => ({ kind: "delete-chain", table: reference, chain })),
  ];
}

/** Replaces the whole table: until the batch takes effect the former one does. */
export function wholeTable(reference: TableReference, table: DesiredTable, comment: string): NftChange[] {
  const chains = [...table.chains.keys()];
  return [
    { kind: "add-table", table: reference },
    { kind: "delete-table", table: reference },
    { kind: "add-table", table: reference, comment },
    ...chains.flatMap((name) => addChain(reference, table, name)),
    ...[...table.sets.keys()].flatMap((name) => addSet(reference, table, name)),
    ...chains.flatMap((name) => addRules(reference, table, name)),
  ];
}

function addChain(reference: TableReference, table: DesiredTable, name: string): NftChange[] {
  const desired = table.chains.get(name);
  return desired === undefined ? [] : [{ kind: "add-chain", table: reference, chain: desired.chain }];
}

function addRules(reference: TableReference, table: DesiredTable, name: string): NftChange[] {
  return (table.chains.get(name)?.rules ?? []).map((rule) => ({
    kind: "add-rule",
    table: reference,
    rule: { chain: name, ...rule },
  }));
}

function addSet(reference: TableReference, table: DesiredTable, name: string): NftChange[] {
  const desired = table.sets.get(name);
  if (desired === undefined) return [];
  const elements = [...desired.elements.values()];
  return [
    { kind: "add-set", table: reference, set: desired.set },
    ...(elements.length === 0 ? [] : [{ kind: "add-elements" as const, table: reference, set: name, elements }]),
  ];
}

function elementChanges(reference: TableReference, { elements }: TableDelta): NftChange[] {
  const list = (kind: "delete-elements" | "add-elements", field: "removed" | "added"): NftChange[] =>
    Array.from(elements).flatMap(([set, changes]) =>
      changes[field].length === 0 ? [] : [{ kind, table: reference, set, elements: changes[field] }],
    );
  return [...list("delete-elements", "removed"), ...list("add-elements", "added")];
}
