/** One page of health of a cluster, from what was read of it. Pure. */
import { clusterFindings } from "../../admin/status/cluster-findings.ts";
import { componentStates, nodeStates } from "../../admin/status/cluster-report.ts";
import type { StatusFacts, StatusPart } from "../../admin/status/facts.ts";
import type { StatusFinding } from "../../admin/status/finding.ts";
import { type UpgradeFacts, upgradeStateText } from "../../admin/upgrade/status.ts";
import { counted } from "../../counted.ts";
import { identity } from "../../identity.ts";
import { isUnfinished, type Ledger } from "../../upgrade/engine/ledger.ts";
import type { Health, HealthNode, HealthPart, State, UpgradeProgress } from "../api/health.ts";
import type { KnownAlerts } from "./ask-prometheus.ts";
import { alertsByNode, alertsPart } from "./firing-alerts.ts";
import { gravest, gravestFirst, problemOf, tunnelWords } from "./health-words.ts";

export interface IpamState {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly findings: readonly { readonly severity: string; readonly message: string }[];
  /** By address: why it counts as leaked. */
  readonly leaked: ReadonlyMap<string, string>;
}

export interface ClusterHealthFacts {
  readonly status: StatusFacts;
  /** Absent: the reader may not see all records that it takes, or it was not searched yet. */
  readonly ipam?: IpamState | "too many";
  /** Absent: there is none, or the reader may not see it. */
  readonly upgrade?: UpgradeFacts;
  /** Absent: no Prometheus is asked. */
  readonly alerts?: KnownAlerts;
  /** What else the reader may not see, in words. */
  readonly hidden: readonly string[];
  readonly now: Date;
}

export function clusterHealth({ status, ipam, upgrade, alerts, hidden, now }: ClusterHealthFacts): Health {
  const at = now.getTime();
  const findings = [...clusterFindings(status).filter(isAboutCluster), ...ipamFindings(ipam)];
  const firing = alertsByNode(alerts?.found, nodeStates(status));
  const nodes = nodesOf(status, { findings, firing, at });
  const names = new Set(nodes.map(({ name }) => `node ${name}`));
  const ofCluster = findings.filter(({ subject }) => !names.has(subject)).map((finding) => problemOf(finding));
  const problems = [...ofCluster, ...(firing.get(undefined) ?? [])];
  const parts = [
    ...componentParts(status, at),
    ...recordParts(status, ipam, at),
    ...(alerts === undefined ? [] : alertsPart(alerts.found, alerts.at)),
  ];
  const progress = upgrade?.ledger && progressOf(upgrade.ledger, upgrade, now);
  const states = [...parts, ...nodes, ...problems].map(({ state }) => state);
  return {
    ...{ at, state: gravest(states), parts, nodes: [...nodes], problems: [...gravestFirst(problems)] },
    ...(progress === undefined ? {} : { upgrade: progress }),
    hidden: [...new Set([...unseenTexts(status), ...hidden, ...hiddenAlerts(alerts)])].toSorted(),
  };
}

/** The console is of the cluster's release; a tool of another one is a matter of who calls it. */
function isAboutCluster({ subject }: StatusFinding): boolean {
  return subject !== identity.adminTool;
}

const UNSEEN: Readonly<Record<StatusPart, string>> = {
  installation: "the Installation and the state of its components",
  operator: "the operator",
  agents: "the DaemonSet of node agents",
  "agent pods": "pods of node agents",
  controllers: "the controllers",
  nodes: "nodes",
  pools: "IP pools",
};

function unseenTexts({ unseen = new Set() }: StatusFacts): readonly string[] {
  return [...unseen].map((part) => UNSEEN[part]);
}

function hiddenAlerts(alerts: KnownAlerts | undefined): readonly string[] {
  return alerts?.found.kind === "hidden" ? [alerts.found.what] : [];
}

const COMPONENT_STATES: Readonly<Record<string, State>> = {
  Available: "ok",
  Ready: "ok",
  Progressing: "warning",
  Degraded: "failed",
};

function componentParts(status: StatusFacts, knownAt: number): readonly HealthPart[] {
  return componentStates(status).map(({ name, state, ready, message }) => {
    const [own, wanted] = ready.split("/");
    const pods = ready === "" ? "" : `${own} of ${wanted} ready`;
    const detail = [pods, message === "" && pods === "" ? state.toLowerCase() : message].filter((text) => text !== "");
    const isNone = own === "0" && wanted !== "0";
    return {
      name,
      state: isNone ? "failed" : (COMPONENT_STATES[state] ?? "unknown"),
      detail: detail.join("; "),
      knownAt,
    };
  });
}

