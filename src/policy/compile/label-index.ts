/**
 * Which entities does each selector select? Kept up to date one change at a time: a change of an entity evaluates only
 * the selectors that can select it, a new selector only the entities that it can select.
 *
 * A selector that requires `label == value`, or one of several values, is filed under it; of several such requirements
 * under the one that the fewest entities meet. Only selectors without any are evaluated for every entity.
 *
 * An entity inherits the labels of its parents (the profiles of its namespace and service account); its own win. Labels that
 * are given to it by name (ContainerLabels) win over its own.
 */
import { type Labels, type Selector, selects } from "../../selector/selector.ts";
import { parsed, type SelectorText } from "../effective-selector.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";

export interface LabelledEntity {
  readonly labels: Labels;
  /** Names of profiles. */
  readonly parents: readonly string[];
  /** Who may give it labels that win over its own, the first over the others. Read only while somebody gives labels. */
  readonly givers?: readonly string[] | undefined;
  /** What it adds to the lists that select it. */
  readonly weight?: Weight;
}

export interface Weight {
  readonly addresses: number;
  /** Addresses with a port, for each port that has a name. */
  readonly ports: number;
  /** The same of each protocol and name: `namedPort()`. */
  readonly named: ReadonlyMap<string, number>;
}

export function namedPort(protocol: number, name: string): string {
  return `${protocol} ${name}`;
}

export interface WeighedLabels {
  /** Own and inherited. */
  readonly effective: Labels;
  readonly weight?: Weight;
}

export interface MatchListener {
  matched(selector: SelectorText, entity: string): void;
  unmatched(selector: SelectorText, entity: string): void;
  /** Labels or weight of an entity have changed; `undefined`: there was none, or there is none any more. */
  reweighed?(before: WeighedLabels | undefined, now: WeighedLabels | undefined): void;
}

interface Entity extends LabelledEntity {
  /** What was put: most entities have no `givers`, and what could give them labels takes memory. */
  readonly source: LabelledEntity;
  /** Own and inherited. */
  effective: Labels;
  /** The selectors that select it. Few as a rule: a set for each entity would take more memory than all else. */
  readonly matches: SelectorText[];
}

interface Registered {
  readonly selector: Selector;
  readonly members: Set<string>;
  /** Where it is filed; none: it is evaluated for every entity. */
  readonly filedUnder: readonly Requirement[];
}

export interface Requirement {
  readonly label: string;
  readonly value: string;
}

const NONE: ReadonlySet<string> = new Set();
const NOBODY: readonly string[] = [];

export class LabelIndex {
  private readonly entities = new Map<string, Entity>();
  /** Of the labels that a selector has required: names by value. */
  private readonly byLabel = new Map<string, Map<string, Set<string>>>();
  private readonly parents = new Map<string, Labels>();
  private readonly inherited = new InheritedLabels((parent) => this.parents.get(parent));
  private readonly children = new Map<string, Set<string>>();
  /** By who gives them, and who gets them. */
  private readonly given = new Map<string, Labels>();
  private readonly receivers = new Map<string, Set<string>>();
  private readonly selectors = new Map<SelectorText, Registered>();
  private readonly filed = new LabelTable();
  private readonly unfiled = new Set<SelectorText>();

  constructor(private readonly listener: MatchListener) {}

  /** The entities that a registered selector selects. */
  membersOf(selector: SelectorText): ReadonlySet<string> {
    return this.selectors.get(selector)?.members ?? NONE;
  }

  /** The registered selectors that select the entity. */
  matchesOf(entity: string): readonly SelectorText[] {
    return this.entities.get(entity)?.matches ?? [];
  }

  get all(): Iterable<WeighedLabels> {
    return this.entities.values();
  }

  register(text: SelectorText): void {
    if (this.selectors.has(text)) return;
    const selector = parsed(text);
    const filedUnder = this.bestRequirement(selector);
    const registered: Registered = { selector, members: new Set(), filedUnder };
    this.selectors.set(text, registered);
    if (filedUnder.length === 0) this.unfiled.add(text);
    for (const requirement of filedUnder) this.filed.add(requirement.label, requirement.value, text);
    for (const name of this.candidates(filedUnder)) {
      const entity = this.entities.get(name);
      if (entity !== undefined && selects(selector, entity.effective)) this.match(text, registered, name, entity);
    }
  }

  /** Its members are not reported as unmatched: nobody asks for them any more. */
  unregister(text: SelectorText): void {
    const registered = this.selectors.get(text);
    if (registered === undefined) return;
    this.selectors.delete(text);
    this.unfiled.delete(text);
    for (const requirement of registered.filedUnder) this.filed.remove(requirement.label, requirement.value, text);
    for (const name of registered.members) removeItem(this.entities.get(name)?.matches ?? [], text);
  }

