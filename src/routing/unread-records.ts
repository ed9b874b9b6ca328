/**
 * The records that could not be read when the agent started, and not since. Pure.
 *
 * What a former agent has set in the kernel because of them is not known, so nothing may be removed as stale. A record
 * that becomes unreadable later keeps its last value, and one that is new has nothing in the kernel yet.
 */

interface Change {
  readonly kind: "put" | "delete" | "unreadable";
  readonly key: string;
}

/** More names would not help. */
const LISTED = 3;

export class UnreadRecords {
  private readonly known = new Set<string>();
  private current: ReadonlySet<string> = new Set();

  get keys(): ReadonlySet<string> {
    return this.current;
  }

  /** The first call for a kind has all its records. Returns whether there are others than before. */
  note(kind: string, changes: readonly Change[] | undefined): boolean {
    if (changes === undefined) return false;
    const isFirst = this.known.size < this.known.add(kind).size;
    const before = this.current;
    const unreadable = changes.filter((change) => change.kind === "unreadable").map(({ key }) => key);
    const read = new Set(changes.filter((change) => change.kind !== "unreadable").map(({ key }) => key));
    this.current = before.difference(read).union(new Set(isFirst ? unreadable : []));
    return this.current.size !== before.size;
  }
}

/** `undefined` if there are none. */
export function describeUnread(keys: ReadonlySet<string>): string | undefined {
  if (keys.size === 0) return undefined;
  const names = [...keys].toSorted();
  const listed = names.slice(0, LISTED).map((key) => `"${key}"`);
  const rest = names.length - listed.length;
  const all = `${listed.join(", ")}${rest === 0 ? "" : ` and ${rest} more`}`;
  return `Stale routes, tunnels and senders are not removed, because records cannot be read since the agent started: ${all}; repair or delete them`;
}
