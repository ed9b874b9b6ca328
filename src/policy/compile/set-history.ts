/** The last changes of a set, for those who were sent its members once and need only what changed since. */

/** Of a longer history the whole set is sent. */
const MOST_REMEMBERED = 4_096;

export interface MemberChanges {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

interface Entry {
  readonly member: string;
  readonly isMember: boolean;
}

export class SetHistory {
  private log: Entry[] = [];
  /** The version before the first entry of the log. */
  private firstVersion = 0;

  /** `members` returns the members of the set now. */
  constructor(readonly members: () => Iterable<string>) {}

  get version(): number {
    return this.firstVersion + this.log.length;
  }

  /** Only if it was not a member. */
  added(member: string): void {
    this.append({ member, isMember: true });
  }

  /** Only if it was a member. */
  removed(member: string): void {
    this.append({ member, isMember: false });
  }

  /** `undefined` if the changes are not remembered any more. */
  changesSince(version: number): MemberChanges | undefined {
    if (version < this.firstVersion) return undefined;
    const changed = new Map<string, boolean>();
    // Additions and removals of a member alternate: the second of a pair undoes the first.
    for (const { member, isMember } of this.log.slice(version - this.firstVersion)) {
      if (!changed.delete(member)) changed.set(member, isMember);
    }
    const membersThat = (isAdded: boolean) =>
      Array.from(changed).flatMap(([member, isMember]) => (isMember === isAdded ? [member] : []));
    return { add: membersThat(true), remove: membersThat(false) };
  }

  private append(entry: Entry): void {
    this.log.push(entry);
    if (this.log.length <= MOST_REMEMBERED) return;
    const dropped = this.log.length - MOST_REMEMBERED / 2;
    this.log = this.log.slice(dropped);
    this.firstVersion += dropped;
  }
}
