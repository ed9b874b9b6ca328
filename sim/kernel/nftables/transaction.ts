/**
 * The changes of one batch: they take effect one by one, so that each message sees those before it, and can be taken back as
 * a whole. Keeps count of what refers to what.
 */
import type { NftElement } from "../../../src/linux/nftables/set.ts";
import type { Verdict } from "../../../src/linux/nftables/verdict.ts";
import type { NamedBeginnings } from "./intervals.ts";
import { placeOf } from "./ordered-keys.ts";
import {
  elementKey,
  hasOrderedKeys,
  type ModelChain,
  type ModelRule,
  type ModelSet,
  type ModelTable,
  type NetfilterState,
  tableKey,
} from "./state.ts";

/** What listeners are told when the batch takes effect. */
export type ChangeEvent = { readonly table: ModelTable; readonly sequence: number; readonly isNew: boolean } & (
  | { readonly kind: "table" }
  | { readonly kind: "chain"; readonly chain: ModelChain }
  | { readonly kind: "rule"; readonly chain: ModelChain; readonly rule: ModelRule }
  | { readonly kind: "set"; readonly set: ModelSet }
  | { readonly kind: "elements"; readonly set: ModelSet; readonly elements: readonly NftElement[] }
);

type Told = ChangeEvent extends infer Event ? (Event extends ChangeEvent ? Omit<Event, "sequence"> : never) : never;

export class Transaction {
  readonly events: ChangeEvent[] = [];
  /** The sets that were created by number in this batch. */
  readonly setsByNumber = new Map<number, { readonly table: ModelTable; readonly set: ModelSet }>();
  readonly namedBeginnings: NamedBeginnings = new Map();
  /** Of the message that is being applied. */
  sequence = 0;
  readonly #undo: (() => void)[] = [];
  readonly #unordered = new Set<Map<string, { readonly handle: bigint }>>();

  constructor(readonly state: NetfilterState) {}

  takeBack(): void {
    for (const undo of this.#undo.toReversed()) undo();
    for (const map of this.#unordered) restoreOrder(map);
  }

  tell(event: Told): void {
    this.events.push({ ...event, sequence: this.sequence });
  }

  addTable(table: ModelTable): void {
    this.#insert(this.state.tables, tableKey(table.family, table.name), table);
    this.tell({ kind: "table", table, isNew: true });
  }

  removeTable(table: ModelTable): void {
    for (const chain of table.chains.values()) this.removeRules(table, chain);
    for (const set of table.sets.values()) this.removeSet(table, set);
    for (const chain of table.chains.values()) this.removeChain(table, chain);
    this.#remove(this.state.tables, tableKey(table.family, table.name), table);
    this.tell({ kind: "table", table, isNew: false });
  }

  addChain(table: ModelTable, chain: ModelChain): void {
    this.#insert(table.chains, chain.chain.name, chain);
    this.tell({ kind: "chain", table, chain, isNew: true });
  }

  /** An existing chain is added again. */
  updateChain(table: ModelTable, chain: ModelChain, policy: "accept" | "drop" | undefined): void {
    const before = chain.chain;
    if (before.base !== undefined && policy !== undefined) {
      chain.chain = { ...before, base: { ...before.base, policy } };
      this.#undo.push(() => {
        chain.chain = before;
      });
    }
    this.tell({ kind: "chain", table, chain, isNew: true });
  }

  removeChain(table: ModelTable, chain: ModelChain): void {
    this.#remove(table.chains, chain.chain.name, chain);
    this.tell({ kind: "chain", table, chain, isNew: false });
  }

  addRule(table: ModelTable, chain: ModelChain, rule: ModelRule): void {
    chain.rules.push(rule);
    this.#undo.push(() => chain.rules.pop());
    this.#refer(table, rule, 1);
    this.tell({ kind: "rule", table, chain, rule, isNew: true });
  }

