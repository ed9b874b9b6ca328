/** The tables of docs/scale.md. Pure. */
import { SIZES } from "./charts.ts";
import { medianOf } from "./fit.ts";
import type {
  AgentAtScale,
  ApiFanOut,
  ApiRestart,
  FanOut,
  ManyAgents,
  Measured,
  PhaseName,
  RealAgents,
  Spent,
  Tenants,
} from "./measured.ts";
import { type Costs, podsOf, predict } from "./model.ts";

type Rows = readonly (readonly string[])[];

/** One column for each measured cluster. */
export function agentTable(agents: readonly AgentAtScale[]): string {
  const row = (title: string, of: (agent: AgentAtScale) => string) => [title, ...agents.map(of)];
  const spent = (of: (agent: AgentAtScale) => Spent) => (agent: AgentAtScale) => {
    const { wallMilliseconds, agentMilliseconds, etcdMilliseconds } = of(agent);
    return `${seconds(wallMilliseconds)} (${seconds(agentMilliseconds)}, ${seconds(etcdMilliseconds)})`;
  };
  const changes = (of: (agent: AgentAtScale) => readonly Spent[]) => (agent: AgentAtScale) => {
    const each = of(agent);
    const wall = each.map(({ wallMilliseconds }) => wallMilliseconds);
    const cpu = medianOf(each.map(({ agentMilliseconds }) => agentMilliseconds));
    return `${milliseconds(medianOf(wall))} (least ${milliseconds(Math.min(...wall))}; CPU ${milliseconds(cpu)})`;
  };
  return table([
    ["", ...agents.map(({ size }) => `${whole(size.nodes)} nodes`)],
    row("pods, policies", (agent) => `${whole(podsOf(agent))}, ${whole(agent.size.policies)}`),
    row("records, MB", ({ records }) => `${whole(records.count)}, ${whole(records.bytes / 1e6)}`),
    row("routes, elements of sets in the kernel", ({ kernel }) => `${whole(kernel.routes)}, ${whole(kernel.elements)}`),
    row(
      "first convergence: time (CPU of the agent, of etcd)",
      spent(({ first }) => first),
    ),
    row(
      "restart with everything in the kernel",
      spent(({ restart }) => restart),
    ),
    row("memory settled (peak until then)", ({ memory: { settled } }) => {
      return `${megabytes(settled.residentBytes)} (${megabytes(settled.peakBytes)})`;
    }),
    row("idle: CPU of one core", ({ idle }) => percent(idle.agentMilliseconds / 1_000 / idle.seconds)),
    row(
      "a pod comes that a local policy allows",
      changes((agent) => agent.changes.allowedPod),
    ),
    row(
      "a policy of a local pod changes",
      changes((agent) => agent.changes.policy),
    ),
    row(
      "a node joins",
      changes((agent) => agent.changes.node),
    ),
    row("a pod comes that no local policy allows: CPU", ({ changes: { unrelatedPods } }) =>
      milliseconds(unrelatedPods.agentMilliseconds / unrelatedPods.count),
    ),
    row(
      "a third of the nodes fails",
      spent(({ zone }) => zone.fails),
    ),
    row(
      "it returns",
      spent(({ zone }) => zone.returns),
    ),
    row("memory after it returned", ({ zone }) => megabytes(zone.returns.residentBytes)),
    row("a rolling upgrade of all other agents: CPU per node", ({ upgrade }) =>
      milliseconds(upgrade.agentMilliseconds / upgrade.nodes),
    ),
  ]);
}

const PHASES: readonly (readonly [PhaseName, string])[] = [
  ["start", "an agent starts, before there are pods"],
  ["pods start", "a pod starts"],
  ["at rest", "a second at rest"],
  ["zone fails", "a pod of a failed zone is removed"],
  ["zone returns", "a pod of it starts again"],
  ["rolling upgrade", "an agent is replaced, with all pods"],
];