  put(name: string, source: LabelledEntity): void {
    const { labels, parents, weight } = source;
    const before = this.entities.get(name);
    if (before !== undefined) this.unfile(name, before);
    const givers = this.given.size === 0 ? NOBODY : (source.givers ?? NOBODY).filter((giver) => this.given.has(giver));
    const given = givers.map((giver) => this.given.get(giver)).filter((each) => each !== undefined);
    const effective = this.inherited.effective(labels, parents, given);
    const entity: Entity = {
      ...{ source, labels, parents, effective, matches: before?.matches ?? [] },
      ...(givers.length > 0 && { givers }),
      ...(weight && { weight }),
    };
    this.listener.reweighed?.(before, entity);
    this.entities.set(name, entity);
    for (const parent of parents) addTo(this.children, parent, name);
    for (const giver of givers) addTo(this.receivers, giver, name);
    for (const label of Object.keys(effective)) {
      const names = this.byLabel.get(label);
      if (names !== undefined) addTo(names, effective[label] ?? "", name);
    }
    this.evaluate(name, entity);
  }

  delete(name: string): void {
    const entity = this.entities.get(name);
    if (entity === undefined) return;
    this.unfile(name, entity);
    this.listener.reweighed?.(entity, undefined);
    this.entities.delete(name);
    for (const text of [...entity.matches]) {
      const registered = this.selectors.get(text);
      if (registered !== undefined) this.unmatch(text, registered, name, entity);
    }
  }

  /** `undefined`: the parent is gone. */
  putParent(parent: string, labels: Labels | undefined): void {
    if (Bun.deepEquals(this.parents.get(parent), labels)) return;
    if (labels === undefined) this.parents.delete(parent);
    else this.parents.set(parent, labels);
    this.inherited.forget();
    for (const name of [...(this.children.get(parent) ?? NONE)]) {
      const entity = this.entities.get(name);
      if (entity !== undefined) this.put(name, entity.source);
    }
  }

  /** By who gives them; `undefined`: gives none any more. All at once: for those who did not give any, each entity is asked. */
  giveLabels(changes: ReadonlyMap<string, Labels | undefined>): void {
    const names = new Set<string>();
    const added = new Set<string>();
    for (const [giver, labels] of changes) {
      const before = this.given.get(giver);
      if (Bun.deepEquals(before, labels)) continue;
      if (before === undefined) added.add(giver);
      for (const name of this.receivers.get(giver) ?? NONE) names.add(name);
      if (labels === undefined) this.given.delete(giver);
      else this.given.set(giver, labels);
    }
    if (added.size > 0) {
      for (const [name, { source }] of this.entities) {
        if (source.givers?.some((giver) => added.has(giver))) names.add(name);
      }
    }
    for (const name of names) {
      const entity = this.entities.get(name);
      if (entity !== undefined) this.put(name, entity.source);
    }
  }

  private unfile(name: string, { parents, givers, effective }: Entity): void {
    for (const parent of parents) removeFrom(this.children, parent, name);
    for (const giver of givers ?? NOBODY) removeFrom(this.receivers, giver, name);
    for (const label of Object.keys(effective)) {
      const names = this.byLabel.get(label);
      if (names !== undefined) removeFrom(names, effective[label] ?? "", name);
    }
  }

  private evaluate(name: string, entity: Entity): void {
    const { effective } = entity;
    for (const text of [...entity.matches]) {
      const registered = this.selectors.get(text);
      if (registered === undefined || selects(registered.selector, effective)) continue;
      this.unmatch(text, registered, name, entity);
    }
    const tryMatch = (text: SelectorText) => {
      const registered = this.selectors.get(text);
      if (registered === undefined || registered.members.has(name) || !selects(registered.selector, effective)) return;
      this.match(text, registered, name, entity);
    };
    if (this.selectors.size === this.unfiled.size) this.unfiled.forEach(tryMatch);
    else {
      for (const label of Object.keys(effective)) this.filed.get(label, effective[label] ?? "")?.forEach(tryMatch);
      this.unfiled.forEach(tryMatch);
    }
  }

  private match(text: SelectorText, { members }: Registered, name: string, entity: Entity): void {
    members.add(name);
    entity.matches.push(text);
    this.listener.matched(text, name);
  }

  private unmatch(text: SelectorText, { members }: Registered, name: string, entity: Entity): void {
    members.delete(name);
    removeItem(entity.matches, text);
    this.listener.unmatched(text, name);
  }

  private candidates(filedUnder: readonly Requirement[]): Iterable<string> {
    const [first, ...more] = filedUnder;
    if (first === undefined) return this.entities.keys();
    if (more.length === 0) return this.namesWith(first);
    return new Set(filedUnder.flatMap((requirement) => [...this.namesWith(requirement)]));
  }

