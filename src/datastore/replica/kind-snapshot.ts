/** The decoded records of one kind at one revision. Immutable. */
import { PluginError } from "../../errors.ts";
import type { Entry } from "../datastore.ts";
import type { Unreadable } from "../read-each.ts";
import type { KindSource } from "./kinds.ts";
import { PersistentMap } from "./persistent-map.ts";

interface Origin {
  readonly key: string;
  readonly revision: string;
  /** Digest of the text it was decoded from: after a restore from an older copy the same revision may have another text. */
  readonly digest: number;
}

/** A record in the replica; the same object until the record is written. */
export type HeldRecord<Value> = Origin &
  (
    | { readonly kind: "readable"; readonly value: Value }
    | { readonly kind: "unreadable"; readonly failure: PluginError }
  );

/** Decodes an entry unless it is unchanged; `undefined` if it is not of this kind. */
export function holdEntry<Value>(
  entry: Entry,
  source: KindSource<Value>,
  held: HeldRecord<Value> | undefined,
): HeldRecord<Value> | undefined {
  const { key, revision } = entry;
  const origin: Origin = { key, revision, digest: digestOf(entry.value) };
  if (held !== undefined && held.revision === revision && held.digest === origin.digest) return held;
  try {
    const value = source.decode(entry);
    if (value === undefined) return undefined;
    const isSame = source.equalIsSame && held?.kind === "readable" && Bun.deepEquals(held.value, value);
    return { ...origin, kind: "readable", value: isSame ? held.value : value };
  } catch (error) {
    return { ...origin, kind: "unreadable", failure: asMalformed(error, key) };
  }
}

/** The 53 bits that a number holds: a bigint takes more memory, for each record. */
function digestOf(text: string): number {
  return Number(Bun.hash(text));
}

/** Whether consumers need not be told: the record was written again, and is the same to them. */
export function isSameToConsumers<Value>(
  { equalIsSame }: KindSource<Value>,
  before: HeldRecord<Value> | undefined,
  held: HeldRecord<Value> | undefined,
): boolean {
  if (before?.kind !== "readable" || held?.kind !== "readable") return before === held;
  return before === held || (equalIsSame === true && before.value === held.value);
}

/** One record must not stop the others, not even if its decoder fails with an unexpected error. */
function asMalformed(error: unknown, key: string): PluginError {
  if (error instanceof PluginError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new PluginError("record-malformed", `Cannot read the record at "${key}": ${reason}`, { cause: error });
}

export class KindSnapshot<Value> {
  private constructor(
    /** The revision of the store. */
    readonly revision: string,
    private readonly readable: PersistentMap<HeldRecord<Value>>,
    private readonly malformed: PersistentMap<HeldRecord<Value>>,
  ) {}

  static empty<Value>(): KindSnapshot<Value> {
    return new KindSnapshot<Value>("0", PersistentMap.empty(), PersistentMap.empty());
  }

  /** The number of readable records. */
  get size(): number {
    return this.readable.size;
  }

  /** Also `undefined` for an unreadable record. */
  get(key: string): Value | undefined {
    const held = this.readable.get(key);
    return held?.kind === "readable" ? held.value : undefined;
  }

  /** The revision of a record, for a commit that is guarded by it. */
  revisionOf(key: string): string | undefined {
    return this.held(key)?.revision;
  }

  /** Keys and values of the readable records, in no particular order. */
  *[Symbol.iterator](): IterableIterator<readonly [string, Value]> {
    for (const [key, held] of this.readable) if (held.kind === "readable") yield [key, held.value];
  }

  /**
   * The unreadable records. A consumer that must fail closed checks them: their content, perhaps "deny", is not among
   * the values.
   */
  get unreadable(): readonly Unreadable[] {
    return Array.from(this.malformed, ([, held]) => held).filter((held) => held.kind === "unreadable");
  }

  /** The record at the key, readable or not. */
  held(key: string): HeldRecord<Value> | undefined {
    return this.readable.get(key) ?? this.malformed.get(key);
  }

  *keys(): IterableIterator<string> {
    for (const [key] of this.readable) yield key;
    for (const [key] of this.malformed) yield key;
  }

  /** The state at a later revision; `undefined` removes a record. */
  with(revision: string, changes: ReadonlyMap<string, HeldRecord<Value> | undefined>): KindSnapshot<Value> {
    const among = (kind: HeldRecord<Value>["kind"]) =>
      Array.from(changes, ([key, held]) => [key, held?.kind === kind ? held : undefined] as const);
    const touchesMalformed = this.malformed.size > 0 || changes.values().some((held) => held?.kind === "unreadable");
    return new KindSnapshot<Value>(
      revision,
      this.readable.with(among("readable")),
      touchesMalformed ? this.malformed.with(among("unreadable")) : this.malformed,
    );
  }
}
