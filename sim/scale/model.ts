/**
 * What a cluster of any size costs, computed from what was measured. Pure.
 *
 *   measured (docs/scale.json) ── costsOf() ──> costs of one pod, one event, one request ── predict() ──> a cluster
 *
 * What an agent does is a line in the number of pods, fitted to the measured clusters, or a curve where it rises faster. What a
 * server does grows with events times watchers: the number of changes per second is an assumption, stated in `Assumptions`.
 */
import { fitGrowth, fitLine, type Growth, growthAt, type Line, medianOf, type Point, valueAt } from "./fit.ts";
import type { AgentAtScale, ApiFanOutRound, FanOutRound, Measured, Phase } from "./measured.ts";

export interface Costs {
  /** By the number of pods in the cluster. */
  readonly firstAgentMilliseconds: Growth;
  readonly firstEtcdMilliseconds: Growth;
  readonly residentBytes: Line;
  readonly recordBytes: Line;
  /** By the number of pods of the zone. */
  readonly zoneFailsMilliseconds: Growth;
  readonly zoneReturnsMilliseconds: Growth;
  readonly bytesAfterZone: Line;
  /** CPU time of the agent for one event that concerns it, and for one that does not. */
  readonly changeMilliseconds: number;
  readonly unrelatedMilliseconds: number;
  readonly nodeRecordMilliseconds: number;
  readonly add: PodCosts;
  readonly remove: PodCosts;
  /** CPU time of etcd for one event of one watcher: alone, and in a transaction of many. */
  readonly eventMilliseconds: number;
  readonly bulkEventMilliseconds: number;
  readonly writeMilliseconds: number;
  /** The same of kube-apiserver. */
  readonly api: Pick<Costs, "eventMilliseconds" | "writeMilliseconds">;
  /** Requests of one agent while nothing changes. */
  readonly idleRequestsPerSecond: number;
}

/** What one pod that comes or goes costs the datastore, and what each agent is sent for it. */
export interface PodCosts {
  readonly reads: number;
  readonly commits: number;
  readonly records: number;
  readonly eventsPerAgent: number;
  readonly bytesPerAgent: number;
}

export interface Assumptions {
  readonly podsPerNode: number;
  /** In the whole cluster; as many end as start. */
  readonly podStartsPerSecond: number;
  /** Of all members of etcd together: for watches. */
  readonly cores: number;
  /** The part of the nodes that a zone has. */
  readonly zoneShare: number;
}

export const ASSUMPTIONS: Assumptions = { podsPerNode: 50, podStartsPerSecond: 20, cores: 6, zoneShare: 1 / 3 };

export interface Prediction {
  readonly nodes: number;
  readonly firstSeconds: number;
  readonly residentBytes: number;
  readonly changeMilliseconds: number;
  readonly zoneFailsSeconds: number;
  readonly zoneReturnsSeconds: number;
  readonly bytesAfterZone: number;
  readonly readsPerSecond: number;
  readonly commitsPerSecond: number;
  readonly eventsPerAgent: number;
  readonly eventBytesPerAgent: number;
  readonly serverBytes: number;
  readonly serverCores: number;
  /** CPU time of one agent, as a share of a core. */
  readonly agentShare: number;
  /** All agents start at once. */
  readonly startBytes: number;
  readonly startServerSeconds: number;
  /** CPU time of etcd to tell all agents of a lost zone, divided by the cores. */
  readonly zoneServerSeconds: number;
}

export function costsOf({ agents, many, fanOut, apiFanOut, real }: Measured): Costs {
  const all = Object.values(agents).toSorted((left, right) => left.size.nodes - right.size.nodes);
  const byPods = (of: (agent: AgentAtScale) => number) => fitLine(all.map((agent) => point(podsOf(agent), of(agent))));
  const growthByPods = (of: (agent: AgentAtScale) => number) =>
    fitGrowth(all.map((agent) => point(podsOf(agent), of(agent))));
  const byZone = (of: (agent: AgentAtScale) => number) =>
    fitGrowth(all.map((agent) => point(agent.zone.pods, of(agent))));
  const largest = all.at(-1);
  if (largest === undefined) throw new Error("No agent was measured");
  const { unrelatedPods, allowedPod } = largest.changes;
  const { phases, size } = many;
  const [alone, bulk] = [1, 0].map((one) =>
    fanOutLine(fanOut.rounds.filter(({ recordsPerWrite }) => (recordsPerWrite === 1) === (one === 1))),
  );
  if (alone === undefined || bulk === undefined) throw new Error("The fan-out was not measured");
  return {
    firstAgentMilliseconds: growthByPods(({ first }) => first.agentMilliseconds),
    firstEtcdMilliseconds: growthByPods(({ first }) => first.etcdMilliseconds),
    residentBytes: byPods(({ memory }) => memory.settled.residentBytes),
    recordBytes: byPods(({ records }) => records.bytes),
    zoneFailsMilliseconds: byZone(({ zone }) => zone.fails.agentMilliseconds),
    zoneReturnsMilliseconds: byZone(({ zone }) => zone.returns.agentMilliseconds),
    bytesAfterZone: byPods(({ zone }) => zone.returns.residentBytes),
    changeMilliseconds: medianOf(allowedPod.map(({ agentMilliseconds }) => agentMilliseconds)),
    unrelatedMilliseconds: unrelatedPods.agentMilliseconds / unrelatedPods.count,
    nodeRecordMilliseconds: largest.upgrade.agentMilliseconds / largest.upgrade.nodes,
    add: podCosts(phases["pods start"], size.nodes),
    remove: podCosts(phases["zone fails"], size.nodes),
    eventMilliseconds: alone.slope,
    bulkEventMilliseconds: bulk.slope,
    writeMilliseconds: alone.base,
    api: apiCosts(apiFanOut.rounds),
    idleRequestsPerSecond: real.idle.requests / real.nodes / (real.idle.wallMilliseconds / 1_000),
  };
}