  removeRule(table: ModelTable, chain: ModelChain, rule: ModelRule): void {
    const before = chain.rules;
    chain.rules = before.filter((each) => each !== rule);
    this.#undo.push(() => {
      chain.rules = before;
    });
    this.#leave(table, chain, rule);
  }

  /** All of the chain. */
  removeRules(table: ModelTable, chain: ModelChain): void {
    const before = chain.rules;
    if (before.length === 0) return;
    chain.rules = [];
    this.#undo.push(() => {
      chain.rules = before;
    });
    for (const rule of before) this.#leave(table, chain, rule);
  }

  addSet(table: ModelTable, set: ModelSet, number: number | undefined): void {
    this.#insert(table.sets, set.set.name, set);
    if (number !== undefined) this.setsByNumber.set(number, { table, set });
    this.tell({ kind: "set", table, set, isNew: true });
  }

  removeSet(table: ModelTable, set: ModelSet): void {
    for (const { data } of set.elements.values()) this.#jumpTo(table, data, -1);
    this.#remove(table.sets, set.set.name, set);
    this.tell({ kind: "set", table, set, isNew: false });
  }

  addElement(table: ModelTable, set: ModelSet, element: NftElement): void {
    this.#putElement(set, element);
    this.#undo.push(() => this.#dropElement(set, element));
    this.#jumpTo(table, element.data, 1);
  }

  removeElement(table: ModelTable, set: ModelSet, element: NftElement): void {
    this.#dropElement(set, element);
    this.#undo.push(() => this.#putElement(set, element));
    this.#jumpTo(table, element.data, -1);
  }

  #leave(table: ModelTable, chain: ModelChain, rule: ModelRule): void {
    this.tell({ kind: "rule", table, chain, rule, isNew: false });
    this.#refer(table, rule, -1);
  }

  #refer(table: ModelTable, { expressions }: ModelRule, by: 1 | -1): void {
    for (const expression of expressions) {
      if (expression.kind === "verdict") this.#jumpTo(table, expression.verdict, by);
      if (expression.kind !== "lookup" || typeof expression.set !== "string") continue;
      const set = table.sets.get(expression.set);
      if (set === undefined) continue;
      set.lookups += by;
      this.#undo.push(() => {
        set.lookups -= by;
      });
      if (set.isAnonymous && by === -1) this.removeSet(table, set);
    }
  }

  #jumpTo(table: ModelTable, data: NftElement["data"] | Verdict, by: 1 | -1): void {
    if (data === undefined || data instanceof Uint8Array || !("chain" in data)) return;
    const chain = table.chains.get(data.chain);
    if (chain === undefined) return;
    chain.jumps += by;
    this.#undo.push(() => {
      chain.jumps -= by;
    });
  }

  #putElement(set: ModelSet, element: NftElement): void {
    set.elements.set(elementKey(element), element);
    if (hasOrderedKeys(set)) set.ordered.splice(placeOf(set.ordered, element), 0, element);
  }

  #dropElement(set: ModelSet, element: NftElement): void {
    set.elements.delete(elementKey(element));
    if (hasOrderedKeys(set)) set.ordered.splice(placeOf(set.ordered, element), 1);
  }

  #insert<Value>(map: Map<string, Value>, key: string, value: Value): void {
    map.set(key, value);
    this.#undo.push(() => map.delete(key));
  }

  #remove<Value extends { readonly handle: bigint }>(map: Map<string, Value>, key: string, value: Value): void {
    map.delete(key);
    this.#undo.push(() => {
      map.set(key, value);
      this.#unordered.add(map);
    });
  }
}

/** The kernel lists its objects in the order in which they were created. */
function restoreOrder(map: Map<string, { readonly handle: bigint }>): void {
  const sorted = [...map].toSorted(([, left], [, right]) => Number(left.handle - right.handle));
  map.clear();
  for (const [key, value] of sorted) map.set(key, value);
}
