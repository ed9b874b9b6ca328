/**
 * Which handles are leaked: all addresses of a handle are unused, and were at every look for the grace period, or its node
 * is gone. Any other finding in between starts the period again. Pure, but for what it remembers between two looks.
 */
import type { NodeAllocation } from "./allocations.ts";
import { type ClusterView, judge } from "./cluster-judge.ts";

export interface LeakCandidate {
  readonly handle: string;
  /** All that the handle holds. */
  readonly allocations: readonly NodeAllocation[];
  readonly reason: string;
  readonly isNodeGone: boolean;
  /** How long it has been unused. */
  readonly milliseconds: number;
  readonly isConfirmed: boolean;
}

export class Candidates {
  /** Since when a handle is unused, by the handle and what it holds: a container that gets another address is another matter. */
  private since = new Map<string, number>();

  /** `graceMilliseconds`: 0 for "never release addresses of existing nodes". */
  look(
    allocations: Iterable<NodeAllocation>,
    view: ClusterView,
    { now, graceMilliseconds }: { readonly now: number; readonly graceMilliseconds: number },
  ): readonly LeakCandidate[] {
    const before = this.since;
    this.since = new Map();
    return Array.from(byHandle(allocations).values()).flatMap((held): LeakCandidate[] => {
      const found = unusedReason(held, view);
      const [first] = held;
      if (found === undefined || first === undefined) return [];
      const identity = identityOf(held);
      const since = before.get(identity) ?? now;
      this.since.set(identity, since);
      const isOver = graceMilliseconds > 0 && now - since >= graceMilliseconds;
      const isConfirmed = found.isNodeGone || isOver;
      return [{ handle: first.handle, allocations: held, ...found, milliseconds: now - since, isConfirmed }];
    });
  }
}

/** `undefined` if any of them is in use, or cannot be judged. */
export function unusedReason(
  held: readonly NodeAllocation[],
  view: ClusterView,
): { readonly reason: string; readonly isNodeGone: boolean } | undefined {
  const judgements = held.map((allocation) => judge(allocation, view));
  const unused = judgements.filter((each) => each.kind === "unused");
  const [first] = unused;
  if (first === undefined || unused.length < judgements.length) return undefined;
  return { reason: first.reason, isNodeGone: unused.every(({ isNodeGone }) => isNodeGone) };
}

function byHandle(allocations: Iterable<NodeAllocation>): ReadonlyMap<string, readonly NodeAllocation[]> {
  return Map.groupBy(allocations, ({ handle }) => handle);
}

function identityOf(held: readonly NodeAllocation[]): string {
  const parts = held.map(({ address, sequenceNumber }) => `${address.value}:${sequenceNumber}`);
  return `${held[0]?.handle} ${parts.toSorted().join(" ")}`;
}
