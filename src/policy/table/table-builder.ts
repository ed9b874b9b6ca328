/** A desired table under construction, which remembers what changed since the last delta. */
import type { Expression } from "../../linux/nftables/expression.ts";
import type { NftElement, NftSet } from "../../linux/nftables/set.ts";
import { type FlowMarks, type LabelledComments, labelledComments, withFlowMarks } from "../render/flow-marks.ts";
import { type DenyAction, withRejections } from "../render/rejected.ts";
import type { DesiredChain, DesiredRule, DesiredTable, ElementChanges, TableDelta } from "./desired-table.ts";
import { INVALID_STATE } from "./rule-comment.ts";

interface BuiltSet {
  readonly set: NftSet;
  readonly elements: Map<string, NftElement>;
}

/** What the kernel can do with rules that log. */
export interface KernelLogging {
  /** The log group that every rule that drops packets reports them to first; absent if the kernel cannot. */
  readonly dropGroup?: number | undefined;
  /** Otherwise the limits of rules with the action Log are left out. */
  readonly hasLimit: boolean;
}

export class TableBuilder implements DesiredTable {
  /** Adapted to what the kernel can do, to whether flows are observed, and to what happens to denied packets. */
  readonly chains = new Map<string, DesiredChain>();
  readonly sets = new Map<string, BuiltSet>();
  private readonly given = new Map<string, DesiredChain>();
  private flowMarks: FlowMarks | undefined;
  private denyAction: DenyAction = "Drop";
  /** Until a chain changes. */
  private known: LabelledComments | undefined;
  /** What was there at the last delta, of everything touched since. */
  private readonly chainsBefore = new Map<string, DesiredChain | undefined>();
  private readonly setsBefore = new Map<string, BuiltSet | undefined>();
  private readonly elementsBefore = new Map<BuiltSet, Map<string, NftElement | undefined>>();

  constructor(private readonly logging: KernelLogging = { hasLimit: true }) {}

  putChain(chain: DesiredChain): void {
    const { name } = chain.chain;
    remember(this.chainsBefore, name, this.chains.get(name));
    this.known = undefined;
    this.given.set(name, chain);
    this.chains.set(name, this.adapted(chain));
  }

  deleteChain(name: string): void {
    remember(this.chainsBefore, name, this.chains.get(name));
    this.known = undefined;
    this.given.delete(name);
    this.chains.delete(name);
  }

  get hasFlows(): boolean {
    return this.flowMarks !== undefined;
  }

  /** The comments of the rules that write labels. */
  get labelled(): LabelledComments {
    this.known ??= labelledComments(this.chains.values());
    return this.known;
  }

  /** What rules tell about connections; `undefined`: nothing. Changes all chains with rules that decide. */
  setFlowMarks(marks: FlowMarks | undefined): void {
    this.flowMarks = marks;
    for (const chain of this.given.values()) if (chain.point !== undefined) this.putChain(chain);
  }

  /** Changes all chains with rules that deny; the chain that they go to is the caller's. */
  setDenyAction(action: DenyAction): void {
    if (action === this.denyAction) return;
    this.denyAction = action;
    for (const chain of this.given.values()) if (chain.rules.some(({ isDenial }) => isDenial)) this.putChain(chain);
  }

  /** What rules tell may be something else now. */
  renewFlowMarks(): void {
    this.setFlowMarks(this.flowMarks);
  }

  /** Empty at first. */
  createSet(set: NftSet): void {
    remember(this.setsBefore, set.name, this.sets.get(set.name));
    this.sets.set(set.name, { set, elements: new Map() });
  }

  deleteSet(name: string): void {
    remember(this.setsBefore, name, this.sets.get(name));
    this.sets.delete(name);
  }

  hasElement(set: string, identity: string): boolean {
    return this.sets.get(set)?.elements.has(identity) ?? false;
  }

  putElement(set: string, identity: string, element: NftElement): void {
    this.touch(set, identity)?.elements.set(identity, element);
  }

  deleteElement(set: string, identity: string): void {
    this.touch(set, identity)?.elements.delete(identity);
  }

  /** What `takeDelta()` would return. */
  get delta(): TableDelta {
    return { chains: this.chainChanges(), sets: this.setChanges(), elements: this.elementChanges() };
  }

  takeDelta(): TableDelta {
    const { delta } = this;
    this.chainsBefore.clear();
    this.setsBefore.clear();
    this.elementsBefore.clear();
    return delta;
  }