/** The CPU time of etcd for one record, by the number of watchers. */
function fanOutLine(rounds: readonly FanOutRound[]): Line {
  return fitLine(
    rounds.map(({ watchers, etcdMilliseconds, writes, recordsPerWrite }) =>
      point(watchers, etcdMilliseconds / (writes * recordsPerWrite)),
    ),
  );
}

function apiCosts(rounds: readonly ApiFanOutRound[]): Costs["api"] {
  const { slope, base } = fitLine(
    rounds.map(({ watchers, apiMilliseconds, writes }) => point(watchers, apiMilliseconds / writes)),
  );
  return { eventMilliseconds: slope, writeMilliseconds: base };
}

function podCosts({ count, agents, others }: Phase, nodes: number): PodCosts {
  return {
    reads: others.reads / count,
    commits: others.commits / count,
    records: others.records / count,
    eventsPerAgent: agents.events / count / nodes,
    bytesPerAgent: agents.eventBytes / count / nodes,
  };
}

export function predict(costs: Costs, nodes: number, assumptions: Assumptions = ASSUMPTIONS): Prediction {
  const { podsPerNode, podStartsPerSecond: rate, cores, zoneShare } = assumptions;
  const { add, remove } = costs;
  const pods = nodes * podsPerNode;
  const zonePods = pods * zoneShare;
  const events = rate * (add.eventsPerAgent + remove.eventsPerAgent);
  const bytes = rate * (add.bytesPerAgent + remove.bytesPerAgent);
  const etcdList = growthAt(costs.firstEtcdMilliseconds, pods) / 1_000;
  return {
    nodes,
    firstSeconds: growthAt(costs.firstAgentMilliseconds, pods) / 1_000 + etcdList,
    residentBytes: valueAt(costs.residentBytes, pods),
    changeMilliseconds: costs.changeMilliseconds,
    zoneFailsSeconds: growthAt(costs.zoneFailsMilliseconds, zonePods) / 1_000,
    zoneReturnsSeconds: growthAt(costs.zoneReturnsMilliseconds, zonePods) / 1_000,
    bytesAfterZone: valueAt(costs.bytesAfterZone, pods),
    readsPerSecond: rate * (add.reads + remove.reads) + nodes * costs.idleRequestsPerSecond,
    commitsPerSecond: rate * (add.commits + remove.commits),
    eventsPerAgent: events,
    eventBytesPerAgent: bytes,
    serverBytes: bytes * nodes,
    serverCores: serverCores(costs, nodes, assumptions),
    agentShare: (events * costs.unrelatedMilliseconds) / 1_000,
    startBytes: nodes * valueAt(costs.recordBytes, pods),
    startServerSeconds: (nodes * etcdList) / cores,
    zoneServerSeconds: (zonePods * remove.eventsPerAgent * nodes * costs.bulkEventMilliseconds) / 1_000 / cores,
  };
}

/** The cores that etcd needs to send each change to each agent. */
function serverCores({ add, remove, ...costs }: Costs, nodes: number, assumptions: Assumptions): number {
  const events = assumptions.podStartsPerSecond * (add.eventsPerAgent + remove.eventsPerAgent);
  const commits = assumptions.podStartsPerSecond * (add.commits + remove.commits);
  return (events * nodes * costs.eventMilliseconds + commits * costs.writeMilliseconds) / 1_000;
}

/** The number of nodes at which the watches take all cores that etcd has for them. */
export function nodeLimit(costs: Costs, assumptions: Assumptions = ASSUMPTIONS): number {
  const [none, one] = [0, 1].map((nodes) => serverCores(costs, nodes, assumptions));
  if (none === undefined || one === undefined) return 0;
  return Math.floor((assumptions.cores - none) / (one - none));
}

export function podsOf({ size }: Pick<AgentAtScale, "size">): number {
  return size.nodes * size.podsPerNode;
}

function point(x: number, y: number): Point {
  return { x, y };
}
