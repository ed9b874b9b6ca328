/**
 * What staged policies would decide about recorded flows, while there are any: the judge with the resources as they are now, and as if
 * every staged policy were promoted.
 *
 *   resources ── only if something is staged ──▶ two replays ──▶ of a flow: verdict and decisions, if staged policies matter to it
 *
 * The kernel does not know of staged policies, and packets do not wait for the judge. It gets a share of the collector's time: flows
 * beyond it are not judged, and counted.
 */
import type { FlowDecision, StagedFlow } from "../../../flows/flow-record.ts";
import { FlowReplay, type ReplayedFlow, type ReplayedSide } from "../../../flows/replay-flows.ts";
import { isStagedKind, readEndpoint, readStoredResources } from "../../../flows/stored-resources.ts";
import type { GlobalNetworkPolicy } from "../../../model/global-network-policy.ts";
import { type NodeAgentSettings, nodeAgentSettings } from "../../../model/node-agent-configuration.ts";
import { IS_NODE } from "../../../model/node-members.ts";
import type { PolicyResources } from "../../../policy/judge/resources.ts";
import { type StagedSet, stagedSet } from "../../../policy/staged-set.ts";
import { deciderComment, noProfileComment } from "../../../policy/table/rule-comment.ts";
import type { SeenFlow, SeenResource } from "../flow-sink.ts";
import type { ResourceState } from "./resource-states.ts";

const WINDOW_MILLISECONDS = 1_000;
/** In each window. */
const MOST_MILLISECONDS = 100;
/** Resources that change all the time are read again so rarely that reading them takes this share of the time. */
const READING_SHARE = 0.05;
/** That the replays remember: some megabytes. */
const MOST_REMEMBERED = 20_000;

interface Replays extends Pick<StagedSet, "isStaged"> {
  readonly enforced: FlowReplay;
  readonly tried: FlowReplay;
}

export interface StagedFlowsOptions {
  /** All resources that were told until now, each before what replaces it; `undefined`: they cannot be read. */
  readonly resources: () => readonly SeenResource[] | undefined;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
}

export class StagedFlows {
  /** Flows that staged policies may matter to. */
  notJudged = 0;
  private readonly staged = new Set<string>();
  /** Only while something is staged. */
  private resources: Map<string, ResourceState> | undefined;
  private replays: Replays | undefined;
  private isOutdated = true;
  /** Before it, outdated replays are used. */
  private readAgainAt = Number.NEGATIVE_INFINITY;
  private window = { since: Number.NEGATIVE_INFINITY, spent: 0 };

  constructor(private readonly options: StagedFlowsOptions) {}

  /** Nothing is staged. */
  get isIdle(): boolean {
    return this.staged.size === 0;
  }

  put(resources: readonly SeenResource[]): void {
    for (const { kind, key, value } of resources) {
      if (!isStagedKind(kind)) continue;
      if (value === undefined) this.staged.delete(key);
      else this.staged.add(key);
    }
    if (this.isIdle) {
      this.resources = undefined;
      this.replays = undefined;
    }
    // Otherwise all of them are read when a flow is to be judged.
    if (this.resources !== undefined) applyTo(this.resources, resources);
    this.isOutdated = true;
  }

  /** With what staged policies would decide, if they matter to it. */
  judged(seen: SeenFlow): SeenFlow {
    // No rule judges what exists because of another connection.
    if (this.isIdle || seen.record.relatedTo !== undefined) return seen;
    const before = this.options.elapsed();
    if (before >= this.window.since + WINDOW_MILLISECONDS) this.window = { since: before, spent: 0 };
    const judgement = this.window.spent >= MOST_MILLISECONDS ? NOT_JUDGED : this.judge(seen, before);
    this.window.spent += this.options.elapsed() - before;
    if (judgement === NOT_JUDGED) this.notJudged += 1;
    return judgement === NOT_JUDGED || judgement === undefined
      ? seen
      : { ...seen, record: { ...seen.record, staged: judgement } };
  }

