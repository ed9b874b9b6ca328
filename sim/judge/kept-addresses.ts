/**
 * Addresses that are kept for a pod's name, and addresses of pools that let them rest:
 *
 *   a kept address is never another pod's           what a container was told is its own until its DEL begins
 *   it is never lost while its owner exists         freed only when the owner has been gone, or nobody came for as long as
 *                                                   it is kept
 *   rest holds                                      nobody gets a released address before, by the clock of the datastore
 *
 * Judged from the blocks and from the truth about owners, not from what the records say of times.
 */
import type { Holding, IpamState } from "./ipam-state.ts";

/** From the decision of a call to its write, which may arrive late. */
export const LATENESS = 120_000;

/** Looks that fail make it longer. */
const LONGEST_SEARCH = 30 * 60_000;

/** A container that runs, and has been told its addresses. */
export interface ToldContainer {
  readonly id: string;
  readonly handle: string;
  readonly isKept: boolean;
  readonly addresses: readonly string[];
}

export interface KeptWorld {
  readonly now: number;
  readonly state: IpamState;
  readonly containers: Iterable<ToldContainer>;
  /** Whether its owner or its pod exists. */
  readonly isWanted: (handle: string) => boolean;
  /** Whether its pod exists and has no addresses yet. */
  readonly isComing: (handle: string) => boolean;
  /** Whether the address is in an enabled pool; absent: all are. What waits in another one is not given again. */
  readonly isEnabled?: (address: string) => boolean;
}

export interface KeptRules {
  readonly keepMilliseconds: number;
  /** For how long an owner must be gone. */
  readonly graceMilliseconds: number;
  /** For how long the address rests; 0: not judged. `former`, `present`: who had it, and who has it now. */
  readonly restOf: (address: string, former: Holding, present: Holding) => number;
}

/** An address that an identity has got once. */
interface Owed {
  readonly handle: string;
  /** Since when nobody uses it. */
  waitsSince?: number;
}

export class KeptAddressJudge {
  private readonly owed = new Map<string, Owed>();
  private readonly freed = new Map<string, { readonly at: number; readonly former: Holding }>();
  private readonly wanted = new Map<string, Since>();
  private readonly coming = new Map<string, Since>();
  private readonly enabled = new Map<string, Since>();
  private last: IpamState | undefined;

  constructor(private readonly rules: KeptRules) {}

  check(world: KeptWorld): readonly string[] {
    const { now, state, containers } = world;
    const found: string[] = [];
    for (const [address, { handle }] of this.owed) {
      noteOf(this.enabled, address).note(world.isEnabled?.(address) !== false, now);
      noteOf(this.wanted, handle).note(world.isWanted(handle), now);
      noteOf(this.coming, handle).note(world.isComing(handle), now);
    }
    if (state.holdings !== this.last?.holdings) {
      found.push(...this.tooEarly(world), ...this.lost(world));
      this.noteFreed(world);
      this.last = state;
    }
    for (const container of containers) {
      for (const address of container.addresses) {
        const holding = state.holdings.get(address);
        if (!isHeldBy(holding, container)) found.push(`${address} of ${container.id} belongs to ${titleOf(holding)}`);
        else if (container.isKept && !this.owed.has(address)) this.owed.set(address, { handle: container.handle });
      }
      if (container.isKept) found.push(...this.notGiven(container));
    }
    return found;
  }

  /** Addresses that it should have got instead. */
  private notGiven({ id, handle, addresses }: ToldContainer): readonly string[] {
    return [...this.owed].flatMap(([address, owed]) => {
      const other = addresses.find((each) => each.includes(":") === address.includes(":"));
      if (owed.handle !== handle || other === undefined || other === address) return [];
      return [`${id} has ${other}, although ${address} is kept for ${handle}`];
    });
  }

  private lost({ now, state }: KeptWorld): readonly string[] {
    return [...this.owed].flatMap(([address, owed]) => {
      const holding = state.holdings.get(address);
      const { handle } = owed;
      if (holding?.handle === handle) {
        if (holding.secondary["containerID"] !== undefined) delete owed.waitsSince;
        else owed.waitsSince ??= now;
        return [];
      }
      this.owed.delete(address);
      const why = this.whyLost(address, owed, now);
      return why === undefined ? [] : [`${address} was lost for ${handle}, which it is kept for: ${why}`];
    });
  }

  /** `undefined` if it may be freed. */
  private whyLost(address: string, { handle, waitsSince }: Owed, now: number): string | undefined {
    const { keepMilliseconds, graceMilliseconds } = this.rules;
    if (waitsSince === undefined) return "a container used it";
    if (noteOf(this.enabled, address).wasFalse(now - LATENESS, now)) return undefined;
    const waited = now - waitsSince;
    const isComing = noteOf(this.coming, handle).isTrueSince(now - LATENESS);
    if (waited >= keepMilliseconds - LATENESS && !isComing) return undefined;
    const wanted = noteOf(this.wanted, handle);
    if (wanted.isTrueSince(now - LATENESS)) return `it has waited for ${seconds(waited)}, and its owner exists`;
    const firstSeen = now - graceMilliseconds + LATENESS;
    return wanted.wasFalse(firstSeen - LONGEST_SEARCH, firstSeen) ? undefined : "its owner has just gone";
  }

  private tooEarly({ now, state }: KeptWorld): readonly string[] {
    return [...this.freed].flatMap(([address, { at, former }]) => {
      const holding = state.holdings.get(address);
      if (holding === undefined || now - at >= this.rules.restOf(address, former, holding) - LATENESS) return [];
      return [`${address} was released ${seconds(now - at)} ago, does not rest, and belongs to ${titleOf(holding)}`];
    });
  }

  private noteFreed({ now, state }: KeptWorld): void {
    for (const address of [...this.freed.keys()]) if (state.holdings.has(address)) this.freed.delete(address);
    for (const [address, former] of this.last?.holdings ?? [])
      if (!state.holdings.has(address)) this.freed.set(address, { at: now, former });
  }
}

/** When something was true. */
class Since {
  private readonly changes: { readonly at: number; readonly isTrue: boolean }[] = [];

  note(isTrue: boolean, now: number): void {
    if (this.changes.at(-1)?.isTrue !== isTrue) this.changes.push({ at: now, isTrue });
  }

  /** All the time from then on. */
  isTrueSince(time: number): boolean {
    const last = this.changes.at(-1);
    return last?.isTrue === true && last.at <= time;
  }

  /** At a moment between these. */
  wasFalse(from: number, to: number): boolean {
    return this.changes.some(
      ({ at, isTrue }, index) =>
        !isTrue && at <= to && (this.changes[index + 1]?.at ?? Number.POSITIVE_INFINITY) >= from,
    );
  }
}

function noteOf(notes: Map<string, Since>, handle: string): Since {
  const note = notes.get(handle) ?? new Since();
  notes.set(handle, note);
  return note;
}

function isHeldBy(holding: Holding | undefined, { id, handle, isKept }: ToldContainer): boolean {
  return holding?.handle === handle && (!isKept || holding.secondary["containerID"] === id);
}

function titleOf(holding: Holding | undefined): string {
  if (holding === undefined) return "nobody";
  const { pod, containerID } = holding.secondary;
  return `${holding.handle} (pod ${pod ?? "?"}, container ${containerID ?? "none"})`;
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1_000).toFixed(1)} s`;
}
