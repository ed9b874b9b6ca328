/**
 * Work at rest is zero: if nobody changes anything for a while, nothing is written, nothing in a kernel changes, and
 * nobody asks for anything, but for what is periodical by design.
 */

/** How often something happened since the beginning, by kind and place: `"store write node-1" -> 12`. */
export type WorkCounts = ReadonlyMap<string, number>;

interface Allowance {
  readonly kind: RegExp;
  /** So many milliseconds apart. */
  readonly period: number;
  /** How many come together each time; 1 if absent. */
  readonly times?: number;
  readonly reason: string;
}

/** What an idle cluster does, and why. */
const PERIODICAL: readonly Allowance[] = [
  {
    kind: /^api (read|write) controllers-/,
    period: 1_000,
    reason: "the leader renews its lease, and the others look at it",
  },
  {
    kind: /^store read /,
    period: 10_000,
    reason: "a client of etcd probes the member of a silent watch",
  },
  {
    kind: /^(store|api) read node-/,
    ...{ period: 300_000, times: 20 },
    reason: "the upkeep of the agent reads what it keeps every five minutes",
  },
  {
    kind: /^api read node-/,
    ...{ period: 300_000, times: 20 },
    reason: "the API server ends each watch after five to ten minutes",
  },
];

/** What happened between two moments, more often than is periodical. */
export function workBetween(
  before: WorkCounts,
  after: WorkCounts,
  milliseconds: number,
  allowed: readonly Allowance[] = PERIODICAL,
): readonly string[] {
  return [...after].flatMap(([kind, count]) => {
    const done = count - (before.get(kind) ?? 0);
    const most = allowed
      .filter((each) => each.kind.test(kind))
      .reduce((sum, { period, times = 1 }) => sum + times * (Math.floor(milliseconds / period) + 1), 0);
    if (done <= most) return [];
    return [`${kind}: ${done} times in ${milliseconds / 60_000} minutes at rest, at most ${most} are periodical`];
  });
}
