/** Reproducible random numbers: the same seed gives the same numbers from 0 to 1 (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A new array in random order (Fisher-Yates). */
export function shuffled<T>(values: readonly T[], random: () => number): readonly T[] {
  const order = [...values];
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    const moved = order[last];
    const taken = order[other];
    if (moved === undefined || taken === undefined) continue;
    order[last] = taken;
    order[other] = moved;
  }
  return order;
}
