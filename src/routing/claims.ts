/**
 * Entries of the plan, and the facts that they follow from.
 *
 *   source "block 10.0.0.0/26" ──┬─▶ "10.0.0.0/26"   route to node-2
 *                                └─▶ "10.0.0.5/32"   route to node-3
 *   source "node node-4" ─────────▶ "10.0.0.5/32"   claimed twice: the first source in the order of the text wins
 *
 * A source replaces all its entries at once. What differs from the last call of `takeChanged` is known without a
 * comparison of everything; an entry that was changed and changed back is not reported.
 */
type Entries<Value> = readonly (readonly [key: string, value: Value])[];

export class Claims<Value> {
  private readonly bySource = new Map<string, Entries<Value>>();
  /** The source of each entry; all of them, in order, if there are several. */
  private readonly sources = new Map<string, string | readonly string[]>();
  private readonly winners = new Map<string, Value>();
  /** What changed entries were before. */
  private readonly before = new Map<string, Value | undefined>();

  /** The entries of the sources that win. Stays the same object, and changes with every `replace`. */
  get entries(): ReadonlyMap<string, Value> {
    return this.winners;
  }

  /** The keys of a source must be different. */
  replace(source: string, entries: Entries<Value>): void {
    const former = this.bySource.get(source) ?? [];
    if (former.length === 0 && entries.length === 0) return;
    if (entries.length === 0) this.bySource.delete(source);
    else this.bySource.set(source, entries);
    const present = new Set(entries.map(([key]) => key));
    for (const [key] of former) if (!present.has(key)) this.settle(key, withoutSource(this.sources.get(key), source));
    for (const [key] of entries) this.settle(key, withSource(this.sources.get(key), source));
  }

  takeChanged(): ReadonlySet<string> {
    const changed = new Set<string>();
    for (const [key, value] of this.before) if (!Bun.deepEquals(this.winners.get(key), value)) changed.add(key);
    this.before.clear();
    return changed;
  }

  private settle(key: string, sources: string | readonly string[] | undefined): void {
    if (sources === undefined) this.sources.delete(key);
    else this.sources.set(key, sources);
    const first = typeof sources === "object" ? sources[0] : sources;
    const value = first === undefined ? undefined : this.bySource.get(first)?.find((entry) => entry[0] === key)?.[1];
    const former = this.winners.get(key);
    if (Bun.deepEquals(former, value)) return;
    if (!this.before.has(key)) this.before.set(key, former);
    if (value === undefined) this.winners.delete(key);
    else this.winners.set(key, value);
  }
}

function withSource(sources: string | readonly string[] | undefined, source: string): string | readonly string[] {
  if (sources === undefined || sources === source) return source;
  const several = typeof sources === "string" ? [sources] : sources;
  return several.includes(source) ? several : [...several, source].toSorted();
}

function withoutSource(sources: string | readonly string[] | undefined, source: string) {
  if (sources === undefined || sources === source) return undefined;
  if (typeof sources === "string") return sources;
  const others = sources.filter((each) => each !== source);
  return others.length === 1 ? others[0] : others;
}