/** For one of what each phase has many of. */
export function manyTable({ phases, size }: ManyAgents): string {
  return table([
    ["", "reads", "commits", "records", "reads of agents", "events to each agent", "bytes to each agent"],
    ...PHASES.map(([name, title]) => {
      const { count, others, agents } = phases[name];
      const each = (value: number) => number(value / count);
      const perAgent = (value: number) => number(value / count / size.nodes);
      return [
        ...[title, each(others.reads), each(others.commits), each(others.records), each(agents.reads)],
        ...[perAgent(agents.events), perAgent(agents.eventBytes)],
      ];
    }),
  ]);
}

export function fanOutTable({ rounds }: FanOut): string {
  return table([
    ["records in one transaction", "watchers", "records", "CPU of etcd", "per record", "memory of etcd"],
    ...rounds.map(({ recordsPerWrite, watchers, writes, etcdMilliseconds, etcdResidentBytes }) => [
      ...[whole(recordsPerWrite), whole(watchers), whole(writes * recordsPerWrite), seconds(etcdMilliseconds)],
      ...[milliseconds(etcdMilliseconds / (writes * recordsPerWrite)), megabytes(etcdResidentBytes)],
    ]),
  ]);
}

export function apiFanOutTable({ rounds }: ApiFanOut): string {
  return table([
    ["watchers", "changes", "CPU of kube-apiserver", "per change", "of its etcd", "memory of kube-apiserver"],
    ...rounds.map(({ watchers, writes, apiMilliseconds, etcdMilliseconds, apiResidentBytes }) => [
      ...[whole(watchers), whole(writes), seconds(apiMilliseconds), milliseconds(apiMilliseconds / writes)],
      ...[milliseconds(etcdMilliseconds / writes), megabytes(apiResidentBytes)],
    ]),
  ]);
}

export function restartTable({ before, since }: Measured["restarts"]): string {
  const rows: readonly (readonly [string, (restart: ApiRestart) => string])[] = [
    [
      "from the kill until all replicas had seen a change of after the start",
      ({ downMilliseconds, recoverMilliseconds }) => seconds(downMilliseconds + recoverMilliseconds),
    ],
    ["requests", ({ requests }) => whole(Object.values(requests).reduce((sum, count) => sum + count, 0))],
    ["of them lists, or watches that begin with one", ({ lists }) => whole(lists)],
    ["most requests in a second", ({ mostPerSecond }) => whole(mostPerSecond)],
    ["most lists in a second", ({ mostListsPerSecond }) => whole(mostListsPerSecond)],
    ["most lists in a tenth of a second", ({ mostListsPerTenthOfSecond }) => whole(mostListsPerTenthOfSecond)],
    ["reads that the server sent to etcd for them", ({ etcdReads }) => whole(etcdReads)],
    ["CPU of kube-apiserver, its start included", ({ apiMilliseconds }) => seconds(apiMilliseconds)],
  ];
  return table([["", "before", "now"], ...rows.map(([name, of]) => [name, of(before), of(since)])]);
}

export function realTable(real: RealAgents): string {
  const { first, pods, changes, idle, nodes, podsPerNode } = real;
  const idleSeconds = idle.wallMilliseconds / 1_000;
  const median = (of: (each: (typeof changes)[number]) => number) => medianOf(changes.map(of));
  return table([
    ["", "time", "CPU of one agent", "CPU of etcd", "requests on etcd"],
    [
      `${nodes} agents start on nodes that nobody knows`,
      ...[seconds(first.wallMilliseconds), seconds(first.agentMilliseconds / nodes)],
      ...[seconds(first.etcdMilliseconds), `${number(first.requests / nodes)} per agent`],
    ],
    [
      `${whole(nodes * podsPerNode)} ADDs, until each node allows each pod`,
      ...[seconds(pods.wallMilliseconds), seconds(pods.agentMilliseconds / nodes), seconds(pods.etcdMilliseconds)],
      `${number(pods.requests / nodes / podsPerNode)} per pod (${number(pods.puts / nodes / podsPerNode)} records)`,
    ],
    [
      "one pod more, until each node allows it (median)",
      milliseconds(median(({ wallMilliseconds }) => wallMilliseconds)),
      milliseconds(median(({ agentMilliseconds }) => agentMilliseconds / nodes)),
      ...[milliseconds(median(({ etcdMilliseconds }) => etcdMilliseconds)), ""],
    ],
    [
      "a second at rest",
      ...["", milliseconds(idle.agentMilliseconds / nodes / idleSeconds)],
      ...[
        milliseconds(idle.etcdMilliseconds / idleSeconds),
        `${number(idle.requests / nodes / idleSeconds)} per agent`,
      ],
    ],
  ]);
}

