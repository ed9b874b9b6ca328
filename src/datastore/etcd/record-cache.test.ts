/**
 * The cache together with the etcd comparisons that verify it: they succeed
 * exactly if a read would return the cached entries, whatever others wrote and
 * in whatever order responses arrived.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Change, Wanted } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { MemoryTable } from "../memory/table.ts";
import { RecordCache } from "./record-cache.ts";
import { verifiedTransaction } from "./transactions.ts";
import { ABSENT, type Comparison } from "./transport.ts";
import type { AssumedRead } from "./verified-commit.ts";

const KEYS = ["/k/1", "/k/2", "/l/1", "/l/2", "/l/3", "/l/4", "/m/1", "/m/2"];
const WANTED: readonly Wanted[] = [
  { kind: "prefix", prefix: "/l/" },
  { kind: "prefix", prefix: "/m/" },
  ...["/k/1", "/k/2", "/l/2"].map((key): Wanted => ({ kind: "key", key })),
];

const key = fc.constantFrom(...KEYS);
const write = fc.record({ key, deletes: fc.boolean() });
const writes = fc.uniqueArray(write, { selector: (each) => each.key, minLength: 1, maxLength: 3 });
const wanted = fc.subarray([...WANTED], { minLength: 1 });
const step = fc.oneof(
  fc.record({ kind: fc.constant("others"), writes }),
  fc.record({ kind: fc.constant("commit"), writes }),
  fc.record({ kind: fc.constant("read"), wanted }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("verified commit"), wanted, writes }) },
  // A response arrives: the one at this place among those still on their way.
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("arrival"), place: fc.nat({ max: 2 }) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type Write = typeof write extends fc.Arbitrary<infer Value> ? Value : never;

class Walk {
  readonly verified = { right: 0, wrong: 0 };
  private readonly table = new MemoryTable();
  private readonly cache = new RecordCache();
  private readonly underWay: (() => void)[] = [];
  private count = 0;

  take(step: Step): void {
    if (step.kind === "others") this.commit(this.changesOf(step.writes));
    else if (step.kind === "commit") this.answerCommit(this.changesOf(step.writes));
    else if (step.kind === "read") this.answerRead(step.wanted);
    else if (step.kind === "verified commit") this.commitVerified(step.wanted, this.changesOf(step.writes));
    else for (const learn of this.underWay.splice(step.place, 1)) learn();
  }

  private commitVerified(wanted: readonly Wanted[], changes: readonly Change[]): void {
    const assumed = this.cache.lookUp(wanted);
    const { comparisons } = (assumed && verifiedTransaction(assumed, changes)) ?? {};
    if (!assumed || !comparisons) return;
    const isVerified = comparisons.every((comparison) => this.holds(comparison));
    expect(isVerified).toBe(Bun.deepEquals(assumed.answers, this.truth(wanted)));
    this.verified[isVerified ? "right" : "wrong"] += 1;
    if (isVerified) this.respondVerified(assumed, changes);
    else this.answerRead(wanted);
  }

  private respondVerified(assumed: AssumedRead, changes: readonly Change[]): void {
    const revision = this.commit(changes);
    this.underWay.push(() => this.cache.addVerifiedCommit(assumed, changes, revision));
  }

  private answerCommit(changes: readonly Change[]): void {
    const revision = this.commit(changes);
    this.underWay.push(() => this.cache.addCommit(changes, revision));
  }

  private answerRead(wanted: readonly Wanted[]): void {
    const snapshot = { revision: this.table.revision, answers: this.truth(wanted) };
    this.underWay.push(() => this.cache.addRead(wanted, snapshot));
  }

  private truth(wanted: readonly Wanted[]) {
    return wanted.map((each) => this.table.answer(each));
  }

  private commit(changes: readonly Change[]): string {
    expect(this.table.commit(changes).ok).toBe(true);
    return this.table.revision;
  }

  /** Changes with the current revisions: only the assumed entries may be wrong. */
  private changesOf(writes: readonly Write[]): readonly Change[] {
    return writes.map(({ key, deletes }): Change => {
      const [entry] = this.table.answer({ kind: "key", key });
      if (deletes && entry) return { kind: "delete", key, revision: entry.revision };
      this.count += 1;
      return { kind: "put", key, value: String(this.count) };
    });
  }

  /** Compares as etcd does. */
  private holds(comparison: Comparison): boolean {
    if (comparison.kind === "unchanged") {
      const [entry] = this.table.answer({ kind: "key", key: comparison.key });
      return (entry?.revision ?? ABSENT) === comparison.revision;
    }
    return this.table
      .answer({ kind: "prefix", prefix: "" })
      .filter((entry) => compareKeys(entry.key, comparison.key) >= 0 && compareKeys(entry.key, comparison.end) < 0)
      .every((entry) => BigInt(entry.revision) <= BigInt(comparison.revision));
  }
}

describe("RecordCache", () => {
  test("is verified exactly if a read would return the cached entries", () => {
    const verified = { right: 0, wrong: 0 };
    const walk = (steps: readonly Step[]) => {
      const taken = new Walk();
      for (const each of steps) taken.take(each);
      verified.right += taken.verified.right;
      verified.wrong += taken.verified.wrong;
    };
    fc.assert(fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), walk), { numRuns: 2_000 });

    expect(verified.right).toBeGreaterThan(1_000);
    expect(verified.wrong).toBeGreaterThan(1_000);
  });
});
