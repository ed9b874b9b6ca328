/**
 * What is known so far about the datastore, from one or several reads.
 *
 * A decision queries its facts; what they do not contain is read next. Facts of
 * several reads may have different revisions: that is safe because every change
 * that depends on them names the revision it was decided from.
 */
import type { Entry, Snapshot, Wanted } from "../datastore/datastore.ts";

/** Decoded entries. The node agent reads most of them again, unchanged. Decoded values are never modified. */
export class DecodedEntries {
  private readonly known = new WeakMap<Entry, unknown>();

  /** Decodes an entry once, however often it is requested. */
  decode<T>(entry: Entry, decoder: Decoder<T>): T {
    const known = this.known.get(entry);
    if (known instanceof Decoded && known.decoder === decoder) return known.value;
    const value = decoder(entry);
    this.known.set(entry, new Decoded(decoder, value));
    return value;
  }
}

/** A decision needs what was not read: it is made again with the result. */
export class Unread extends Error {
  override readonly name = "Unread";

  constructor(readonly wanted: Wanted) {
    super(`${JSON.stringify(wanted)} was not read`);
  }
}

export class Facts {
  private readonly answers = new Map<string, readonly Entry[]>();
  private readonly entries = new Map<string, Entry | undefined>();

  constructor(private readonly decoded: DecodedEntries = new DecodedEntries()) {}

  /** Adds the results of a read. */
  learn(wanted: readonly Wanted[], snapshot: Pick<Snapshot, "answers">): void {
    wanted.forEach((each, index) => {
      const found = snapshot.answers[index] ?? [];
      if (each.kind === "prefix") this.answers.set(identityOf(each), found);
      else this.entries.set(each.key, found[0]);
      for (const entry of found) this.entries.set(entry.key, entry);
    });
  }

  /** The result of this read, or `undefined` if it was never made. */
  answer(wanted: Wanted): readonly Entry[] | undefined {
    if (wanted.kind === "prefix") return this.answers.get(identityOf(wanted));
    if (!this.knows(wanted.key)) return undefined;
    const entry = this.entries.get(wanted.key);
    return entry ? [entry] : [];
  }

  /** Whether the key was read, existing or not. */
  knows(key: string): boolean {
    return this.entries.has(key);
  }

  entry(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  /** The keys below a prefix that were read and exist, in no particular order. */
  *below(prefix: string): Generator<Entry> {
    for (const [key, entry] of this.entries) if (entry && key.startsWith(prefix)) yield entry;
  }

  decode<T>(entry: Entry, decoder: Decoder<T>): T {
    return this.decoded.decode(entry, decoder);
  }
}

export type Decoder<T> = (entry: Entry) => T;

class Decoded<T> {
  constructor(
    readonly decoder: Decoder<T>,
    readonly value: T,
  ) {}
}

function identityOf(wanted: Extract<Wanted, { kind: "prefix" }>): string {
  return JSON.stringify([wanted.prefix, wanted.limit ?? null, wanted.after ?? null]);
}
