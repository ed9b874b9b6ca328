/** The status of a cluster as text and as JSON. Pure. */
import { identity } from "../../identity.ts";
import type { Page } from "../terminal/page.ts";
import type { Paint } from "../terminal/paint.ts";
import { formatTable } from "../terminal/table.ts";
import type { AgentPod, Condition, PoolState, StatusFacts, Workload } from "./facts.ts";
import { isFailure, type StatusFinding } from "./finding.ts";
import { bgpWords, routingAsOf } from "./node-routing.ts";

export function clusterStatusText(facts: StatusFacts, findings: readonly StatusFinding[], page: Page): string {
  const { datastore, toolVersion } = facts;
  return [
    `Installed:   ${installedBy(facts)}\n`,
    `Versions:    cluster ${datastore.clusterVersion ?? "unknown"}, ${identity.adminTool} ${toolVersion}\n`,
    `Datastore:   ${datastore.kind}\n`,
    section(["COMPONENT", "STATE", "READY", "IMAGE", "MESSAGE"], componentRows(facts), page),
    nodeSection(facts, page),
    section(["POOL", "CIDR", "SIZE", "USED", "FREE", "STATE"], poolRows(facts), page),
    ...findingLines(findings, page.paint),
  ].join("");
}

/** `leaveOutFirst`: columns that a narrow terminal can best do without. */
export function section(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  page: Page,
  leaveOutFirst: readonly string[] = [],
): string {
  return rows.length === 0 ? "" : `\n${formatTable(header, rows, page, { leaveOutFirst })}`;
}

function installedBy({ installation, agents }: StatusFacts): string {
  if (installation !== undefined) return `by ${identity.operator}`;
  return agents === undefined ? "no pods of node agents" : `by a manifest, in namespace ${agents.namespace}`;
}

export interface ComponentState {
  readonly name: string;
  /** `Available`, `Progressing`, `Degraded`, `Ready` or `Unknown`. */
  readonly state: string;
  /** `2/3`; empty if it has no pods of its own. */
  readonly ready: string;
  readonly image: string;
  readonly message: string;
}

export function componentStates(facts: StatusFacts): readonly ComponentState[] {
  const { components, operator, agents, controllers, console: webConsole, installation } = facts;
  const workloads = new Map<string, Workload>();
  if (agents !== undefined) workloads.set("node", agents);
  if (controllers !== undefined) workloads.set("controllers", controllers);
  if (webConsole !== undefined) workloads.set("console", webConsole);
  const names = [...new Set([...components.keys(), ...workloads.keys()])].sort();
  return [
    ...(operator === undefined ? [] : [workloadState("operator", operator, undefined)]),
    ...(installation === undefined || components.has("installation")
      ? []
      : [workloadState("installation", undefined, installation.conditions)]),
    ...names.map((name) => workloadState(name, workloads.get(name), components.get(name))),
  ];
}

function componentRows(facts: StatusFacts) {
  return componentStates(facts).map(({ name, state, ready, image, message }) => [name, state, ready, image, message]);
}

function workloadState(
  name: string,
  workload: Workload | undefined,
  conditions: readonly Condition[] | undefined,
): ComponentState {
  const ready = workload === undefined ? "" : `${workload.ready}/${workload.desired}`;
  const isWhole = workload === undefined || workload.ready >= workload.desired;
  const state = conditions === undefined ? (isWhole ? "Available" : "Progressing") : stateOf(conditions);
  return { name, state, ready, image: workload?.image ?? "", message: messageOf(conditions ?? []) };
}

const STATES = ["Degraded", "Progressing", "Available", "Ready"] as const;

/** The one that matters most of those that are true. */
function stateOf(conditions: readonly Condition[]): string {
  return trueCondition(conditions)?.type ?? "Unknown";
}

function messageOf(conditions: readonly Condition[]): string {
  const { type, message = "" } = trueCondition(conditions) ?? {};
  return type === "Degraded" || type === "Progressing" ? message : "";
}

function trueCondition(conditions: readonly Condition[]): Condition | undefined {
  const isTrue = (type: string) => conditions.find((each) => each.type === type && each.status === "True");
  return STATES.map(isTrue).find((condition) => condition !== undefined);
}