  private judge(seen: SeenFlow, now: number): StagedFlow | undefined | typeof NOT_JUDGED {
    if (this.isOutdated && now >= this.readAgainAt) this.read(now);
    const { replays } = this;
    if (replays === undefined) return NOT_JUDGED;
    const endpoints = () => [seen.source, seen.destination].flatMap((text = "") => readEndpoint(text) ?? []);
    const [enforced, tried] = [replays.enforced, replays.tried].map((replay) => replay.decide(seen.record, endpoints));
    if (replays.tried.remembered > MOST_REMEMBERED) this.isOutdated = true;
    return enforced === undefined || tried === undefined ? NOT_JUDGED : stagedOf(enforced, tried, replays);
  }

  private read(now: number): void {
    this.resources ??= mapOf(this.options.resources());
    this.isOutdated = this.resources === undefined;
    this.replays = this.resources && replaysOf(this.resources);
    const taken = this.options.elapsed() - now;
    this.readAgainAt = now + (this.isOutdated ? WINDOW_MILLISECONDS : taken / READING_SHARE);
  }
}

const NOT_JUDGED = "not judged";

function mapOf(resources: readonly SeenResource[] | undefined): Map<string, ResourceState> | undefined {
  if (resources === undefined) return undefined;
  const map = new Map<string, ResourceState>();
  applyTo(map, resources);
  return map;
}

function applyTo(map: Map<string, ResourceState>, resources: readonly SeenResource[]): void {
  for (const { kind, key, value } of resources) {
    if (value === undefined) map.delete(key);
    else map.set(key, { kind, key, value });
  }
}

/** `undefined`: what is staged cannot be read as a whole, or depends on nodes, which the collector is not told. */
function replaysOf(stored: ReadonlyMap<string, ResourceState>): Replays | undefined {
  const { resources, staged, configurations, unreadableStaged } = readStoredResources(stored.values(), []);
  if (unreadableStaged > 0 || resources.globalNetworkPolicies.some(selectsNodes)) return undefined;
  const settingsOf = (node: string) => nodeAgentSettings(configurations, node);
  const { resources: asIf, isStaged } = stagedSet(resources, staged);
  return { enforced: replayOf(resources, settingsOf), tried: replayOf(asIf, settingsOf), isStaged };
}

/** A ClusterNetworkPolicy may. */
function selectsNodes({ spec }: GlobalNetworkPolicy): boolean {
  return [...(spec.ingress ?? []), ...(spec.egress ?? [])].some(({ source, destination }) =>
    [source?.selector, destination?.selector].some((selector) => selector?.includes(IS_NODE)),
  );
}

function replayOf(resources: PolicyResources, settingsOf: (node: string) => NodeAgentSettings): FlowReplay {
  const { networkPolicies, globalNetworkPolicies, hostEndpoints } = resources;
  const isUnenforced = networkPolicies.length + globalNetworkPolicies.length + hostEndpoints.length === 0;
  return new FlowReplay(resources, { settingsOf, isUnenforcedAt: () => isUnenforced });
}

/** `undefined`: a staged policy neither decides it nor changes what does. */
function stagedOf(
  enforced: ReplayedFlow,
  tried: ReplayedFlow,
  { isStaged }: Pick<Replays, "isStaged">,
): StagedFlow | undefined | typeof NOT_JUDGED {
  if (enforced.verdict === "not judged" || tried.verdict === "not judged") return NOT_JUDGED;
  const matters =
    enforced.verdict !== tried.verdict ||
    tried.sides.some(({ decidedBy }) => decidedBy !== undefined && isStaged(decidedBy)) ||
    !Bun.deepEquals(enforced.sides.map(decisionOf), tried.sides.map(decisionOf));
  if (!matters) return undefined;
  return { verdict: tried.verdict, decisions: tried.sides.map(decisionOf) };
}

function decisionOf({ direction, verdict, decidedBy, hostEndpoint }: ReplayedSide): FlowDecision {
  const point = POINTS_OF[direction][hostEndpoint === undefined ? "workload" : "host"];
  if (decidedBy !== undefined) return { point, verdict, rule: deciderComment(decidedBy, direction) };
  // What policy does not decide: a node reaches its own workloads.
  return {
    point,
    verdict,
    ...(verdict === "deny" ? { rule: noProfileComment(direction) } : { unknown: "not judged" }),
  };
}

const POINTS_OF = {
  ingress: { workload: "workload ingress", host: "host in" },
  egress: { workload: "workload egress", host: "host out" },
} as const;