export function growthTable({ growth }: Tenants): string {
  return table([
    [
      "rules",
      "sets in the table",
      "CPU of the agent",
      "another tenant's change",
      "without sets: CPU",
      "another tenant's change",
    ],
    ...growth.map(({ count, selectors, addresses }) => [
      ...[whole(count), whole(selectors.sets), milliseconds(selectors.agentMilliseconds)],
      ...[milliseconds(selectors.otherMilliseconds), milliseconds(addresses.agentMilliseconds)],
      milliseconds(addresses.otherMilliseconds),
    ]),
  ]);
}

export function waitingTable({ namespaces, waiting }: Tenants): string {
  return table([
    [
      "each of the policies",
      "policies",
      "sets in the table",
      "CPU of the agent",
      "CPU for one namespace again",
      "another tenant's change: median",
      "longest",
    ],
    ...waiting.map(({ title, policiesPerNamespace, sets, agentMilliseconds, oneMilliseconds, otherMilliseconds }) => [
      ...[title, whole(policiesPerNamespace * namespaces), whole(sets), seconds(agentMilliseconds)],
      seconds(oneMilliseconds),
      ...[milliseconds(medianOf(otherMilliseconds)), seconds(Math.max(...otherMilliseconds))],
    ]),
  ]);
}

export function predictionTable(costs: Costs): string {
  const all = SIZES.map((nodes) => predict(costs, nodes));
  return table([
    ["computed", ...all.map(({ nodes }) => `${whole(nodes)} nodes`)],
    ["first convergence: CPU of agent and etcd", ...all.map((each) => seconds(each.firstSeconds * 1_000))],
    ["memory of an agent", ...all.map(({ residentBytes }) => megabytes(residentBytes))],
    ["a third of the nodes fails: CPU of an agent", ...all.map((each) => seconds(each.zoneFailsSeconds * 1_000))],
    ["it returns: CPU of an agent", ...all.map((each) => seconds(each.zoneReturnsSeconds * 1_000))],
    [
      "reads, commits on the datastore per second",
      ...all.map((each) => `${number(each.readsPerSecond)}, ${number(each.commitsPerSecond)}`),
    ],
    ["watch: KB per agent and second", ...all.map((each) => number(each.eventBytesPerAgent / 1e3))],
    ["watches: MB per second of all agents", ...all.map((each) => number(each.serverBytes / 1e6))],
    ["**watches: cores of etcd**", ...all.map((each) => `**${number(each.serverCores)}**`)],
    ["CPU of an agent for it, of one core", ...all.map((each) => percent(each.agentShare))],
    [
      "all agents start at once: GB, minutes of etcd",
      ...all.map((each) => `${number(each.startBytes / 1e9)}, ${number(each.startServerSeconds / 60)}`),
    ],
    ["a zone fails: minutes until etcd has told all agents", ...all.map((each) => number(each.zoneServerSeconds / 60))],
  ]);
}

function table(rows: Rows): string {
  const [header = [], ...body] = rows;
  const line = (row: readonly string[]) => `| ${row.join(" | ")} |`;
  return [
    line(header),
    `|${header.map((_, column) => (column === 0 ? "---" : "---:")).join("|")}|`,
    ...body.map(line),
  ].join("\n");
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** Two or three digits. */
export function number(value: number): string {
  if (value === 0) return "0";
  return value >= 100 ? whole(value) : String(Number(value.toPrecision(2)));
}

export function seconds(value: number): string {
  return `${number(value / 1_000)} s`;
}

export function milliseconds(value: number): string {
  return `${number(value)} ms`;
}

export function megabytes(value: number): string {
  return `${whole(value / 1e6)} MB`;
}

function percent(share: number): string {
  return `${number(share * 100)} %`;
}