export interface NodeState {
  readonly name: string;
  readonly isReady: boolean;
  readonly agent: string;
  readonly version: string;
  readonly restarts: number | undefined;
  readonly addresses: readonly string[];
  /** `AS 64512, 3 of 4 sessions established`; empty if nothing is known of BGP. */
  readonly bgp: string;
  /** Milliseconds since 1970: what is known of routes is not newer. Absent: it is of now. */
  readonly routingAsOf?: number;
}

export function nodeStates(facts: StatusFacts): readonly NodeState[] {
  const { nodes, agentPods, agents, datastore } = facts;
  const versions = new Map(datastore.agents.map(({ node, version }) => [node, version]));
  const records = new Map(datastore.nodes?.map((record) => [record.metadata.name, record]));
  return nodes.map((node) => {
    const { name, isReady, addresses } = node;
    const record = records.get(name);
    const asOf = record && routingAsOf(record, node, facts);
    const pod = agentPods.find((each) => each.node === name);
    const version = versions.get(name) ?? tagOf(pod) ?? "unknown";
    const agent = pod === undefined ? (agents === undefined ? "not a pod" : "missing") : agentWord(pod);
    return {
      ...{ name, isReady, agent, version, restarts: pod?.restarts, addresses },
      bgp: record === undefined ? "" : bgpWords(record, asOf),
      ...(asOf === undefined ? {} : { routingAsOf: asOf.getTime() }),
    };
  });
}

function agentWord({ isReady }: AgentPod): string {
  return isReady ? "ready" : "not ready";
}

function tagOf(pod: AgentPod | undefined): string | undefined {
  return /:([^/:]+)$/.exec(pod?.image ?? "")?.[1];
}

/** Without BGP there is no column of it. */
function nodeSection(facts: StatusFacts, page: Page): string {
  const states = nodeStates(facts);
  const hasBgp = states.some(({ bgp }) => bgp !== "");
  const header = ["NODE", "READY", "AGENT", "VERSION", "RESTARTS", "ADDRESSES", ...(hasBgp ? ["BGP"] : [])];
  const rows = states.map((state) => [...nodeRow(state), ...(hasBgp ? [state.bgp] : [])]);
  return section(header, rows, page);
}

function nodeRow({ name, isReady, agent, version, restarts, addresses }: NodeState): readonly string[] {
  return [
    name,
    isReady ? "yes" : "no",
    agent,
    version,
    restarts === undefined ? "" : String(restarts),
    addresses.join(", "),
  ];
}

export function poolRows({ datastore }: Pick<StatusFacts, "datastore">) {
  return datastore.pools.map(({ name, cidr, size, used, free, disabled }) => [
    name,
    cidr,
    String(size),
    String(used),
    String(free),
    disabled ? "disabled" : "enabled",
  ]);
}

/** For people: each finding, with what to do about it. */
export function findingLines(findings: readonly StatusFinding[], { red, yellow, green }: Paint): readonly string[] {
  if (findings.length === 0) return [`\n${green("Everything is well.")}\n`];
  return [
    "\n",
    ...findings.flatMap((finding) => [
      `${isFailure(finding) ? red("failed:") : yellow("warning:")} ${finding.subject}: ${finding.message}\n`,
      ...(finding.remedy === undefined ? [] : [`  what to do: ${finding.remedy}\n`]),
    ]),
  ];
}

export function clusterStatusJson(facts: StatusFacts, findings: readonly StatusFinding[]): object {
  const { toolVersion, datastore, operator, agents, controllers, components, installation } = facts;
  return {
    ok: !findings.some(isFailure),
    scope: "cluster",
    installedBy: installation === undefined ? (agents === undefined ? "none" : "manifest") : "operator",
    toolVersion,
    clusterVersion: datastore.clusterVersion ?? null,
    datastore: datastore.kind,
    workloads: [operator, agents, controllers, facts.console].filter((each) => each !== undefined),
    conditions: {
      ...(installation === undefined ? {} : { installation: installation.conditions }),
      ...Object.fromEntries(components),
    },
    nodes: nodeStates(facts),
    pools: poolsJson(datastore.pools),
    findings,
  };
}

/** Sizes of IPv6 pools exceed what a JSON number can hold: they are strings. */
export function poolsJson(pools: readonly PoolState[]): readonly object[] {
  return pools.map((pool) => ({
    ...pool,
    size: String(pool.size),
    used: String(pool.used),
    free: String(pool.free),
  }));
}
