/**
 * What changed of the table -> at most three batches, each of which the kernel applies as a whole:
 *
 *   1. new chains -> new sets with their elements -> the rules of the new chains
 *   2. new base chains -> the rules of changed chains -> elements of other sets -> old sets -> old chains
 *   3. removal of single addresses that are part of a network in the twin of their set, and of interfaces from a
 *      verdict map whose chain has changed
 *
 * No packet reaches what the first batch creates. Only the second makes rules and verdict maps refer to it: while a batch
 * takes effect, a packet can be in a new chain whose rules are not there yet, or look up ranges that are not there yet.
 * After it every packet has its new verdict: what the third removes is needed only by packets that still follow the former
 * rules (see element-steps.ts).
 * Why: docs/decisions/policy-batches.md.
 */
import { type NftChange, type TableReference, tableRemoval } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { DesiredTable, TableDelta } from "./desired-table.ts";
import { elementSteps } from "./element-steps.ts";

export type Batch = readonly NftChange[];

/** To be sent one after another, each after the former was acknowledged. None is empty. */
export function tableBatches(reference: TableReference, table: DesiredTable, delta: TableDelta): readonly Batch[] {
  const { now, removedLater } = elementSteps(table, delta);
  const batches = [
    additions(reference, table, delta),
    [...otherChanges(reference, table, { ...delta, elements: now }), ...removeOld(reference, delta)],
    removeElements(reference, removedLater),
  ];
  return batches.filter(({ length }) => length > 0);
}

function additions(reference: TableReference, table: DesiredTable, delta: TableDelta): Batch {
  const chains = namesOf(delta.chains, "created").filter((name) => !isBaseChain(table, name));
  return [
    ...chains.flatMap((name) => addChain(reference, table, name)),
    ...namesOf(delta.sets, "created").flatMap((name) => addSet(reference, table, name)),
    ...chains.flatMap((name) => addRules(reference, table, name)),
  ];
}

function otherChanges(reference: TableReference, table: DesiredTable, delta: TableDelta): Batch {
  const created = namesOf(delta.chains, "created").filter((name) => isBaseChain(table, name));
  const changed = namesOf(delta.chains, "changed");
  return [
    ...created.flatMap((name) => addChain(reference, table, name)),
    ...changed.map((chain): NftChange => ({ kind: "flush-chain", table: reference, chain })),
    ...[...created, ...changed].flatMap((name) => addRules(reference, table, name)),
    ...removeElements(reference, new Map(Array.from(delta.elements, ([set, { removed }]) => [set, removed]))),
    ...addElements(reference, delta),
  ];
}

function removeOld(reference: TableReference, delta: TableDelta): Batch {
  const gone = namesOf(delta.chains, "deleted");
  return [
    // Old chains refer to each other.
    ...gone.map((chain): NftChange => ({ kind: "flush-chain", table: reference, chain })),
    // The elements of an old verdict map refer to old chains.
    ...namesOf(delta.sets, "deleted").map((set): NftChange => ({ kind: "delete-set", table: reference, set })),
    ...gone.map((chain): NftChange => ({ kind: "delete-chain", table: reference, chain })),
  ];
}

function namesOf<Kind>(changes: ReadonlyMap<string, Kind>, wanted: Kind): readonly string[] {
  return Array.from(changes).flatMap(([name, kind]) => (kind === wanted ? [name] : []));
}

/** Packets enter it as soon as it exists. */
function isBaseChain(table: DesiredTable, name: string): boolean {
  return table.chains.get(name)?.chain.base !== undefined;
}

/** Replaces the whole table: until the batch takes effect the former one does. */
export function wholeTable(reference: TableReference, table: DesiredTable, comment: string): NftChange[] {
  const chains = [...table.chains.keys()];
  return [
    ...tableRemoval(reference),
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

function removeElements(reference: TableReference, sets: ReadonlyMap<string, readonly NftElement[]>): Batch {
  return Array.from(sets).flatMap(([set, elements]) =>
    elements.length === 0 ? [] : [{ kind: "delete-elements", table: reference, set, elements }],
  );
}

function addElements(reference: TableReference, delta: TableDelta): Batch {
  return Array.from(delta.elements).flatMap(([set, { added }]) =>
    added.length === 0 ? [] : [{ kind: "add-elements", table: reference, set, elements: added }],
  );
}
