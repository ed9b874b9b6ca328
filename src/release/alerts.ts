/**
 * Alert rules for Prometheus: a plain rules file, whose `groups` are also those of a PrometheusRule. `deploy/alerts/` is
 * generated from this file. Each alert has a heading in docs/alerts.md.
 */

import type { Identity } from "../identity.ts";
import { formatYaml } from "../yaml.ts";

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: "warning" | "critical" };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

interface Alert {
  readonly name: string;
  readonly expression: string;
  readonly lasting: string;
  readonly severity: "warning" | "critical";
  readonly summary: string;
  /** A heading of docs/alerts.md. */
  readonly heading: string;
}

export function alertsName({ product }: Identity): string {
  return `${product}-alerts`;
}

export function alertsManifest(names: Identity): string {
  return `# Alert rules for Prometheus; see docs/alerts.md.\n# Generated from src/release/alerts.ts.\n${formatYaml({ groups: alertGroups(names) })}`;
}

export function alertGroups(
  names: Identity,
): readonly { readonly name: string; readonly rules: readonly AlertRule[] }[] {
  const title = names.product.charAt(0).toUpperCase() + names.product.slice(1);
  const ruleOf = ({ name, expression, lasting, severity, summary, heading }: Alert): AlertRule => ({
    alert: `${title}${name}`,
    expr: expression,
    for: lasting,
    labels: { severity },
    annotations: { summary, runbook: `docs/alerts.md#${heading}` },
  });
  return [
    { name: `${names.product}-ipam`, rules: ipamAlerts(metricOf(names.controllers)).map(ruleOf) },
    { name: names.controllers, rules: controllerAlerts(metricOf(names.controllers)).map(ruleOf) },
    { name: names.nodeAgent, rules: agentAlerts(metricOf(names.nodeAgent)).map(ruleOf) },
  ];
}

type MetricName = (name: string) => string;

function metricOf(program: string): MetricName {
  return (name) => `${program.replaceAll("-", "_")}_${name}`;
}

/** Every replica of the controllers reports the pools: the largest value counts. */
function ipamAlerts(metric: MetricName): readonly Alert[] {
  const inUse = `max by (pool) (${metric("pool_addresses_in_use")})`;
  const size = `max by (pool) (${metric("pool_addresses")})`;
  const heading = "a-pool-runs-full";
  return [
    {
      name: "PoolFillsUp",
      expression: `${inUse} / ${size} > 0.8`,
      lasting: "15m",
      severity: "warning",
      summary: "More than 80 % of the addresses of pool {{ $labels.pool }} are in use",
      heading,
    },
    {
      name: "PoolNearlyFull",
      expression: `${inUse} / ${size} > 0.95`,
      lasting: "5m",
      severity: "critical",
      summary: "More than 95 % of the addresses of pool {{ $labels.pool }} are in use",
      heading,
    },
    {
      name: "PoolFull",
      expression: `${inUse} >= ${size}`,
      lasting: "1m",
      severity: "critical",
      summary: "All addresses of pool {{ $labels.pool }} are in use: pods that need one do not start",
      heading,
    },
    {
      name: "LeakCandidatesGrow",
      expression: `min_over_time(${metric("leak_candidates")}[1h]) > 0 and delta(${metric("leak_candidates")}[1h]) > 0`,
      lasting: "1h",
      severity: "warning",
      summary: "Addresses leak faster than they are released",
      heading: "leak-candidates-grow",
    },
    {
      name: "AddressesOverdue",
      expression: `max by (node) (${metric("node_addresses_overdue")}) > 0`,
      lasting: "30m",
      severity: "warning",
      summary: "Node {{ $labels.node }} does not release {{ $value }} addresses whose pods are gone",
      heading: "a-node-does-not-release-addresses",
    },
  ];
}

function controllerAlerts(metric: MetricName): readonly Alert[] {
  // A standby does not work on its queue.
  const leads = `on (instance) ${metric("leader")} == 1`;
  return [
    {
      name: "ControllersWithoutLeader",
      expression: `(max(${metric("leader")}) or vector(0)) < 1`,
      lasting: "5m",
      severity: "critical",
      summary: "No process of the controllers writes",
      heading: "the-controllers-have-no-leader",
    },
    {
      name: "DatastoreOfAnotherCluster",
      expression: `max(${metric("cluster_mismatch")}) > 0`,
      lasting: "1m",
      severity: "critical",
      summary: "The datastore belongs to another cluster: the controllers write nothing",
      heading: "the-datastore-belongs-to-another-cluster",
    },
    {
      name: "DatastoreLocked",
      expression: `max(${metric("datastore_locked")}) > 0`,
      lasting: "15m",
      severity: "critical",
      summary: "The datastore is locked: no pod starts or ends",
      heading: "the-datastore-is-locked",
    },
    {
      name: "RemovalsHeld",
      expression: `max by (controller) (${metric("held_removals")} and ${leads}) > 0`,
      lasting: "1m",
      severity: "critical",
      summary: "Controller {{ $labels.controller }} would remove {{ $value }} records or addresses at once, and waits",
      heading: "many-removals-are-held",
    },
    {
      name: "ControllerQueueDoesNotShrink",
      expression: `min_over_time(${metric("queue_depth")}[15m]) > 0 and delta(${metric("queue_depth")}[15m]) >= 0 and ${leads}`,
      lasting: "15m",
      severity: "warning",
      summary: "The queue of controller {{ $labels.controller }} does not shrink",
      heading: "a-queue-does-not-shrink",
    },
    {
      name: "ControllerKeysFail",
      expression: `min_over_time(${metric("failing_keys")}[15m]) > 0`,
      lasting: "15m",
      severity: "warning",
      summary: "Controller {{ $labels.controller }} fails again and again for {{ $value }} objects",
      heading: "a-queue-does-not-shrink",
    },
  ];
}

function agentAlerts(metric: MetricName): readonly Alert[] {
  return [
    {
      name: "NodeAgentNotInSync",
      expression: `${metric("datastore_in_sync")} == 0`,
      lasting: "5m",
      severity: "warning",
      summary: "The node agent {{ $labels.instance }} does not follow the datastore: policy there is out of date",
      heading: "a-node-agent-is-not-in-sync",
    },
    {
      name: "NodeAgentKnowledgeOld",
      expression: `${metric("datastore_age_seconds")} > 300`,
      lasting: "1m",
      severity: "warning",
      summary: "The node agent {{ $labels.instance }} last heard of the datastore {{ $value }} seconds ago",
      heading: "a-node-agent-hears-nothing",
    },
    {
      name: "PolicyProblems",
      expression: `${metric("policy_problems")} > 0`,
      lasting: "5m",
      severity: "warning",
      summary: "{{ $value }} policies or profiles on {{ $labels.instance }} deny because they cannot be carried out",
      heading: "policies-cannot-be-carried-out",
    },
  ];
}
