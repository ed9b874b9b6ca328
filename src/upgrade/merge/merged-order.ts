/**
 * The order of a merged list's items: that of the release, or that of the user, if the user has changed it. An item that is not
 * in it comes after the one that it follows in its own list. Pure.
 */
interface Orders {
  readonly base: readonly string[];
  readonly live: readonly string[];
  readonly release: readonly string[];
}

export function mergedOrder({ base, live, release }: Orders): readonly string[] {
  const inLive = new Set(live);
  const inBase = new Set(base);
  const before = base.filter((key) => inLive.has(key));
  const after = live.filter((key) => inBase.has(key));
  const hasReordered = before.some((key, index) => key !== after[index]);
  return hasReordered ? withOthers(live, release) : withOthers(release, live);
}

function withOthers(first: readonly string[], others: readonly string[]): readonly string[] {
  const order = [...first];
  for (const [index, key] of others.entries()) {
    if (order.includes(key)) continue;
    const previous = index === 0 ? -1 : order.indexOf(others[index - 1] ?? "");
    order.splice(previous + 1, 0, key);
  }
  return order;
}
