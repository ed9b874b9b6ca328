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

/** There are tens of thousands of entries: nothing is stored twice. */
export class PlanEntries<Value> {
  private readonly keysBySource = new Map<string, readonly string[]>();
  private readonly winners = new Map<string, Value>();
  /** The source of each winner. */
  private readonly owners = new Map<string, string>();
  /** By source, what others claim for the same key. Usually nothing. */
  private readonly losers = new Map<string, Map<string, Value>>();
  /** What changed entries were before. */
  private readonly before = new Map<string, Value | undefined>();

  /** The entries of the sources that win. Stays the same object, and changes with every `replace`. */
  get entries(): ReadonlyMap<string, Value> {
    return this.winners;
  }

  replace(source: string, entries: Entries<Value>): void {
    const former = this.keysBySource.get(source);
    if (former !== undefined) {
      for (const key of former) if (!entries.some((entry) => entry[0] === key)) this.withdraw(key, source);
    }
    for (const [key, value] of entries) this.claim(key, source, value);
    if (entries.length > 0)
      this.keysBySource.set(
        source,
        Array.from(entries, ([key]) => key),
      );
    else if (former !== undefined) this.keysBySource.delete(source);
  }

  takeChanged(): ReadonlySet<string> {
    const changed = new Set<string>();
    for (const [key, value] of this.before) if (!isSame(this.winners.get(key), value)) changed.add(key);
    this.before.clear();
    return changed;
  }

  private claim(key: string, source: string, value: Value): void {
    const owner = this.owners.get(key) ?? source;
    if (owner < source) {
      this.lose(key, source, value);
      return;
    }
    const former = this.winners.get(key);
    if (owner > source && former !== undefined) this.lose(key, owner, former);
    this.owners.set(key, source);
    this.win(key, value);
  }

  private withdraw(key: string, source: string): void {
    const others = this.losers.get(key);
    if (this.owners.get(key) !== source) {
      others?.delete(source);
    } else {
      const [next] = [...(others?.keys() ?? [])].toSorted();
      this.win(key, next === undefined ? undefined : others?.get(next));
      if (next === undefined) this.owners.delete(key);
      else this.owners.set(key, next);
      if (next !== undefined) others?.delete(next);
    }
    if (others?.size === 0) this.losers.delete(key);
  }

  private win(key: string, value: Value | undefined): void {
    const former = this.winners.get(key);
    if (isSame(former, value)) return;
    if (!this.before.has(key)) this.before.set(key, former);
    if (value === undefined) this.winners.delete(key);
    else this.winners.set(key, value);
  }

  private lose(key: string, source: string, value: Value): void {
    const others = this.losers.get(key);
    if (others === undefined) this.losers.set(key, new Map([[source, value]]));
    else others.set(source, value);
  }
}

function isSame(left: unknown, right: unknown): boolean {
  if (left === undefined || right === undefined) return left === right;
  return Bun.deepEquals(left, right);
}
