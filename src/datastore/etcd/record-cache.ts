/**
 * A cache of the records that were last read or written: enough to predict
 * what a read would return. The prediction may be wrong.
 *
 *   a key      the entry last read or written; a key that was never seen is assumed to be absent
 *   a prefix   all its entries at one revision; a prefix that was never listed completely is not predicted
 *
 * Responses may arrive out of order: the content with the later revision stays.
 */
import type { Change, Entry, Snapshot, Wanted } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { MOST_IN_ONE_REQUEST } from "../preconditions.ts";
import type { AssumedRead } from "./verified-commit.ts";

/** A block has ten kilobytes at most, most records a few hundred bytes. The least recently used record is dropped first. */
const MOST_RECORDS = 2_000;
const MOST_CHARACTERS = 4_000_000;
const MOST_LISTINGS = 32;

interface Cached<Content> {
  readonly asOf: bigint;
  readonly content: Content;
}

export class RecordCache {
  private readonly records = new Map<string, Cached<Entry | undefined>>();
  private readonly listings = new Map<string, Cached<readonly Entry[]>>();
  private characters = 0;

  addRead(wanted: readonly Wanted[], { revision, answers }: Snapshot): void {
    const asOf = BigInt(revision);
    wanted.forEach((each, index) => {
      const found = answers[index] ?? [];
      if (each.kind === "key") this.storeRecord(each.key, { asOf, content: found[0] });
      else if (isWhole(each)) this.storeListing(each.prefix, { asOf, content: found });
    });
  }

  /** Other changes below a prefix before this commit are unknown, so its listing is dropped. */
  addCommit(changes: readonly Change[], revision: string): void {
    const asOf = BigInt(revision);
    for (const change of changes.filter(({ kind }) => kind !== "expect")) {
      this.storeRecord(change.key, { asOf, content: entryAfter(change, revision) });
      for (const prefix of [...this.listings.keys()]) if (change.key.startsWith(prefix)) this.listings.delete(prefix);
    }
  }

  /** Every assumption held immediately before this commit, and still holds after it except for the commit's own changes. */
  addVerifiedCommit({ wanted, answers }: AssumedRead, changes: readonly Change[], revision: string): void {
    this.addRead(
      wanted.filter(({ kind }) => kind === "key"),
      { revision, answers: answers.filter((_, index) => wanted[index]?.kind === "key") },
    );
    this.addCommit(changes, revision);
    wanted.forEach((each, index) => {
      if (each.kind === "key" || !isWhole(each)) return;
      const content = listingAfter(each.prefix, answers[index] ?? [], { changes, revision });
      this.storeListing(each.prefix, { asOf: BigInt(revision), content });
    });
  }

  lookUp(wanted: readonly Wanted[]): AssumedRead | undefined {
    const answers = wanted.map((each) => (each.kind === "key" ? this.lookUpKey(each.key) : this.lookUpPrefix(each)));
    const known = answers.filter((answer) => answer !== undefined);
    return known.length === wanted.length ? { wanted, answers: known } : undefined;
  }

  private lookUpKey(key: string): readonly Entry[] {
    const known = this.records.get(key);
    if (!known) return [];
    this.records.delete(key);
    this.records.set(key, known);
    return known.content ? [known.content] : [];
  }

  private lookUpPrefix(wanted: Extract<Wanted, { kind: "prefix" }>): readonly Entry[] | undefined {
    return isWhole(wanted) ? this.listings.get(wanted.prefix)?.content : undefined;
  }

  private storeRecord(key: string, known: Cached<Entry | undefined>): void {
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

  private storeListing(prefix: string, known: Cached<readonly Entry[]>): void {
    const before = this.listings.get(prefix);
    if (before && before.asOf > known.asOf) return;
    this.listings.delete(prefix);
    // A longer listing could not be verified in one request.
    if (known.content.length < MOST_IN_ONE_REQUEST) this.listings.set(prefix, known);
    const [oldest] = this.listings.keys();
    if (this.listings.size > MOST_LISTINGS && oldest !== undefined) this.listings.delete(oldest);
  }
}

function isWhole({ limit, after }: Extract<Wanted, { kind: "prefix" }>): boolean {
  return limit === undefined && after === undefined;
}

function weightOf(key: string, { content }: Cached<Entry | undefined>): number {
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
