/**
 * What changed of the table -> at most three batches, each of which the kernel applies as a whole:
 *
 *   1. new chains -> new sets with their elements -> the rules of the new chains
 *   2. new base chains -> the rules of changed chains -> elements of other sets -> old sets -> old chains
 *   3. removal of single addresses that are part of a network in the twin of their set, and of interfaces from a
 *      verdict map whose chain has changed, with all old sets and chains
 *
 * No packet reaches what the first batch creates. Only the second makes rules and verdict maps refer to it: while a batch
 * takes effect, a packet can be in a new chain whose rules are not there yet, or look up ranges that are not there yet.
 * Until the third, packets that still follow the former rules find what these look up.
 * Why: docs/decisions/policy-batches.md.
 */
import { containsKey } from "../../linux/nftables/intervals.ts";
import type { NftChange, TableReference } from "../../linux/nftables/ruleset.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { DesiredTable, TableDelta } from "./desired-table.ts";
import { prefixesTwin } from "./names.ts";

export type Batch = readonly NftChange[];

/** To be sent one after another, each after the former was acknowledged. None is empty. */
export function tableBatches(reference: TableReference, table: DesiredTable, delta: TableDelta): readonly Batch[] {
  const { now, later } = splitRemovals(table, delta);
  const old = removeOld(reference, delta);
  // The elements of verdict maps refer to old chains.
  const areOldKept = [...later.keys()].some((name) => isVerdictMap(table, name));
  const batches = [
    additions(reference, table, delta),
    [...otherChanges(reference, table, delta, now), ...(areOldKept ? [] : old)],
    [...removeElements(reference, later), ...(areOldKept ? old : [])],
  ];
  return batches.filter(({ length }) => length > 0);
}

type ElementsOfSets = ReadonlyMap<string, readonly NftElement[]>;

interface Removals {
  readonly now: ElementsOfSets;
  readonly later: ElementsOfSets;
}

function splitRemovals(table: DesiredTable, delta: TableDelta): Removals {
  const now = new Map<string, readonly NftElement[]>();
  const later = new Map<string, readonly NftElement[]>();
  const isLater = laterRemovals(table, delta);
  for (const [set, { removed }] of delta.elements) {
    const parts = Object.groupBy(removed, (element) => (isLater(set, element) ? "later" : "now"));
    if (parts.now !== undefined) now.set(set, parts.now);
    if (parts.later !== undefined) later.set(set, parts.later);
  }
  return { now, later };
}

function laterRemovals(table: DesiredTable, delta: TableDelta): (set: string, element: NftElement) => boolean {
  const covering = new Map(
    [...delta.elements.keys()].flatMap((name) => {
      const twin = table.sets.get(prefixesTwin(name));
      return twin === undefined ? [] : [[name, containsKey(twin.elements.values())] as const];
    }),
  );
  const changedMaps = new Map(
    namesOf(delta.chains, "changed")
      .flatMap((name) => verdictMapsIn(table, name))
      .map((set) => [set, new Set(delta.elements.get(set)?.added.map(({ key }) => key.toHex()))] as const),
  );
  // An element with another verdict is replaced at once.
  return (set, { key }) => covering.get(set)?.(key) === true || changedMaps.get(set)?.has(key.toHex()) === false;
}

/** Those that the rules of the chain look up. */
function verdictMapsIn(table: DesiredTable, chain: string): readonly string[] {
  const expressions = (table.chains.get(chain)?.rules ?? []).flatMap((rule) => rule.expressions);
  return expressions.flatMap((each) =>
    each.kind === "lookup" && typeof each.set === "string" && isVerdictMap(table, each.set) ? [each.set] : [],
  );
}

function isVerdictMap(table: DesiredTable, name: string): boolean {
  return table.sets.get(name)?.set.data === "verdict";
}

function additions(reference: TableReference, table: DesiredTable, delta: TableDelta): Batch {
  const chains = namesOf(delta.chains, "created").filter((name) => !isBaseChain(table, name));
  return [
    ...chains.flatMap((name) => addChain(reference, table, name)),
    ...namesOf(delta.sets, "created").flatMap((name) => addSet(reference, table, name)),
    ...chains.flatMap((name) => addRules(reference, table, name)),
  ];
}

function otherChanges(
  reference: TableReference,
  table: DesiredTable,
  delta: TableDelta,
  removals: ElementsOfSets,
): Batch {
  const created = namesOf(delta.chains, "created").filter((name) => isBaseChain(table, name));
  const changed = namesOf(delta.chains, "changed");
  return [
    ...created.flatMap((name) => addChain(reference, table, name)),
    ...changed.map((chain): NftChange => ({ kind: "flush-chain", table: reference, chain })),
    ...[...created, ...changed].flatMap((name) => addRules(reference, table, name)),
    ...removeElements(reference, removals),
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

function removeElements(reference: TableReference, sets: ElementsOfSets): Batch {
  return Array.from(sets).flatMap(([set, elements]) =>
    elements.length === 0 ? [] : [{ kind: "delete-elements", table: reference, set, elements }],
  );
}

function addElements(reference: TableReference, delta: TableDelta): Batch {
  return Array.from(delta.elements).flatMap(([set, { added }]) =>
    added.length === 0 ? [] : [{ kind: "add-elements", table: reference, set, elements: added }],
  );
}
