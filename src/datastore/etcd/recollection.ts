/**
 * What a store showed last and what was written to it since: enough to guess
 * what a read would answer. It never claims to be right.
 *
 *   a key      the entry last seen or written; one that was never seen is taken for absent
 *   a prefix   all its entries at one moment; one that was never read as a whole is not guessed
 *
 * Answers may arrive in another order than they were given: what is of a later
 * revision stays.
 */
import type { Change, Entry, Snapshot, Wanted } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { MOST_IN_ONE_REQUEST } from "../preconditions.ts";
import type { Guess } from "./proving.ts";

/** A block is ten kilobytes at most, most records are a few hundred bytes. What was not used for longest goes first. */
const MOST_RECORDS = 2_000;
const MOST_CHARACTERS = 4_000_000;
const MOST_LISTINGS = 32;

interface Known<Content> {
  readonly asOf: bigint;
  readonly content: Content;
}

export class Recollection {
  private readonly records = new Map<string, Known<Entry | undefined>>();
  private readonly listings = new Map<string, Known<readonly Entry[]>>();
  private characters = 0;

  learnRead(wanted: readonly Wanted[], { revision, answers }: Snapshot): void {
    const asOf = BigInt(revision);
    wanted.forEach((each, index) => {
      const found = answers[index] ?? [];
      if (each.kind === "key") this.noteRecord(each.key, { asOf, content: found[0] });
      else if (isWhole(each)) this.noteListing(each.prefix, { asOf, content: found });
    });
  }

  /** What else happened below a prefix up to this commit is not known: its listing goes. */
  learnCommit(changes: readonly Change[], revision: string): void {
    const asOf = BigInt(revision);
    for (const change of changes.filter(({ kind }) => kind !== "expect")) {
      this.noteRecord(change.key, { asOf, content: entryAfter(change, revision) });
      for (const prefix of [...this.listings.keys()]) if (change.key.startsWith(prefix)) this.listings.delete(prefix);
    }
  }

  /** Everything that was guessed was so right before this commit, and is so after it but for its changes. */
  learnProven({ wanted, answers }: Guess, changes: readonly Change[], revision: string): void {
    this.learnRead(
      wanted.filter(({ kind }) => kind === "key"),
      { revision, answers: answers.filter((_, index) => wanted[index]?.kind === "key") },
    );
    this.learnCommit(changes, revision);
    wanted.forEach((each, index) => {
      if (each.kind === "key" || !isWhole(each)) return;
      const content = listingAfter(each.prefix, answers[index] ?? [], { changes, revision });
      this.noteListing(each.prefix, { asOf: BigInt(revision), content });
    });
  }

  recall(wanted: readonly Wanted[]): Guess | undefined {
    const answers = wanted.map((each) => (each.kind === "key" ? this.recallKey(each.key) : this.recallPrefix(each)));
    const known = answers.filter((answer) => answer !== undefined);
    return known.length === wanted.length ? { wanted, answers: known } : undefined;
  }

  private recallKey(key: string): readonly Entry[] {
    const known = this.records.get(key);
    if (!known) return [];
    this.records.delete(key);
    this.records.set(key, known);
    return known.content ? [known.content] : [];
  }

  private recallPrefix(wanted: Extract<Wanted, { kind: "prefix" }>): readonly Entry[] | undefined {
    return isWhole(wanted) ? this.listings.get(wanted.prefix)?.content : undefined;
  }

  private noteRecord(key: string, known: Known<Entry | undefined>): void {
    const before = this.records.get(key);
    if (before && before.asOf > known.asOf) return;
    this.dropRecord(key);
    this.records.set(key, known);
    this.characters += weightOf(key, known);
    while (this.records.size > MOST_RECORDS || this.characters > MOST_CHARACTERS) {
      const [oldest] = this.records.keys();
      if (oldest === undefined) return;
      this.dropRecord(oldest);
    }
  }

  private dropRecord(key: string): void {
    const known = this.records.get(key);
    if (!known) return;
    this.records.delete(key);
    this.characters -= weightOf(key, known);
  }

  private noteListing(prefix: string, known: Known<readonly Entry[]>): void {
    const before = this.listings.get(prefix);
    if (before && before.asOf > known.asOf) return;
    this.listings.delete(prefix);
    // A longer one could not be proven in one request.
    if (known.content.length < MOST_IN_ONE_REQUEST) this.listings.set(prefix, known);
    const [oldest] = this.listings.keys();
    if (this.listings.size > MOST_LISTINGS && oldest !== undefined) this.listings.delete(oldest);
  }
}

function isWhole({ limit, after }: Extract<Wanted, { kind: "prefix" }>): boolean {
  return limit === undefined && after === undefined;
}

function weightOf(key: string, { content }: Known<Entry | undefined>): number {
  return key.length + (content?.value.length ?? 0);
}

function entryAfter(change: Change, revision: string): Entry | undefined {
  return "value" in change ? { key: change.key, value: change.value, revision } : undefined;
}

function listingAfter(
  prefix: string,
  before: readonly Entry[],
  { changes, revision }: { readonly changes: readonly Change[]; readonly revision: string },
): readonly Entry[] {
  const below = changes.filter(({ kind, key }) => kind !== "expect" && key.startsWith(prefix));
  if (below.length === 0) return before;
  const touched = new Set(below.map(({ key }) => key));
  const written = below.flatMap((change) => entryAfter(change, revision) ?? []);
  return [...before.filter(({ key }) => !touched.has(key)), ...written].sort((left, right) =>
    compareKeys(left.key, right.key),
  );
}
