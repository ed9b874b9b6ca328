/**
 * Which policies of a namespace are carried out: one beyond a limit denies, and beyond the limit of the namespace its
 * largest ones do. A change of one can close or open others, and so can pods that start or end.
 *
 *   note() what has changed ──▶ settle() once for all of it ──▶ what is enforced in another way
 *   close() while many pods start ──▶ what must not be built; settle() opens it again if as many have ended
 *
 * While a namespace is within its limit, a change costs what the changed policy is, however many others there are.
 *
 * A policy that was closed because pods started is opened again when policies of its namespace change, or when all of them
 * have three quarters of the addresses that they may have: a pod that comes and goes at the limit changes nothing.
 */

import {
  type PolicyLimits,
  type PolicySize,
  problemOfAddresses,
  problemOfSize,
  problemsOfSizes,
  type WrittenSize,
  warningOfAddresses,
} from "../policy-size.ts";
import type { AnyReference } from "../table/names.ts";
import { referencesOf, referenceText } from "../table/names.ts";
import { emptySum, ListAddresses, type Sum } from "./list-addresses.ts";
import { closedPolicy, type PolicyRecord } from "./policy-record.ts";

interface LimitedNamespace {
  /** By key: those that are carried out unless they are too large. */
  readonly sizes: Map<string, PolicySize>;
  readonly records: Map<string, PolicyRecord>;
  /** Of the policies that are not too large by themselves: how many have each list. */
  readonly users: Map<string, number>;
  rules: number;
  /** What these can hold together. */
  readonly wanted: CountedPolicies;
  /** What those that are carried out can hold together. */
  readonly open: CountedPolicies;
  /** By key: those that are too large by themselves. */
  readonly tooLarge: Map<string, string>;
  /** By key: why a policy is closed. */
  problems: ReadonlyMap<string, string>;
  /** What `problems` was when all was settled, if policies were closed since. */
  settledProblems?: ReadonlyMap<string, string> | undefined;
}

/** The lists of several policies, each counted once. */
interface CountedPolicies {
  readonly policies: Map<string, PolicyRecord>;
  readonly uses: Map<string, number>;
  readonly sum: Sum;
  /** Elements of long lists. */
  written: number;
}

/** `undefined`: the policy is gone. */
type Changed = readonly [key: string, record: PolicyRecord | undefined];

/** Of the limit of addresses: below it, what pods have closed is opened again. */
const SHARE_TO_OPEN = 3 / 4;
/** Beyond the first of these shares a namespace is near its limit, up to the second it is not: in between it is as it was. */
const SHARE_TO_WARN = 3 / 4;
const SHARE_TO_FORGET = 1 / 2;

export class NamespaceLimits {
  private readonly namespaces = new Map<string, LimitedNamespace>();
  /** By namespace: the keys of the policies that have changed since the last call of `settle`. */
  private changed = new Map<string, Set<string>>();
  private readonly near = new Set<string>();

  constructor(
    private limits: PolicyLimits,
    private readonly addresses = new ListAddresses({ entities: () => [], endpointsOf: () => 0 }),
  ) {}

  /** `settle` must follow, as after `note`. */
  setLimits(limits: PolicyLimits): void {
    if (Bun.deepEquals(limits, this.limits)) return;
    this.limits = limits;
    for (const [namespace, { records, problems, wanted, open }] of this.namespaces) {
      const counted = { ...emptyNamespace(), problems, wanted, open };
      for (const [key, record] of records) this.add(counted, key, record);
      this.namespaces.set(namespace, counted);
      this.changedIn(namespace);
    }
  }

  /** `undefined`: the policy is gone. */
  note(namespace: string, key: string, record: PolicyRecord | undefined): void {
    const known = this.namespaces.get(namespace) ?? emptyNamespace();
    this.namespaces.set(namespace, known);
    this.remove(known, key);
    if (record === undefined) this.count(known.wanted, key, undefined);
    else this.add(known, key, record);
    this.changedIn(namespace).add(key);
  }

  /** By namespace: why more pods may soon close policies of it. */
  get warnings(): ReadonlyMap<string, string> {
    return new Map(Array.from(this.near, (namespace) => [namespace, warningOfAddresses(this.limits)]));
  }