function recordParts(status: StatusFacts, ipam: ClusterHealthFacts["ipam"], at: number): readonly HealthPart[] {
  const { kind, problem, clusterVersion, pools } = status.datastore;
  const release = clusterVersion === undefined ? "" : `, release ${clusterVersion}`;
  const datastore: HealthPart = {
    ...{ name: "datastore", state: problem === undefined ? "ok" : "failed", knownAt: at },
    detail: problem ?? `${kind}${release}`,
  };
  const isUnseen = problem !== undefined || status.unseen?.has("pools") === true;
  const used = pools.reduce((sum, pool) => sum + pool.used, 0n);
  const addresses: HealthPart = {
    ...{ name: "addresses", state: "ok", knownAt: at },
    detail: `${counted(pools.length, "pool")}, ${used} in use`,
  };
  return [datastore, ...(isUnseen ? [] : [addresses]), ...(ipam === undefined ? [] : [leaksPart(ipam, at)])];
}

function leaksPart(ipam: IpamState | "too many", at: number): HealthPart {
  const name = "address records";
  if (ipam === "too many")
    return { name, knownAt: at, state: "unknown", detail: `too many to search; use ${identity.adminTool} ipam check` };
  const states = ipamFindings(ipam).map(({ state }) => state);
  const detail = ipam.findings.length === 0 ? "no leaks" : counted(ipam.findings.length, "problem");
  return { name, knownAt: ipam.at, state: gravest(["ok", ...states]), detail };
}

function ipamFindings(ipam: ClusterHealthFacts["ipam"]): readonly StatusFinding[] {
  if (ipam === undefined || ipam === "too many") return [];
  const [first] = ipam.findings.toSorted((left, right) => left.severity.localeCompare(right.severity));
  if (first === undefined) return [];
  const count = ipam.findings.length;
  const message = count === 1 ? first.message : `${counted(count, "problem")}, for example: ${first.message}`;
  const state = first.severity === "corrupt" ? "failed" : "warning";
  return [{ state, subject: "address records", message, remedy: `${identity.adminTool} ipam check` }];
}

interface NodeProblems {
  readonly findings: readonly StatusFinding[];
  readonly firing: ReturnType<typeof alertsByNode>;
  readonly at: number;
}

function nodesOf(status: StatusFacts, { findings, firing, at }: NodeProblems): readonly HealthNode[] {
  const records = new Map(status.datastore.nodes?.map((node) => [node.metadata.name, node]));
  const found = Map.groupBy(findings, ({ subject }) => subject);
  const heard = new Map(status.nodes.map(({ name, isReady, heardAt }) => [name, isReady ? at : (heardAt ?? at)]));
  const seesAgents = status.agents !== undefined && status.unseen?.has("agent pods") !== true;
  return nodeStates(status).map(({ name, isReady, agent, version, addresses, bgp, routingAsOf = at }) => {
    const record = records.get(name);
    const own = (found.get(`node ${name}`) ?? []).map((finding) => problemOf(finding, { withoutSubject: true }));
    const problems = [...own, ...(firing.get(name) ?? [])];
    const ready = isReady ? (seesAgents ? "ok" : "unknown") : "failed";
    return {
      ...{ name, version: version === "unknown" ? "" : version, addresses: [...addresses] },
      state: problems.length === 0 ? ready : gravest(problems.map(({ state }) => state)),
      agent: seesAgents ? agent : "",
      tunnel: record === undefined ? "" : tunnelWords(record),
      bgp,
      // The oldest of what is shown.
      knownAt: Math.min(heard.get(name) ?? at, routingAsOf),
      problems: [...gravestFirst(problems)],
    };
  });
}

/** A complete one is shown for this long. */
const SHOWN_MILLISECONDS = 86_400_000;

const STEP_STATES = {
  pending: "waiting",
  running: "running",
  done: "done",
  "rolling-back": "running",
  "rolled-back": "waiting",
} as const;

function progressOf(ledger: Ledger, { holder }: UpgradeFacts, now: Date): UpgradeProgress | undefined {
  const { from, to, endedAt, steps } = ledger;
  if (!isUnfinished(ledger) && now.getTime() - Date.parse(endedAt ?? "") > SHOWN_MILLISECONDS) return undefined;
  return {
    ...{ from, to, state: upgradeStateText(ledger, holder) },
    steps: steps.map(({ name, state, problem, startedAt, endedAt: ended }) => ({
      name,
      state: problem === undefined ? STEP_STATES[state] : "failed",
      detail: problem ?? (state === "rolled-back" ? "rolled back" : (ended ?? startedAt ?? "")),
    })),
  };
}
