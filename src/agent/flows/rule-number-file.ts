/**
 * The numbers of rules in a file of the run directory: connections, their labels and the policy table end with the boot, as
 * the file does. A number is in the file before a rule has it.
 *
 *   {"lowest":1,"since":0}      lower numbers are not given: they may be in labels, and nobody knows for what;
 *                               since when all rules write labels, in milliseconds since 1970
 *   [1,"shop/db ingress 0"]     one line for each rule, appended
 *
 * A missing or damaged file is begun again, with numbers above all that the kernel has in labels or in rules.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import * as v from "valibot";
import { describeFailure } from "../../errors.ts";
import { MOST_RULE_NUMBERS } from "../../flows/rule-label.ts";
import { type NumberedRule, RuleNumbers, type UsedNumbers } from "../../flows/rule-numbers.ts";
import { readText } from "../../linux/files.ts";
import { replaceFile } from "../../linux/replace-file.ts";
import { quoted } from "../../quote.ts";

export interface RuleNumberFileOptions {
  readonly path: string;
  readonly report: (message: string) => void;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
}

/** A full disk is not tried for each rule of a large table. */
const PAUSE_AFTER_FAILURE_MILLISECONDS = 10_000;

/**
 * `undefined`: the file is missing or damaged, and it is not given what the highest number in a label or rule of the kernel is
 * (0 if there is none).
 */
export function openRuleNumbers(options: RuleNumberFileOptions, highestInKernel?: number): RuleNumberFile | undefined {
  const read = readNumbers(options.path);
  if (read.kind !== "read" && highestInKernel === undefined) return undefined;
  return new RuleNumberFile(options, read, highestInKernel ?? 0);
}

export class RuleNumberFile {
  private readonly numbers: RuleNumbers;
  private labelsSince: number | undefined;
  /** To append; `undefined` while the file must be written as a whole. */
  private file: number | undefined;
  private failedAt: number | undefined;

  constructor(
    private readonly options: RuleNumberFileOptions,
    read: ReadNumbers,
    highest: number,
  ) {
    const { path, report } = options;
    if (read.kind === "read") {
      this.numbers = new RuleNumbers(read.rules, read.lowest);
      this.labelsSince = read.since;
    } else {
      this.numbers = new RuleNumbers([], highest + 1);
      if (read.kind === "damaged" || highest > 0)
        report(
          `The numbers of rules in ${quoted(path)} are ${read.kind === "damaged" ? `damaged (${read.reason})` : "gone"}: new ones begin at ${highest + 1}, and flows do not know the rule of connections with former ones`,
        );
    }
    if (read.kind === "read" && read.isWhole) this.openToAppend();
  }

  /** Whether new numbers can be written down, after an attempt has failed. */
  canWriteAgain(): boolean {
    return this.mayTry && (this.file !== undefined || this.writeWhole());
  }

  get all(): readonly NumberedRule[] {
    return this.numbers.all;
  }

  /** Since when all rules of the kernel write labels; `undefined`: they do not. */
  get since(): number | undefined {
    return this.labelsSince;
  }

  setSince(since: number | undefined): void {
    if (since === this.labelsSince) return;
    this.labelsSince = since;
    this.writeWhole();
  }

  /** `isNew`: nobody had the number until now. `undefined`: it cannot be written down now. */
  numberOf(comment: string): { readonly number: number; readonly isNew: boolean } | "all in use" | undefined {
    const known = this.numbers.find(comment);
    if (known !== undefined) return { number: known, isNew: false };
    if (!this.mayTry) return undefined;
    const number = this.numbers.add(comment);
    if (number === undefined) return "all in use";
    if (this.save([number, comment])) return { number, isNew: true };
    this.numbers.remove(number);
    return undefined;
  }

  /** Returns the numbers that stand for no rule any more. */
  releaseUnused(inTable: ReadonlySet<string>, used: UsedNumbers, now: number): readonly number[] {
    const released = this.numbers.releaseUnused(inTable, used, now);
    // Otherwise the file would grow for as long as rules come and go.
    if (released.length > 0) this.writeWhole();
    return released;
  }

  close(): void {
    const { file } = this;
    this.file = undefined;
    if (file !== undefined) closeSync(file);
  }

  private get mayTry(): boolean {
    return this.failedAt === undefined || this.options.elapsed() - this.failedAt >= PAUSE_AFTER_FAILURE_MILLISECONDS;
  }

  private save(rule: NumberedRule): boolean {
    if (this.file === undefined) return this.writeWhole();
    try {
      const line = Buffer.from(`${JSON.stringify(rule)}\n`);
      if (writeSync(this.file, line) === line.length) return true;
      throw new Error("no space left");
    } catch (failure) {
      this.options.report(`Cannot write ${quoted(this.options.path)}: ${describeFailure(failure)}`);
      // Perhaps half of the line is there.
      this.close();
      this.failedAt = this.options.elapsed();
      return false;
    }
  }

  private writeWhole(): boolean {
    const { path, report } = this.options;
    this.close();
    try {
      const head = {
        lowest: this.numbers.lowest,
        ...(this.labelsSince === undefined ? {} : { since: this.labelsSince }),
      };
      const lines = [head, ...this.numbers.all].map((line) => `${JSON.stringify(line)}\n`);
      replaceFile(path, lines.join(""), "owner");
      this.openToAppend();
      this.failedAt = undefined;
      return true;
    } catch (failure) {
      this.failedAt = this.options.elapsed();
      report(describeFailure(failure));
      return false;
    }
  }

  private openToAppend(): void {
    this.file = openSync(this.options.path, "a", 0o600);
  }
}

type ReadNumbers =
  | {
      readonly kind: "read";
      readonly rules: readonly NumberedRule[];
      readonly lowest: number;
      readonly since: number | undefined;
      readonly isWhole: boolean;
    }
  | { readonly kind: "missing" }
  | { readonly kind: "damaged"; readonly reason: string };

const ruleNumber = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MOST_RULE_NUMBERS));
const headSchema = v.strictObject({
  lowest: v.pipe(v.number(), v.integer(), v.minValue(1)),
  since: v.exactOptional(v.number()),
});
const ruleSchema = v.strictTuple([ruleNumber, v.string()]);

function readNumbers(path: string): ReadNumbers {
  const text = readText(path);
  if (text === undefined) return { kind: "missing" };
  // What follows the last newline was never finished, so no rule has the number.
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  const [head = "", ...lines] = whole.split("\n").slice(0, -1);
  const { lowest, since } = readLine(headSchema, head) ?? {};
  if (lowest === undefined) return { kind: "damaged", reason: "line 1" };
  const rules = new Map<number, string>();
  const comments = new Set<string>();
  for (const [index, line] of lines.entries()) {
    const [number, comment] = readLine(ruleSchema, line) ?? [];
    if (number === undefined || comment === undefined || rules.has(number) || comments.has(comment))
      return { kind: "damaged", reason: `line ${index + 2}` };
    rules.set(number, comment);
    comments.add(comment);
  }
  return { kind: "read", rules: [...rules], lowest, since, isWhole: whole === text };
}

function readLine<Schema extends v.GenericSchema>(schema: Schema, line: string): v.InferOutput<Schema> | undefined {
  try {
    const parsed = v.safeParse(schema, JSON.parse(line));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}
