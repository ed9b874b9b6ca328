/**
 * Which policies of a namespace are carried out: one beyond a limit denies, and beyond the limit of the namespace its
 * largest ones do. A change of one can close or open others.
 *
 *   note() what has changed ──▶ settle() once for all of it ──▶ what is enforced in another way
 *
 * While a namespace is within its limit, a change costs what the changed policy is, however many others there are.
 */
import { type PolicyLimits, type PolicySize, problemOfSize, problemsOfSizes } from "../policy-size.ts";
import { closedPolicy, type PolicyRecord } from "./policy-record.ts";

interface LimitedNamespace {
  /** By key: those that are carried out unless they are too large. */
  readonly sizes: Map<string, PolicySize>;
  readonly records: Map<string, PolicyRecord>;
  /** Of the policies that are not too large by themselves: how many have each list. */
  readonly users: Map<string, number>;
  rules: number;
  /** By key: those that are too large by themselves. */
  readonly tooLarge: Map<string, string>;
  /** By key: why a policy is closed. */
  problems: ReadonlyMap<string, string>;
}

/** `undefined`: the policy is gone. */
type Changed = readonly [key: string, record: PolicyRecord | undefined];

export class NamespaceLimits {
  private readonly namespaces = new Map<string, LimitedNamespace>();
  /** By namespace: the keys of the policies that have changed since the last call of `settle`. */
  private changed = new Map<string, Set<string>>();

  constructor(private limits: PolicyLimits) {}

  /** `settle` must follow, as after `note`. */
  setLimits(limits: PolicyLimits): void {
    if (Bun.deepEquals(limits, this.limits)) return;
    this.limits = limits;
    for (const [namespace, { records, problems }] of this.namespaces) {
      const counted = { ...emptyNamespace(), problems };
      for (const [key, record] of records) this.add(counted, key, record);
      this.namespaces.set(namespace, counted);
      this.changedIn(namespace);
    }
  }

  /** `undefined`: the policy is gone. */
  note(namespace: string, key: string, record: PolicyRecord | undefined): void {
    const known = this.namespaces.get(namespace) ?? emptyNamespace();
    this.namespaces.set(namespace, known);
    remove(known, key);
    if (record !== undefined) this.add(known, key, record);
    this.changedIn(namespace).add(key);
  }

  /** Whether a change of so much can make other policies of the namespace be enforced in another way. */
  isReachedBy(namespace: string, more: PolicyLimits): boolean {
    const { users, rules } = this.namespaces.get(namespace) ?? emptyNamespace();
    return users.size + more.lists > this.limits.lists || rules + more.rules > this.limits.rules;
  }

  /** Returns the policies that have changed as they are enforced, and others that are enforced in another way now. */
  settle(): readonly Changed[] {
    const { changed } = this;
    this.changed = new Map();
    return Array.from(changed).flatMap(([namespace, keys]) => this.settleNamespace(namespace, keys));
  }

  private settleNamespace(namespace: string, keys: ReadonlySet<string>): readonly Changed[] {
    const known = this.namespaces.get(namespace) ?? emptyNamespace();
    const before = known.problems;
    const isWithin = known.users.size <= this.limits.lists && known.rules <= this.limits.rules;
    known.problems = isWithin ? new Map(known.tooLarge) : problemsOfSizes(known.sizes, this.limits);
    if (known.records.size === 0) this.namespaces.delete(namespace);
    const changed = new Set(keys);
    for (const [key, problem] of known.problems) if (before.get(key) !== problem) changed.add(key);
    for (const key of before.keys()) if (!known.problems.has(key)) changed.add(key);
    return Array.from(changed, (key) => {
      const [record, problem] = [known.records.get(key), known.problems.get(key)];
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
    if (size === undefined) return;
    known.sizes.set(key, size);
    const problem = problemOfSize(size, this.limits);
    if (problem !== undefined) known.tooLarge.set(key, problem);
    else {
      known.rules += size.rules;
      for (const text of size.lists) known.users.set(text, (known.users.get(text) ?? 0) + 1);
    }
  }
}

function emptyNamespace(): LimitedNamespace {
  return {
    ...{ sizes: new Map(), records: new Map(), users: new Map() },
    ...{ rules: 0, tooLarge: new Map(), problems: new Map() },
  };
}

function remove(known: LimitedNamespace, key: string): void {
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
