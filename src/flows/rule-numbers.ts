/**
 * Which number in the label of a connection stands for which rule, given by its comment.
 *
 *   new comment ──▶ lowest free number
 *   rule is gone from the table ──▶ two whole looks at the connection table, one after the other, do not find the number ──▶ free
 *
 * So a number never stands for two rules at a time, also for connections that are older than the second one. One look is not
 * enough: it misses a connection whose first packet has passed the rule and is not in the table yet, and entries that the kernel
 * moves meanwhile because the table grows. A comment keeps its number as long as it is known. Pure.
 */
import { MOST_RULE_NUMBERS } from "./rule-label.ts";

export type NumberedRule = readonly [number: number, comment: string];

/** A whole look at the connection table. */
export interface UsedNumbers {
  /** When it began. */
  readonly since: number;
  readonly numbers: Iterable<number>;
}

interface GoneRule {
  /** A look that began earlier says nothing: when the rule was noticed to be gone, then when the first look was over. */
  readonly after: number;
  readonly missedLooks: number;
}

const NEEDED_LOOKS = 2;

export class RuleNumbers {
  private readonly numbers = new Map<string, number>();
  private readonly used = new Set<number>();
  /** No rule of the table has the comment any more. */
  private readonly gone = new Map<string, GoneRule>();
  /** All lower ones are in use. */
  private lowestFree: number;

  /** `lowest`: lower numbers may be in labels, and nobody knows for what. */
  constructor(
    known: Iterable<NumberedRule>,
    readonly lowest = 1,
  ) {
    this.lowestFree = lowest;
    for (const [number, comment] of known) this.put(number, comment);
  }

  get all(): readonly NumberedRule[] {
    return Array.from(this.numbers, ([comment, number]) => [number, comment]);
  }

  /** Of a rule that will be in the table; `undefined` if it has none. */
  find(comment: string): number | undefined {
    this.gone.delete(comment);
    return this.numbers.get(comment);
  }

  /** Gives the comment, which has none, a number; `undefined` if all are in use. */
  add(comment: string): number | undefined {
    while (this.used.has(this.lowestFree)) this.lowestFree += 1;
    const number = this.lowestFree;
    if (number > MOST_RULE_NUMBERS) return undefined;
    this.put(number, comment);
    return number;
  }

  /** No label has ever had the number. */
  remove(number: number): void {
    for (const [comment, each] of this.numbers) {
      if (each === number) this.free(number, comment);
    }
  }

  /** Returns the numbers that are free now. `inTable`: the comments of the rules that write labels. */
  releaseUnused(inTable: ReadonlySet<string>, { since, numbers }: UsedNumbers, now: number): readonly number[] {
    const inLabels = new Set(numbers);
    const released: number[] = [];
    for (const [comment, number] of this.numbers) {
      if (inTable.has(comment)) {
        this.gone.delete(comment);
        continue;
      }
      const gone = this.gone.get(comment);
      if (gone === undefined || inLabels.has(number)) this.gone.set(comment, { after: now, missedLooks: 0 });
      else if (since > gone.after) this.gone.set(comment, { after: now, missedLooks: gone.missedLooks + 1 });
      if ((this.gone.get(comment)?.missedLooks ?? 0) < NEEDED_LOOKS) continue;
      this.free(number, comment);
      released.push(number);
    }
    return released;
  }

  private put(number: number, comment: string): void {
    this.numbers.set(comment, number);
    this.used.add(number);
  }

  private free(number: number, comment: string): void {
    this.numbers.delete(comment);
    this.used.delete(number);
    this.gone.delete(comment);
    if (number >= this.lowest) this.lowestFree = Math.min(this.lowestFree, number);
  }
}
