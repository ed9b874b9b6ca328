/** What the controllers say about themselves: health and metrics, as text. Pure. */

import { labelsOf, type MetricType, metricText, type Sample } from "../health/metrics.ts";
import type { HealthReply } from "../health/pages.ts";
import { identity } from "../identity.ts";
import type { IpamUsage } from "./ipam-usage.ts";
import type { CollectorState } from "./leaks/collector.ts";
import type { ControllerState } from "./run-controller.ts";

export interface ControllersReport {
  /** `undefined` until their configuration is known. */
  readonly controllers: readonly ControllerState[] | undefined;
  readonly collector: CollectorState | undefined;
  /** `undefined` until the blocks are known, or if nobody follows them. */
  readonly usage: IpamUsage | undefined;
  readonly isLeading: boolean;
  /** Why nothing is written: the datastore belongs to another cluster. */
  readonly clusterMismatch: string | undefined;
  /** As of the last look, some minutes ago at most. */
  readonly isDatastoreLocked: boolean;
  /** Why nothing is written: a mismatch, or the two could never be compared. */
  readonly unconfirmedCluster: string | undefined;
  /** When the lease was last asked for, in milliseconds. */
  readonly electedAt: number;
  /** Monotonic milliseconds. */
  readonly now: number;
}

/** Every replica asks for the lease all the time, whoever holds it. */
const HANGING_MILLISECONDS = 60_000;

export function livenessOf({ now, electedAt }: ControllersReport): HealthReply {
  const seconds = Math.round((now - electedAt) / 1_000);
  if (now - electedAt <= HANGING_MILLISECONDS) return { status: 200, text: "live" };
  return { status: 503, text: `the lease has not been asked for since ${seconds} s` };
}

/** A standby is ready too: it knows everything, and only does not write. */
export function readinessOf({ controllers, clusterMismatch, unconfirmedCluster }: ControllersReport): HealthReply {
  const unconfirmed = clusterMismatch ?? unconfirmedCluster;
  if (unconfirmed !== undefined) return { status: 503, text: unconfirmed };
  if (controllers === undefined) return { status: 503, text: "the configuration is not known yet" };
  const waiting = controllers.filter(({ isListed }) => !isListed).map(({ name }) => name);
  if (waiting.length === 0) return { status: 200, text: "ready" };
  return { status: 503, text: `not everything is known yet to: ${waiting.join(", ")}` };
}

export function metricsText(report: ControllersReport): string {
  const { controllers = [], collector, usage, isLeading, clusterMismatch, isDatastoreLocked } = report;
  const each = (value: (state: ControllerState) => number): readonly Sample[] =>
    controllers.map((state) => [labelsOf({ controller: state.name }), value(state)]);
  return [
    metric("leader", "gauge", "1 if this process writes", [["", isLeading ? 1 : 0]]),
    metric("cluster_mismatch", "gauge", "1 if nothing is written because the datastore belongs to another cluster", [
      ["", clusterMismatch === undefined ? 0 : 1],
    ]),
    metric("datastore_locked", "gauge", "1 if the datastore is locked, so that no pod starts or ends", [
      ["", isDatastoreLocked ? 1 : 0],
    ]),
    metric(
      "queue_depth",
      "gauge",
      "Keys that wait for work",
      each(({ queueDepth }) => queueDepth),
    ),
    metric(
      "failing_keys",
      "gauge",
      "Keys whose last attempt failed",
      each(({ failingKeys }) => failingKeys),
    ),
    metric(
      "writes_total",
      "counter",
      "Changes that were written",
      each(({ writes }) => writes),
    ),
    metric(
      "errors_total",
      "counter",
      "Attempts that failed",
      each(({ errors }) => errors),
    ),
    metric(
      "held_removals",
      "gauge",
      "Records and addresses that are not removed yet, because they are too many at once",
      [
        ...each(({ heldRemovals }) => heldRemovals),
        ...(collector === undefined ? [] : [[labelsOf({ controller: "leaks" }), collector.heldRemovals] as const]),
      ],
    ),
    ...(collector === undefined ? [] : leakMetrics(collector)),
    ...(usage === undefined ? [] : usageMetrics(usage)),
  ].join("");
}

function leakMetrics({
  candidates,
  overdue,
  releasedAddresses,
  releasedBlocks,
  freedKept,
  errors,
}: CollectorState): readonly string[] {
  return [
    metric("leak_candidates", "gauge", "Handles that look leaked", [["", candidates]]),
    metric(
      "node_addresses_overdue",
      "gauge",
      "Addresses of an existing node that have looked leaked for the grace period, and that it has not released",
      Array.from(overdue, ([node, count]) => [labelsOf({ node }), count]),
    ),
    metric("leaked_addresses_released_total", "counter", "Leaked addresses that were released", [
      ["", releasedAddresses],
    ]),
    metric("block_claims_released_total", "counter", "Claims on blocks that were released", [["", releasedBlocks]]),
    metric("kept_addresses_freed_total", "counter", "Kept addresses that waited for a pod, and were freed", [
      ["", freedKept],
    ]),
    metric("leak_errors_total", "counter", "Looks for leaks that failed", [["", errors]]),
  ];
}

function usageMetrics({ pools, nodes }: IpamUsage): readonly string[] {
  return [
    metric(
      "pool_addresses",
      "gauge",
      "Addresses of the pool",
      pools.map(({ pool, size }) => [labelsOf({ pool }), size]),
    ),
    metric(
      "pool_addresses_in_use",
      "gauge",
      "Addresses of the pool that are assigned",
      pools.map(({ pool, inUse }) => [labelsOf({ pool }), inUse]),
    ),
    metric(
      "pool_addresses_kept",
      "gauge",
      "Those of them that are kept for a pod: in use, and waiting for it",
      pools.flatMap(({ pool, kept, waiting }) => [
        [labelsOf({ pool, state: "in use" }), kept - waiting] as const,
        [labelsOf({ pool, state: "waiting" }), waiting] as const,
      ]),
    ),
    metric(
      "pool_addresses_resting",
      "gauge",
      "Addresses of the pool that were released, and rest before another owner gets them",
      pools.map(({ pool, resting }) => [labelsOf({ pool }), resting]),
    ),
    metric(
      "node_addresses_in_use",
      "gauge",
      "Addresses that are assigned on the node",
      nodes.map(({ node, inUse }) => [labelsOf({ node }), inUse]),
    ),
    metric(
      "node_addresses_borrowed",
      "gauge",
      "Those of them in blocks of other nodes",
      nodes.map(({ node, borrowed }) => [labelsOf({ node }), borrowed]),
    ),
    metric(
      "node_blocks",
      "gauge",
      "Blocks of the node",
      nodes.map(({ node, blocks }) => [labelsOf({ node }), blocks]),
    ),
  ];
}

function metric(name: string, type: MetricType, help: string, samples: readonly Sample[]): string {
  return metricText(identity.controllers, { name, type, help }, samples);
}
