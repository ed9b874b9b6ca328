/**
 * Work at rest is zero: if nobody changes anything for a while, nothing is written but the lease of the leader, nothing
 * in a kernel changes, and nobody asks for anything, but for what is periodical by design. Each period is the product's.
 */
import { REFRESH_MILLISECONDS } from "../../src/agent/node-record/follow-node-record.ts";
import { UPKEEP_MILLISECONDS } from "../../src/agent/upkeep/upkeep-part.ts";
import { COMPARISON_MILLISECONDS } from "../../src/controllers/cluster-gate.ts";
import { pauseBetweenLists } from "../../src/controllers/leaks/orphaned-handles.ts";
import { WATCH_LIMITS } from "../../src/datastore/etcd/watch.ts";
import { WATCH_SECONDS } from "../../src/kube/client.ts";
import { LEASE_TIMES } from "../../src/kube/election/lease.ts";
import { millisecondsOf } from "../../src/model/duration.ts";
import { TUNNEL_ADDRESSES } from "../../src/model/tunnel-address.ts";
import { CONTROLLER_SETTINGS } from "../run/settings.ts";

/** How often something happened since the beginning: `"store: write by agent at node-1 /key" -> 12`. */
export type WorkCounts = ReadonlyMap<string, number>;

interface Allowance {
  readonly kind: RegExp;
  /** So many milliseconds apart. */
  readonly period: number;
  /** How many come together each time; 1 if absent. */
  readonly times?: number;
  readonly reason: string;
}

/** The agent follows blocks apart from everything else, and the controllers their settings or the orchestrator's objects. */
const COPIES = 2;

/** What an idle cluster does with one object, and why. */
const PERIODICAL: readonly Allowance[] = [
  {
    kind: /^api: lease by controllers-/,
    ...{ period: LEASE_TIMES.retryMilliseconds, times: 2 },
    reason: "the leader looks at its lease and renews it, and the others look at it",
  },
  {
    kind: /^store: probe by (agent|controllers-)/,
    ...{ period: WATCH_LIMITS.quietMilliseconds, times: COPIES },
    reason: "a client of etcd probes the member of a silent watch",
  },
  {
    kind: /^store: watch by (agent|controllers-)/,
    ...{ period: WATCH_LIMITS.quietMilliseconds * WATCH_LIMITS.mostQuietTimes, times: COPIES },
    reason: "a watch that is silent for long is opened again",
  },
  {
    kind: /^store: read by controllers-/,
    period: WATCH_LIMITS.quietMilliseconds * WATCH_LIMITS.mostQuietTimes,
    reason: "if the history was forgotten while it was silent, everything is read again",
  },
  {
    kind: /^(store|api): read by controllers-.*handle/,
    period: pauseBetweenLists(millisecondsOf(CONTROLLER_SETTINGS.running.controllers.node?.leakGracePeriod ?? "0s")),
    reason: "where records are written one at a time, the controllers look for handles without an address",
  },
  {
    kind: /^(store|api): read by controllers-.*(kube-system|clusterinformation)/,
    period: COMPARISON_MILLISECONDS,
    reason: "the controllers compare the cluster with the one that the datastore is recorded for",
  },
  {
    kind: /^api: watch by (agent|calls|controllers-)/,
    ...{ period: 1_000 * WATCH_SECONDS.shortest, times: COPIES },
    reason: "the API server ends each watch after the time that the client asks for",
  },
  {
    kind: /^(store|api): read by agent at node-/,
    // Its registration and its search for leaks read some of the same records.
    ...{ period: UPKEEP_MILLISECONDS, times: 2 },
    reason: "the upkeep of the agent looks at what it keeps",
  },
  {
    kind: /^(store|api): read by agent at node-/,
    // It asks for each of them, and if a pool is disabled all of them may be in one block.
    ...{ period: REFRESH_MILLISECONDS, times: TUNNEL_ADDRESSES.length },
    reason: "the agent looks now and then whether the tunnel addresses of its node are still its own",
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