  /** Whether a change of so much can make other policies of the namespace be enforced in another way. */
  isReachedBy(namespace: string, more: WrittenSize): boolean {
    const { users, rules, wanted } = this.namespaces.get(namespace) ?? emptyNamespace();
    if (users.size + more.lists > this.limits.lists || rules + more.rules > this.limits.rules) return true;
    // What the lists of the change can hold is not known before it is counted.
    return this.totalOf(wanted) > this.limits.addresses * SHARE_TO_OPEN;
  }

  /** A policy of this size is not carried out, whatever else is in its namespace. */
  isTooLarge(size: PolicySize): boolean {
    return problemOfSize(size, this.limits) !== undefined;
  }

  /** Returns the policies that have changed as they are enforced, and others that are enforced in another way now. */
  settle(): readonly Changed[] {
    const { changed } = this;
    this.changed = new Map();
    const settled = Array.from(changed).flatMap(([namespace, keys]) => this.settleNamespace(namespace, keys));
    for (const [namespace, known] of this.namespaces) {
      const { settledProblems } = known;
      if (settledProblems !== undefined) known.settledProblems = undefined;
      if (changed.has(namespace)) continue;
      // Pods of the same change may have ended since.
      if (settledProblems !== undefined) settled.push(...this.replaceProblems(known, settledProblems, new Set()));
      const total = this.totalOf(known.open);
      if (total > this.limits.addresses) settled.push(...this.closeFurther(known));
      else if (this.mayOpen(known)) settled.push(...this.settleNamespace(namespace, new Set()));
      if (this.near.size > 0 || total > this.limits.addresses * SHARE_TO_FORGET) this.noteNear(namespace);
    }
    for (const namespace of changed.keys()) this.noteNear(namespace);
    // Of what was opened and closed again here, only the last counts.
    return [...new Map(settled)];
  }

  /** In the middle of a change: returns those that are closed, because they can have more addresses already than they may. */
  close(): readonly Changed[] {
    return Array.from(this.namespaces.values()).flatMap((known) => {
      if (this.totalOf(known.open) <= this.limits.addresses) return [];
      known.settledProblems ??= known.problems;
      return this.closeFurther(known);
    });
  }

  private noteNear(namespace: string): void {
    const known = this.namespaces.get(namespace);
    const total = known === undefined ? 0 : this.totalOf(known.open);
    if (total > this.limits.addresses * SHARE_TO_WARN) this.near.add(namespace);
    else if (total <= this.limits.addresses * SHARE_TO_FORGET) this.near.delete(namespace);
  }

  private settleNamespace(namespace: string, keys: ReadonlySet<string>): readonly Changed[] {
    const known = this.namespaces.get(namespace) ?? emptyNamespace();
    const { lists, rules, addresses } = this.limits;
    const isWithin = known.users.size <= lists && known.rules <= rules && this.totalOf(known.wanted) <= addresses;
    const problems = isWithin ? new Map(known.tooLarge) : this.problemsIn(known, known.sizes);
    if (known.records.size === 0) this.namespaces.delete(namespace);
    return this.replaceProblems(known, problems, keys);
  }

  /** Pods have started: those that are closed stay so. */
  private closeFurther(known: LimitedNamespace): readonly Changed[] {
    const open = new Map(Array.from(known.sizes).filter(([key]) => !known.problems.has(key)));
    const problems = new Map([...known.problems, ...this.problemsIn(known, open)]);
    return this.replaceProblems(known, problems, new Set());
  }

  private mayOpen(known: LimitedNamespace): boolean {
    if (known.problems.size === known.tooLarge.size) return false;
    if (!known.problems.values().some((problem) => problem === problemOfAddresses(this.limits))) return false;
    return this.totalOf(known.wanted) <= this.limits.addresses * SHARE_TO_OPEN;
  }

  private problemsIn(known: LimitedNamespace, sizes: ReadonlyMap<string, PolicySize>): ReadonlyMap<string, string> {
    return problemsOfSizes(sizes, this.limits, (key) => {
      const record = known.records.get(key);
      const lists = record === undefined ? [] : referencesIn(record);
      return new Map([
        ...lists.map((reference) => [referenceText(reference), this.addresses.of(reference)] as const),
        [key, record?.size?.written ?? 0],
      ]);
    });
  }

