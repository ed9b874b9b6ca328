/**
 * What is remembered, and the comparisons that prove it to etcd, together: they
 * hold exactly where a read would answer what is remembered, whatever others
 * did and in whatever order answers arrived.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Change, Wanted } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { MemoryTable } from "../memory/table.ts";
import type { Guess } from "./proving.ts";
import { Recollection } from "./recollection.ts";
import { provingTransaction } from "./transactions.ts";
import { ABSENT, type Comparison } from "./transport.ts";

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
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("guess"), wanted, writes }) },
  // Answers arrive: the one that is so many places behind the first that is on its way.
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("arrival"), place: fc.nat({ max: 2 }) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
type Write = typeof write extends fc.Arbitrary<infer Value> ? Value : never;

class Walk {
  readonly proven = { right: 0, wrong: 0 };
  private readonly table = new MemoryTable();
  private readonly recollection = new Recollection();
  private readonly underWay: (() => void)[] = [];
  private count = 0;

  take(step: Step): void {
    if (step.kind === "others") this.commit(this.changesOf(step.writes));
    else if (step.kind === "commit") this.answerCommit(this.changesOf(step.writes));
    else if (step.kind === "read") this.answerRead(step.wanted);
    else if (step.kind === "guess") this.guess(step.wanted, this.changesOf(step.writes));
    else for (const learn of this.underWay.splice(step.place, 1)) learn();
  }

  private guess(wanted: readonly Wanted[], changes: readonly Change[]): void {
    const guess = this.recollection.recall(wanted);
    const { comparisons } = (guess && provingTransaction(guess, changes)) ?? {};
    if (!guess || !comparisons) return;
    const isProven = comparisons.every((comparison) => this.holds(comparison));
    expect(isProven).toBe(Bun.deepEquals(guess.answers, this.truth(wanted)));
    this.proven[isProven ? "right" : "wrong"] += 1;
    if (isProven) this.answerProof(guess, changes);
    else this.answerRead(wanted);
  }

  private answerProof(guess: Guess, changes: readonly Change[]): void {
    const revision = this.commit(changes);
    this.underWay.push(() => this.recollection.learnProven(guess, changes, revision));
  }

  private answerCommit(changes: readonly Change[]): void {
    const revision = this.commit(changes);
    this.underWay.push(() => this.recollection.learnCommit(changes, revision));
  }

  private answerRead(wanted: readonly Wanted[]): void {
    const snapshot = { revision: this.table.revision, answers: this.truth(wanted) };
    this.underWay.push(() => this.recollection.learnRead(wanted, snapshot));
  }

  private truth(wanted: readonly Wanted[]) {
    return wanted.map((each) => this.table.answer(each));
  }

  private commit(changes: readonly Change[]): string {
    expect(this.table.commit(changes).ok).toBe(true);
    return this.table.revision;
  }

  /** Changes that are right at this moment: only what was guessed may be wrong. */
  private changesOf(writes: readonly Write[]): readonly Change[] {
    return writes.map(({ key, deletes }): Change => {
      const [entry] = this.table.answer({ kind: "key", key });
      if (deletes && entry) return { kind: "delete", key, revision: entry.revision };
      this.count += 1;
      return { kind: "put", key, value: String(this.count) };
    });
  }

  /** As etcd compares. */
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

describe("what is remembered", () => {
  test("is proven exactly where a read would answer it", () => {
    const proven = { right: 0, wrong: 0 };
    const walk = (steps: readonly Step[]) => {
      const taken = new Walk();
      for (const each of steps) taken.take(each);
      proven.right += taken.proven.right;
      proven.wrong += taken.proven.wrong;
    };
    fc.assert(fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), walk), { numRuns: 2_000 });

    expect(proven.right).toBeGreaterThan(1_000);
    expect(proven.wrong).toBeGreaterThan(1_000);
  });
});
