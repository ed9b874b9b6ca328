/** The pools by prefix: which of them an address or a block lies in. If pools overlap, the longest prefix wins. */
import { addressBits, type Family } from "../ip/address.ts";
import type { Prefix } from "../ip/prefix.ts";
import type { RoutedPool } from "./facts.ts";

interface SameLength {
  readonly length: number;
  /** By the number of the network. */
  readonly pools: ReadonlyMap<bigint, RoutedPool>;
}

export class PoolTable {
  private readonly byKey = new Map<string, RoutedPool>();
  private lengths: Readonly<Record<Family, readonly SameLength[]>> = { 4: [], 6: [] };

  /** `undefined` removes the pool. Returns whether anything has changed. */
  set(key: string, pool: RoutedPool | undefined): boolean {
    if (Bun.deepEquals(this.byKey.get(key), pool)) return false;
    if (pool === undefined) this.byKey.delete(key);
    else this.byKey.set(key, pool);
    this.lengths = { 4: this.sorted(4), 6: this.sorted(6) };
    return true;
  }

  /** In no order. */
  values(): Iterable<RoutedPool> {
    return this.byKey.values();
  }

  /** By name. */
  all(): readonly RoutedPool[] {
    return [...this.byKey.values()].toSorted(byName);
  }

  /** The pool that contains the whole prefix. */
  around({ network, length }: Prefix): RoutedPool | undefined {
    const { family, value } = network;
    for (const same of this.lengths[family]) {
      if (same.length > length) continue;
      const hostBits = BigInt(addressBits(family) - same.length);
      const pool = same.pools.get((value >> hostBits) << hostBits);
      if (pool !== undefined) return pool;
    }
    return undefined;
  }

  /** The longest prefixes first; of two pools with the same prefix, the first by name counts. */
  private sorted(family: Family): readonly SameLength[] {
    const ofFamily = this.all().filter(({ prefix }) => prefix.network.family === family);
    const groups = Map.groupBy(ofFamily.toReversed(), ({ prefix }) => prefix.length);
    return [...groups]
      .toSorted(([left], [right]) => right - left)
      .map(([length, pools]) => ({ length, pools: new Map(pools.map((pool) => [pool.prefix.network.value, pool])) }));
  }
}

function byName(left: RoutedPool, right: RoutedPool): number {
  if (left.name === right.name) return 0;
  return left.name < right.name ? -1 : 1;
}