  private replaceProblems(
    known: LimitedNamespace,
    problems: ReadonlyMap<string, string>,
    keys: ReadonlySet<string>,
  ): readonly Changed[] {
    const before = known.problems;
    known.problems = problems;
    const changed = new Set(keys);
    for (const [key, problem] of problems) if (before.get(key) !== problem) changed.add(key);
    for (const key of before.keys()) if (!problems.has(key)) changed.add(key);
    return Array.from(changed, (key) => {
      const [record, problem] = [known.records.get(key), problems.get(key)];
      this.count(known.open, key, problem === undefined ? known.wanted.policies.get(key) : undefined);
      return [key, record === undefined || problem === undefined ? record : closedPolicy(record, problem)];
    });
  }

  private changedIn(namespace: string): Set<string> {
    const keys = this.changed.get(namespace) ?? new Set<string>();
    this.changed.set(namespace, keys);
    return keys;
  }

  private add(known: LimitedNamespace, key: string, record: PolicyRecord): void {
    known.records.set(key, record);
    const { size } = record;
    const problem = size === undefined ? undefined : problemOfSize(size, this.limits);
    this.count(known.wanted, key, size === undefined || problem !== undefined ? undefined : record);
    if (size === undefined) return;
    known.sizes.set(key, size);
    if (problem !== undefined) known.tooLarge.set(key, problem);
    else {
      known.rules += size.rules;
      for (const text of size.lists) known.users.set(text, (known.users.get(text) ?? 0) + 1);
    }
  }

  private remove(known: LimitedNamespace, key: string): void {
    const size = known.sizes.get(key);
    known.records.delete(key);
    known.sizes.delete(key);
    if (known.tooLarge.delete(key) || size === undefined) return;
    known.rules -= size.rules;
    for (const text of size.lists) {
      const left = (known.users.get(text) ?? 1) - 1;
      if (left === 0) known.users.delete(text);
      else known.users.set(text, left);
    }
  }

  private totalOf({ sum, written }: CountedPolicies): number {
    return this.addresses.total(sum) + written;
  }

  /** Counted first, so that a list that both have is not counted again. `undefined`: the policy does not count any more. */
  private count(counted: CountedPolicies, key: string, record: PolicyRecord | undefined): void {
    const before = counted.policies.get(key);
    if (before === record) return;
    if (record === undefined) counted.policies.delete(key);
    else counted.policies.set(key, record);
    counted.written += (record?.size?.written ?? 0) - (before?.size?.written ?? 0);
    for (const reference of record === undefined ? [] : referencesIn(record)) {
      const text = referenceText(reference);
      const uses = counted.uses.get(text) ?? 0;
      counted.uses.set(text, uses + 1);
      if (uses === 0) this.addresses.add(counted.sum, reference);
    }
    for (const reference of before === undefined ? [] : referencesIn(before)) {
      const text = referenceText(reference);
      const left = (counted.uses.get(text) ?? 1) - 1;
      if (left > 0) counted.uses.set(text, left);
      else if (counted.uses.delete(text)) this.addresses.remove(counted.sum, reference);
    }
  }
}

const knownReferences = new WeakMap<PolicyRecord, readonly AnyReference[]>();

function referencesIn(record: PolicyRecord): readonly AnyReference[] {
  const known = knownReferences.get(record);
  if (known !== undefined) return known;
  const { ingress = [], egress = [] } = record.rules;
  const references = referencesOf([...ingress, ...egress]);
  knownReferences.set(record, references);
  return references;
}

function emptyNamespace(): LimitedNamespace {
  return {
    ...{ sizes: new Map(), records: new Map(), users: new Map(), wanted: noPolicies(), open: noPolicies() },
    ...{ rules: 0, tooLarge: new Map(), problems: new Map() },
  };
}

function noPolicies(): CountedPolicies {
  return { policies: new Map(), uses: new Map(), sum: emptySum(), written: 0 };
}
