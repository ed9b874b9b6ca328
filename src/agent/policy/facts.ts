/** What the agent says about its policy work: health and metrics, as text. Pure. */
import { ageOf, type ReplicaStatus, worstOf } from "../../datastore/replica/status.ts";
import { labelsOf, type MetricType, metricText, type Sample } from "../../health/metrics.ts";
import type { HealthReply } from "../../health/pages.ts";
import { identity } from "../../identity.ts";
import type { RefusedClaims } from "../../ipam/refused-claims.ts";
import type { DesiredTable } from "../../policy/table/desired-table.ts";
import type { SummedTraffic } from "./traffic.ts";

export interface PolicyFacts {
  readonly endpoints: number;
  readonly hostEndpoints: number;
  readonly policies: number;
  readonly problems: number;
  /** What annotations of this node's pods say without effect. */
  readonly refusedClaims: readonly RefusedClaims[];
  readonly table: DesiredTable;
  /** Of what policy is made of. */
  readonly datastore: ReplicaStatus;
  /** Of the blocks, from which the routes between nodes are made; absent if there are no other nodes. */
  readonly blocks?: ReplicaStatus | undefined;
  readonly batches: BatchCounts;
  /** Large policies that wait behind the changes of others. */
  readonly waiting: WaitingFacts;
  /** What the rules have counted. Reads all of them from the kernel. */
  readonly traffic: () => SummedTraffic;
  /** The kernel has acknowledged what the datastore said first. */
  readonly isApplied: boolean;
  /** Monotonic milliseconds, as those of the status. */
  readonly now: number;
  /** When the loop last looked at the table. */
  readonly checkedAt: number;
}

export interface BatchCounts {
  readonly count: number;
  readonly milliseconds: number;
  /** How often the whole table was written. */
  readonly replacements: number;
}

export interface WaitingFacts {
  /** Whose policies wait. */
  readonly namespaces: number;
  /** How long the first of them has waited; 0 if none waits. */
  readonly milliseconds: number;
}

/** Users could make up any number of them. */
const MOST_NAMED = 100;
/** A loop that has not looked at its table for this long hangs. */
const HANGING_MILLISECONDS = 30_000;

export function livenessOf({ now, checkedAt }: PolicyFacts): HealthReply {
  const seconds = Math.round((now - checkedAt) / 1_000);
  if (now - checkedAt <= HANGING_MILLISECONDS) return { status: 200, text: "live" };
  return { status: 503, text: `the policy loop has not run for ${seconds} s` };
}

/** A store without changes confirms every 90 seconds that there are none. */
const OLD_MILLISECONDS = 5 * 60_000;

/**
 * Not ready until the rules are set, and while they are those of some minutes ago. Never a question of liveness: the rules
 * are enforced, and a new process would know less. Nor one of the blocks: pods of this node need their rules first, and a role
 * that does not show blocks would keep the agent unready for ever; metrics and alerts tell it.
 */
export function readinessOf({ datastore, isApplied, now }: PolicyFacts): HealthReply {
  const age = ageOf(datastore, now);
  if (isApplied && age <= OLD_MILLISECONDS) return { status: 200, text: "ready" };
  const reason = datastore.state === "in sync" ? undefined : datastore.failure?.message;
  const state = isApplied
    ? `the datastore was last heard ${Math.round(age / 1_000)} s ago`
    : "the rules are not set yet";
  return { status: 503, text: `${state}${reason === undefined ? "" : `: ${reason}`}` };
}