  private adapted(chain: DesiredChain): DesiredChain {
    const marked = this.flowMarks === undefined ? chain : withFlowMarks(chain, this.flowMarks);
    const { dropGroup, hasLimit } = this.logging;
    const fitting = hasLimit ? marked : withoutLimits(marked);
    const reporting = dropGroup === undefined ? fitting : withReports(fitting, dropGroup);
    return this.denyAction === "Drop" ? reporting : withRejections(reporting);
  }

  private touch(name: string, identity: string): BuiltSet | undefined {
    const set = this.sets.get(name);
    if (set === undefined) return undefined;
    // A new set is reported as a whole.
    if (this.setsBefore.has(name) && this.setsBefore.get(name) === undefined) return set;
    const before = this.elementsBefore.get(set) ?? new Map<string, NftElement | undefined>();
    this.elementsBefore.set(set, before);
    remember(before, identity, set.elements.get(identity));
    return set;
  }

  private chainChanges(): TableDelta["chains"] {
    const changes = new Map<string, "created" | "changed" | "deleted">();
    for (const [name, before] of this.chainsBefore) {
      const now = this.chains.get(name);
      if (before === undefined && now !== undefined) changes.set(name, "created");
      else if (before !== undefined && now === undefined) changes.set(name, "deleted");
      else if (!Bun.deepEquals(before, now)) changes.set(name, "changed");
    }
    return changes;
  }

  private setChanges(): TableDelta["sets"] {
    const changes = new Map<string, "created" | "deleted">();
    for (const [name, before] of this.setsBefore) {
      const now = this.sets.get(name);
      if (before === undefined && now !== undefined) changes.set(name, "created");
      if (before !== undefined && now === undefined) changes.set(name, "deleted");
    }
    return changes;
  }

  private elementChanges(): TableDelta["elements"] {
    const changes = new Map<string, ElementChanges>();
    // A set that was deleted and created again between two deltas is another object.
    for (const [name, before] of this.setsBefore) {
      const now = this.sets.get(name);
      if (before === undefined || now === undefined || before === now) continue;
      const contentBefore = this.contentBefore(before);
      const keys = new Set([...contentBefore.keys(), ...now.elements.keys()]);
      this.elementsBefore.set(now, new Map(Array.from(keys, (key) => [key, contentBefore.get(key)])));
    }
    for (const [set, touched] of this.elementsBefore) {
      const { name } = set.set;
      const wasThere = !this.setsBefore.has(name) || this.setsBefore.get(name) !== undefined;
      if (this.sets.get(name) !== set || !wasThere) continue;
      const change = compare(set, touched);
      if (change !== undefined) changes.set(name, change);
    }
    return changes;
  }

  /** The elements that the set had at the last delta. */
  private contentBefore(set: BuiltSet): ReadonlyMap<string, NftElement> {
    const content = new Map(set.elements);
    for (const [identity, element] of this.elementsBefore.get(set) ?? []) {
      if (element === undefined) content.delete(identity);
      else content.set(identity, element);
    }
    return content;
  }
}

function compare(set: BuiltSet, touched: ReadonlyMap<string, NftElement | undefined>): ElementChanges | undefined {
  const removed: NftElement[] = [];
  const added: NftElement[] = [];
  for (const [identity, before] of touched) {
    const now = set.elements.get(identity);
    if (before === now || Bun.deepEquals(before, now)) continue;
    if (before !== undefined) removed.push(before);
    if (now !== undefined) added.push(now);
  }
  return removed.length + added.length === 0 ? undefined : { removed, added };
}

function remember<Key, Value>(before: Map<Key, Value>, key: Key, value: Value): void {
  if (!before.has(key)) before.set(key, value);
}

function withoutLimits(chain: DesiredChain): DesiredChain {
  const rules = chain.rules.map((rule): DesiredRule => {
    const expressions = rule.expressions.filter(({ kind }) => kind !== "limit");
    return expressions.length === rule.expressions.length ? rule : { ...rule, expressions };
  });
  return { ...chain, rules };
}

/** The report of a dropped packet has the comment of the rule. Only one kind of rule drops without a comment. */
function withReports(chain: DesiredChain, group: number): DesiredChain {
  const rules = chain.rules.map((rule): DesiredRule => {
    const last = rule.expressions.at(-1);
    if (last?.kind !== "verdict" || last.verdict.kind !== "drop") return rule;
    const report: Expression = { kind: "log", prefix: rule.comment ?? INVALID_STATE, group };
    return { ...rule, expressions: [...rule.expressions.slice(0, -1), report, last] };
  });
  return { ...chain, rules };
}
