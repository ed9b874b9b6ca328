/**
 * Which changed elements of existing sets are sent in the second batch of a change, and which removals wait for the third
 * (see table-changes.ts). Pure.
 *
 * What waits decides nothing any more: a single address is part of a network that is looked up too, and an interface in a
 * verdict map has the verdict that the new rules give it without the element. Only packets that still follow the former
 * rules need it.
 */
import { containsKey } from "../../linux/nftables/intervals.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import type { DesiredTable, ElementChanges, TableDelta } from "./desired-table.ts";
import { prefixesTwin } from "./names.ts";
import { verdictWithoutElement } from "./verdict-without-element.ts";

export interface ElementSteps {
  readonly now: ReadonlyMap<string, ElementChanges>;
  /** With the data that they have since the second batch. */
  readonly removedLater: ReadonlyMap<string, readonly NftElement[]>;
}

export function elementSteps(table: DesiredTable, delta: TableDelta): ElementSteps {
  const now = new Map<string, ElementChanges>();
  const removedLater = new Map<string, readonly NftElement[]>();
  for (const [set, { removed, added }] of delta.elements) {
    const interimOf = interimElements(table, delta, set);
    const steps = removed.map((former) => ({ former, interim: interimOf(former) }));
    const changed = steps.filter(({ former, interim }) => interim !== former);
    now.set(set, {
      removed: changed.map(({ former }) => former),
      added: [...added, ...changed.flatMap(({ interim }) => interim ?? [])],
    });
    removedLater.set(
      set,
      steps.flatMap(({ interim }) => interim ?? []),
    );
  }
  return { now, removedLater };
}

/** What a removed element of the set is until the third batch: itself, one with another verdict, or nothing. */
type InterimOf = (removed: NftElement) => NftElement | undefined;

function interimElements(table: DesiredTable, delta: TableDelta, set: string): InterimOf {
  const twin = table.sets.get(prefixesTwin(set));
  if (twin !== undefined) {
    const isCovered = containsKey(twin.elements.values());
    return (removed) => (isCovered(removed.key) ? removed : undefined);
  }
  if (table.sets.get(set)?.set.data === "verdict") return interimVerdicts(table, delta, set);
  return () => undefined;
}

function interimVerdicts(table: DesiredTable, delta: TableDelta, map: string): InterimOf {
  const chain = Array.from(delta.chains)
    .flatMap(([name, kind]) => (kind === "changed" ? (table.chains.get(name) ?? []) : []))
    .find(({ rules }) =>
      rules.some(({ expressions }) => expressions.some((each) => each.kind === "lookup" && each.set === map)),
    );
  if (chain === undefined) return () => undefined;
  // An element with another verdict is replaced at once.
  const replaced = new Set(delta.elements.get(map)?.added.map(({ key }) => key.toHex()));
  return (removed) => {
    const data = replaced.has(removed.key.toHex()) ? undefined : verdictWithoutElement(chain, map, removed.key);
    if (data === undefined) return undefined;
    return Bun.deepEquals(data, removed.data) ? removed : { ...removed, data };
  };
}