  private namesWith({ label, value }: Requirement): ReadonlySet<string> {
    const known = this.byLabel.get(label);
    if (known !== undefined) return known.get(value) ?? NONE;
    const names = new Map<string, Set<string>>();
    for (const [name, { effective }] of this.entities) {
      if (Object.hasOwn(effective, label)) addTo(names, effective[label] ?? "", name);
    }
    this.byLabel.set(label, names);
    return names.get(value) ?? NONE;
  }

  private bestRequirement(selector: Selector): readonly Requirement[] {
    let best: readonly Requirement[] = [];
    let fewest = Number.POSITIVE_INFINITY;
    for (const alternatives of requirementsOf(selector)) {
      const count = alternatives.reduce((sum, requirement) => sum + this.namesWith(requirement).size, 0);
      if (count < fewest) [best, fewest] = [alternatives, count];
    }
    return best;
  }
}

/**
 * The labels of entities with those that they inherit. The pods of one application have the same ones, and if these are one
 * object, so are the results.
 */
class InheritedLabels {
  private known = new WeakMap<Labels, { readonly parents: readonly string[]; readonly effective: Labels }>();

  /** Of labels with others that are given: those of a network are given to all of its containers. */
  private readonly results = new WeakMap<Labels, WeakMap<Labels, Labels>>();

  constructor(private readonly labelsOf: (parent: string) => Labels | undefined) {}

  /** `given` win, the first over the others. */
  effective(own: Labels, parents: readonly string[], given: readonly Labels[]): Labels {
    return given.reduceRight((labels, more) => this.merged(labels, more), this.withParents(own, parents));
  }

  private merged(labels: Labels, more: Labels): Labels {
    const results = this.results.get(labels) ?? new WeakMap<Labels, Labels>();
    const result = results.get(more) ?? { ...labels, ...more };
    this.results.set(labels, results.set(more, result));
    return result;
  }

  private withParents(own: Labels, parents: readonly string[]): Labels {
    const known = this.known.get(own);
    if (known !== undefined && known.parents === parents) return known.effective;
    // Of two parents with the same label the first wins.
    const inherited = parents.map(this.labelsOf).filter((labels) => labels !== undefined);
    const effective = inherited.length === 0 ? own : Object.assign({}, ...inherited.toReversed(), own);
    this.known.set(own, { parents, effective });
    return effective;
  }

  /** The labels of a parent have changed. */
  forget(): void {
    this.known = new WeakMap();
  }
}

/** Of each group, what the selector selects has one. The label of a group is the same. */
export function requirementsOf(selector: Selector): readonly (readonly Requirement[])[] {
  if (selector.kind === "and") return selector.operands.flatMap(requirementsOf);
  if (selector.kind === "or") return commonRequirements(selector.operands.map(requirementsOf));
  const alternatives = requirementOf(selector);
  return alternatives.length === 0 ? [] : [alternatives];
}

/**
 * Of alternatives: the labels that each of them requires, with the values of all. An entity has one value of a label, so that
 * none is counted twice.
 */
function commonRequirements(
  alternatives: readonly (readonly (readonly Requirement[])[])[],
): readonly (readonly Requirement[])[] {
  // The first group of a label is enough: a long selector must not become longer.
  const [first, ...others] = alternatives.map(
    (groups) => new Map(groups.toReversed().map((group) => [group[0]?.label, group] as const)),
  );
  return Array.from(first ?? []).flatMap(([label, group]) => {
    if (label === undefined || !others.every((groups) => groups.has(label))) return [];
    const all = [...group, ...others.flatMap((groups) => groups.get(label) ?? [])];
    return [Array.from(new Set(all.map(({ value }) => value)), (value) => ({ label, value }))];
  });
}

/** The labels of which the operand requires one; empty if it requires none. */
function requirementOf(operand: Selector): readonly Requirement[] {
  if (operand.kind === "compare" && operand.operator === "==") return [operand];
  if (operand.kind === "member" && operand.operator === "in") {
    return Array.from(new Set(operand.values), (value) => ({ label: operand.label, value }));
  }
  return [];
}

/** Does not keep the order. */
function removeItem<Item>(items: Item[], item: Item): void {
  const place = items.indexOf(item);
  const last = place === -1 ? undefined : items.pop();
  if (last !== undefined && place < items.length) items[place] = last;
}

/** Selectors by label and value. */
class LabelTable {
  private readonly values = new Map<string, Map<string, Set<string>>>();

  get(label: string, value: string): ReadonlySet<string> | undefined {
    return this.values.get(label)?.get(value);
  }

  add(label: string, value: string, name: string): void {
    const values = this.values.get(label);
    if (values === undefined) this.values.set(label, new Map([[value, new Set([name])]]));
    else addTo(values, value, name);
  }

  remove(label: string, value: string, name: string): void {
    const values = this.values.get(label);
    if (values === undefined) return;
    removeFrom(values, value, name);
    if (values.size === 0) this.values.delete(label);
  }
}
