/** One page of health of one host, from what was read of it. Pure. */
import type { RoutingFacts } from "../../admin/host/facts.ts";
import { hostFindings } from "../../admin/status/host-findings.ts";
import type { HostStatusFacts } from "../../admin/status/host-states.ts";
import { bgpWords, routingWrittenAt } from "../../admin/status/node-routing.ts";
import { counted } from "../../counted.ts";
import { identity } from "../../identity.ts";
import type { Health, HealthNode, HealthPart, State } from "../api/health.ts";
import { gravest, gravestFirst, problemOf, tunnelWords } from "./health-words.ts";

export interface HostHealthFacts {
  readonly status: HostStatusFacts;
  /** Absent: only root may ask. */
  readonly routing?: RoutingFacts;
  readonly addresses: readonly string[];
  readonly now: Date;
}

export function hostHealth({ status, routing, addresses, now }: HostHealthFacts): Health {
  const at = now.getTime();
  const findings = hostFindings(status).filter(({ subject }) => subject !== identity.adminTool);
  const problems = findings.map((finding) => problemOf(finding));
  const parts = [agentPart(status, routing, at), ...recordParts(status, at), ...bgpParts(routing, at)];
  const own = ownNode(status, { routing, addresses, at });
  const states = [...parts, own, ...problems].map(({ state }) => state);
  return {
    ...{ at, state: gravest(states), parts, nodes: [own, ...otherNodes(status, at)] },
    ...{ problems: [...gravestFirst(problems)], hidden: [] },
  };
}

const AGENT_STATES = {
  running: { state: "ok", word: "running" },
  stopped: { state: "failed", word: "not running" },
  "not used": { state: "ok", word: "not used" },
} as const;
const UNKNOWN_AGENT = { state: "unknown", word: "only root may ask it" } as const;

function agentPart({ agent }: HostStatusFacts, routing: RoutingFacts | undefined, at: number): HealthPart {
  const { state, word } = agent === undefined ? UNKNOWN_AGENT : AGENT_STATES[agent];
  const known = agent === "running" ? routing?.datastore : undefined;
  const isOld = known?.state === "stale";
  const heard = Date.parse(known?.knownAt ?? "");
  return {
    ...{ name: "node agent", state: isOld ? "warning" : state },
    detail: isOld ? `${word}; what it knows of the datastore is old` : word,
    knownAt: Number.isNaN(heard) ? at : heard,
  };
}

function recordParts(
  { network, datastore, containers, policies }: HostStatusFacts,
  knownAt: number,
): readonly HealthPart[] {
  const { kind, place, problem, pools } = datastore;
  const isRead = problem === undefined;
  const used = pools.reduce((sum, pool) => sum + pool.used, 0n);
  const part = (name: string, detail: string, state: State = "ok"): HealthPart => ({ name, state, detail, knownAt });
  const wired =
    "problem" in network ? part("network", network.problem, "failed") : part("network", network.config.name);
  const store = part(
    "datastore",
    problem ?? [kind, place].filter((text) => text !== "").join(": "),
    isRead ? "ok" : "failed",
  );
  if (!isRead) return [wired, store];
  return [
    ...[wired, store, part("addresses", `${counted(pools.length, "pool")}, ${used} in use`)],
    ...[
      part("containers", counted(containers.length, "container")),
      part("policies", counted(policies.length, "policy", "policies")),
    ],
  ];
}

function bgpParts(routing: RoutingFacts | undefined, knownAt: number): readonly HealthPart[] {
  const { state, bird } = routing ?? {};
  if (state === undefined || state.kind === "not needed") return [];
  const detail = bgpText(routing);
  if (state.kind === "failed" || bird === undefined) return [{ name: "BGP", state: "failed", detail, knownAt }];
  const isDown = bird.sessions.some((session) => session.state !== "up");
  return [{ name: "BGP", state: isDown ? "warning" : "ok", detail, knownAt }];
}

function bgpText(routing: RoutingFacts | undefined): string {
  const { state, bird } = routing ?? {};
  if (state?.kind === "failed") return state.reason ?? "BIRD has failed";
  if (bird === undefined) return state?.kind === "running" ? "BIRD has ended" : "";
  const up = bird.sessions.filter((session) => session.state === "up").length;
  return `${up} of ${counted(bird.sessions.length, "session")} up`;
}

interface OwnFacts {
  readonly routing: RoutingFacts | undefined;
  readonly addresses: readonly string[];
  readonly at: number;
}

function ownNode({ node, agent, datastore }: HostStatusFacts, { routing, addresses, at }: OwnFacts): HealthNode {
  const { state, word } = agent === undefined ? UNKNOWN_AGENT : AGENT_STATES[agent];
  const record = datastore.nodes?.find(({ metadata }) => metadata.name === node);
  return {
    ...{
      name: node,
      state,
      agent: agent === undefined ? "" : word,
      addresses: [...addresses],
      knownAt: at,
      problems: [],
    },
    version: datastore.agents.find((each) => each.node === node)?.version ?? "",
    tunnel: record === undefined ? "" : tunnelWords(record),
    bgp: bgpText(routing) || (record === undefined ? "" : bgpWords(record, routingWrittenAt(record))),
  };
}

/** Of others with the same datastore, their records alone are known here. */
function otherNodes({ node, datastore }: HostStatusFacts, knownAt: number): readonly HealthNode[] {
  const others = datastore.nodes?.filter(({ metadata }) => metadata.name !== node) ?? [];
  return others.map((record) => ({
    ...{ name: record.metadata.name, state: "unknown", agent: "", problems: [], knownAt },
    version: datastore.agents.find((each) => each.node === record.metadata.name)?.version ?? "",
    addresses: (record.spec.addresses ?? []).map(({ address }) => address),
    ...{ tunnel: tunnelWords(record), bgp: bgpWords(record, routingWrittenAt(record)) },
  }));
}
