/**
 * Which handles look leaked: all addresses of a handle are unused. If its node is gone, nobody can use them. While the
 * node exists, only its own host sees whether the container runs: it releases them (find.ts), and a handle that was unused
 * at every look for the grace period is overdue. Any other finding in between, and any other reason, starts the period
 * again. Pure, but for what it remembers between two looks.
 */
import type { NodeAllocation } from "./allocations.ts";
import { type ClusterView, judge } from "./cluster-judge.ts";
import { type LookTime, UnusedSince } from "./unused-since.ts";

export interface LeakCandidate {
  readonly handle: string;
  /** All that the handle holds; of one that keeps addresses for an identity, what one container uses. */
  readonly allocations: readonly NodeAllocation[];
  readonly reason: string;
  readonly isNodeGone: boolean;
  /** How long it has been unused; `undefined` if that is not known. */
  readonly milliseconds: number | undefined;
  /** Unused for the grace period on a node that exists, and not released by its host: it is dead, or the container runs. */
  readonly isOverdue: boolean;
}

export class Candidates {
  /** By the handle, what it holds and the reason: another address, or another reason, is another matter. */
  private readonly since = new UnusedSince();

  /** `graceMilliseconds`: 0 if nothing is ever overdue. */
  look(allocations: Iterable<NodeAllocation>, view: ClusterView, time: LookTime): readonly LeakCandidate[] {
    const { graceMilliseconds } = time;
    const found = findCandidates(allocations, view, { graceMilliseconds, ageOf: () => undefined });
    const ages = this.since.look(found.map(identityOf), time);
    return found.map((candidate, index) => withAge(candidate, ages[index], graceMilliseconds));
  }
}

interface Grace {
  readonly graceMilliseconds: number;
  /** How long a handle has been unused; `undefined` if that is not known: it is then never overdue. */
  readonly ageOf: (held: readonly NodeAllocation[]) => number | undefined;
}

export function findCandidates(
  allocations: Iterable<NodeAllocation>,
  view: ClusterView,
  { graceMilliseconds, ageOf }: Grace,
): readonly LeakCandidate[] {
  return Array.from(Map.groupBy(allocations, useOf).values()).flatMap((held): LeakCandidate[] => {
    const found = unusedReason(held, view);
    const [first] = held;
    if (found === undefined || first === undefined) return [];
    return [withAge({ handle: first.handle, allocations: held, ...found }, ageOf(held), graceMilliseconds)];
  });
}

/** How long ago the last address of a handle was assigned, for a search without a memory. */
export function sinceAssigned(held: readonly NodeAllocation[], now: Date): number | undefined {
  const times = held.map(({ assignedAt }) => assignedAt?.getTime());
  const known = times.filter((time) => time !== undefined);
  return known.length < times.length ? undefined : now.getTime() - Math.max(...known);
}

function withAge(
  candidate: Omit<LeakCandidate, "milliseconds" | "isOverdue">,
  milliseconds: number | undefined,
  graceMilliseconds: number,
): LeakCandidate {
  const isOver = graceMilliseconds > 0 && milliseconds !== undefined && milliseconds >= graceMilliseconds;
  return { ...candidate, milliseconds, isOverdue: !candidate.isNodeGone && isOver };
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

/** What is kept for one identity, containers of several nodes may use under the same handle. */
function useOf({ handle, node, containerId, isKept }: NodeAllocation): string {
  return isKept ? `${handle} ${node} ${containerId}` : handle;
}

function identityOf({ handle, allocations, reason }: LeakCandidate): string {
  const parts = allocations.map(
    ({ address, sequenceNumber }) => `${address.family}/${address.value}:${sequenceNumber}`,
  );
  return `${handle} ${parts.toSorted().join(" ")} ${reason}`;
}