/** In the text format of Prometheus. */
export function metricsText(facts: PolicyFacts): string {
  const { table, batches, now } = facts;
  const datastore = worstOf([facts.datastore, ...(facts.blocks ? [facts.blocks] : [])]);
  let elements = 0;
  for (const set of table.sets.values()) elements += set.elements.size;
  const rows: readonly (readonly [name: string, type: "gauge" | "counter", help: string, value: number])[] = [
    ["endpoints", "gauge", "Workload endpoints of this node", facts.endpoints],
    ["host_endpoints", "gauge", "Host endpoints of this node", facts.hostEndpoints],
    ["policies", "gauge", "Policies in the datastore", facts.policies],
    [
      "policy_problems",
      "gauge",
      "Resources that cannot be read, and policies and profiles that deny because they cannot be carried out",
      facts.problems,
    ],
    ["chains", "gauge", "Chains of the policy table", table.chains.size],
    ["sets", "gauge", "Sets and maps of the policy table", table.sets.size],
    ["set_elements", "gauge", "Elements of all sets and maps", elements],
    ["batches_total", "counter", "Batches that the kernel acknowledged or refused", batches.count],
    ["batch_seconds_total", "counter", "Time that these batches took", batches.milliseconds / 1_000],
    ["table_replacements_total", "counter", "How often the whole table was written", batches.replacements],
    ["waiting_policy_namespaces", "gauge", "Namespaces whose large policies wait", facts.waiting.namespaces],
    [
      "policy_wait_seconds",
      "gauge",
      "How long the first of these namespaces has waited",
      facts.waiting.milliseconds / 1_000,
    ],
    ["datastore_in_sync", "gauge", "1 if the datastore is followed", datastore.state === "in sync" ? 1 : 0],
    ["datastore_lag_seconds", "gauge", "Time without a connection to the datastore", lagOf(datastore, now)],
    [
      "datastore_age_seconds",
      "gauge",
      "Time since the datastore last said something, if only that nothing has changed",
      ageOf(datastore, now) / 1_000,
    ],
  ];
  const plain = rows.map(([name, type, help, value]) => metric(name, type, help, [["", value]]));
  const refused = facts.refusedClaims
    .slice(0, MOST_NAMED)
    .map(({ namespace, pod, refused: claims }) => [labelsOf({ namespace, pod }), claims.length] as const);
  const claims = metric(
    "refused_claims",
    "gauge",
    "Addresses, floating IPs and source prefixes that only annotations of a pod of this node claim: they have no effect",
    refused,
  );
  return [...plain, claims, ...trafficMetrics(facts.traffic())].join("");
}

/** Counters go back to zero when the agent starts or the policy is created again, not when its rules are written again. */
function trafficMetrics({ policies, drops }: SummedTraffic): readonly string[] {
  const ofPolicy = (field: "packets" | "bytes") =>
    policies
      .filter(({ action }) => action !== "log")
      .map(({ policy, direction, action, ...row }) => [labelsOf({ policy, direction, action }), row[field]] as const);
  // A later rule decides about the same packets.
  const logged = (field: "packets" | "bytes") =>
    policies
      .filter(({ action }) => action === "log")
      .map(({ policy, direction, ...row }) => [labelsOf({ policy, direction }), row[field]] as const);
  const dropped = (field: "packets" | "bytes") =>
    drops.map(({ reason, ...row }) => [labelsOf({ reason }), row[field]] as const);
  return [
    metric("policy_packets_total", "counter", "Packets that rules of the policy decided about", ofPolicy("packets")),
    metric("policy_bytes_total", "counter", "Bytes of these packets", ofPolicy("bytes")),
    metric(
      "policy_logged_packets_total",
      "counter",
      "Packets that rules with the action Log of the policy matched",
      logged("packets"),
    ),
    metric("policy_logged_bytes_total", "counter", "Bytes of these packets", logged("bytes")),
    metric(
      "other_dropped_packets_total",
      "counter",
      "Packets dropped because nothing allowed them",
      dropped("packets"),
    ),
    metric("other_dropped_bytes_total", "counter", "Bytes of these packets", dropped("bytes")),
  ];
}

function metric(name: string, type: MetricType, help: string, samples: readonly Sample[]): string {
  return metricText(identity.nodeAgent, { name, type, help }, samples);
}

function lagOf({ state, since }: ReplicaStatus, now: number): number {
  return state === "in sync" ? 0 : Math.max(0, now - since) / 1_000;
}
