/**
 * An immutable map with text keys. A changed map shares everything else with
 * the one before, so a snapshot costs time for what changed, not for its size.
 *
 *   table -> bucket, bucket, bucket ...     each a small Map; a change copies the table of
 *                                           pointers and the buckets of the changed keys
 */
const FIRST_BUCKETS = 16;
const MOST_PER_BUCKET = 32;
const GROWTH = 4;

type Bucket<Value> = ReadonlyMap<string, Value>;

export class PersistentMap<Value> {
  private constructor(
    private readonly buckets: readonly Bucket<Value>[],
    readonly size: number,
  ) {}

  static empty<Value>(): PersistentMap<Value> {
    return new PersistentMap<Value>(emptyBuckets(FIRST_BUCKETS), 0);
  }

  get(key: string): Value | undefined {
    return this.buckets[slotOf(key, this.buckets.length)]?.get(key);
  }

  /** In no particular order. */
  *[Symbol.iterator](): IterableIterator<readonly [string, Value]> {
    for (const bucket of this.buckets) yield* bucket;
  }

  /** A map in which each of the keys has its new value; `undefined` removes the key. */
  with(changes: Iterable<readonly [string, Value | undefined]>): PersistentMap<Value> {
    const buckets = [...this.buckets];
    const copies = new Map<number, Map<string, Value>>();
    let { size } = this;
    for (const [key, value] of changes) {
      const slot = slotOf(key, buckets.length);
      const bucket = copies.get(slot) ?? new Map(buckets[slot]);
      copies.set(slot, bucket);
      buckets[slot] = bucket;
      size -= bucket.size;
      if (value === undefined) bucket.delete(key);
      else bucket.set(key, value);
      size += bucket.size;
    }
    return copies.size === 0 ? this : new PersistentMap(withRoom(buckets, size), size);
  }
}

function emptyBuckets<Value>(count: number): readonly Bucket<Value>[] {
  return new Array(count).fill(new Map());
}

/** `count` is a power of two. */
function slotOf(key: string, count: number): number {
  return Bun.hash.crc32(key) & (count - 1);
}

function withRoom<Value>(buckets: readonly Bucket<Value>[], size: number): readonly Bucket<Value>[] {
  let count = buckets.length;
  while (size > count * MOST_PER_BUCKET) count *= GROWTH;
  if (count === buckets.length) return buckets;
  const spread = Array.from({ length: count }, () => new Map<string, Value>());
  for (const bucket of buckets) {
    for (const [key, value] of bucket) spread[slotOf(key, count)]?.set(key, value);
  }
  return spread;
}
