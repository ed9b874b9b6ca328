/**
 * Who decides about the first packet of a connection, and why: the egress policies of its source, then the ingress
 * policies of its destination. Pure.
 */
import { isSameAddress } from "../../ip/address.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Direction } from "../effective-rule.ts";
import { problemOf } from "./enforced-policy.ts";
import { type Judgement, judge } from "./judge.ts";
import type { Packet } from "./packet.ts";
import type { AnyPolicy, PolicyResources } from "./resources.ts";
import { ruleWords } from "./rule-words.ts";

export interface ExplainedPacket {
  readonly packet: Packet;
  /** The workload with the address; `undefined`: the address is not that of a workload. */
  readonly source: WorkloadEndpoint | undefined;
  readonly destination: WorkloadEndpoint | undefined;
  /** The node with the address. */
  readonly sourceNode?: string | undefined;
  readonly destinationNode?: string | undefined;
  /** What a node does with packets of its own workloads to itself, after their egress policies. */
  readonly toHost: "Accept" | "Drop" | "Return";
}

export interface Explanation {
  readonly verdict: Judgement["verdict"];
  /** In the order in which a packet passes them. */
  readonly sides: readonly ExplainedSide[];
}

export interface ExplainedSide {
  readonly direction: Direction;
  readonly verdict: Judgement["verdict"];
  /** Why, in words. */
  readonly reason: string;
  readonly decidedBy?: Decider;
  /** Those that apply, in the order of their evaluation. */
  readonly policies: readonly AppliedPolicy[];
}

export interface Decider {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  /** Index in `spec.ingress` or `spec.egress`; absent if it is decided because no rule matches. */
  readonly rule?: number;
}

export interface AppliedPolicy {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly tier: string;
  readonly order?: number;
  readonly outcome: string;
}

export function explain(explained: ExplainedPacket, resources: PolicyResources): Explanation {
  const { packet, source, destination } = explained;
  if (source !== undefined && isSameAddress(packet.source, packet.destination)) {
    return {
      verdict: "allow",
      sides: [unjudged("egress", "a packet of a workload to its own address never leaves it")],
    };
  }
  const sides: ExplainedSide[] = [];
  if (source !== undefined) sides.push(judgedSide(packet, source, "egress", resources));
  if (isToOwnHost(explained)) sides.push(hostSide(explained));
  if (destination !== undefined) sides.push(ingressSide(explained, destination, resources));
  return { verdict: sides.every(({ verdict }) => verdict === "allow") ? "allow" : "deny", sides };
}

function isToOwnHost({ source, destinationNode }: ExplainedPacket): boolean {
  return destinationNode !== undefined && source?.spec.node === destinationNode;
}

function hostSide({ toHost, destinationNode }: ExplainedPacket): ExplainedSide {
  const reason = `packets of its own workloads to node "${destinationNode}": defaultEndpointToHostAction is ${toHost}`;
  return { ...unjudged("ingress", reason), verdict: toHost === "Drop" ? "deny" : "allow" };
}

function ingressSide(explained: ExplainedPacket, destination: WorkloadEndpoint, resources: PolicyResources) {
  const { packet, sourceNode } = explained;
  const isFromOwnHost = sourceNode !== undefined && destination.spec.node === sourceNode;
  if (!isFromOwnHost) return judgedSide(packet, destination, "ingress", resources);
  return unjudged("ingress", `node "${sourceNode}" always reaches its own workloads, for example with health probes`);
}

function unjudged(direction: Direction, reason: string): ExplainedSide {
  return { direction, verdict: "allow", reason, policies: [] };
}

function judgedSide(
  packet: Packet,
  endpoint: WorkloadEndpoint,
  direction: Direction,
  resources: PolicyResources,
): ExplainedSide {
  const judgement = judge(packet, endpoint, direction, resources);
  const decidedBy = deciderOf(judgement);
  return {
    direction,
    verdict: judgement.verdict,
    reason: reasonWords(judgement, direction, endpoint),
    ...(decidedBy === undefined ? {} : { decidedBy }),
    policies: appliedPolicies(judgement, direction, resources),
  };
}

function deciderOf({ reason }: Judgement): Decider | undefined {
  switch (reason.kind) {
    case "rule":
      return { ...referenceOf(reason.policy), rule: reason.index };
    case "tier default":
      return { kind: "Tier", name: reason.tier };
    case "profile":
      return { kind: "Profile", name: reason.profile, rule: reason.index };
    case "no profile allows it":
      return undefined;
  }
}

function reasonWords({ reason, policies }: Judgement, direction: Direction, { spec }: WorkloadEndpoint): string {
  switch (reason.kind) {
    case "rule": {
      const { policy, index, rule } = reason;
      return `${titleOf(policy)}, ${ruleTitle(direction, index)}: ${ruleWords(rule, policy.metadata.namespace)}`;
    }
    case "tier default": {
      const count = reason.policies.length === 1 ? "the policy" : `any of the ${reason.policies.length} policies`;
      return `no rule of ${count} that ${reason.policies.length === 1 ? "applies" : "apply"} in tier "${reason.tier}" matches, so the tier denies it`;
    }
    case "profile": {
      const before =
        policies.length === 0 ? `no ${direction} policy applies, so the profiles decide` : "all tiers passed";
      return `${before}: Profile "${reason.profile}", ${ruleTitle(direction, reason.index)}: ${ruleWords(reason.rule, undefined)}`;
    }
    case "no profile allows it": {
      const before = policies.length === 0 ? `no ${direction} policy applies` : "all tiers passed";
      const names = (spec.profiles ?? []).map((name) => `"${name}"`).join(", ");
      return `${before}, and no profile of the endpoint allows it (${names === "" ? "it has none" : names})`;
    }
  }
}

/** Rules are counted from 1 in words, and from 0 in the field that names the rule. */
function ruleTitle(direction: Direction, index: number): string {
  return `${direction} rule ${index + 1} (spec.${direction}[${index}])`;
}

function appliedPolicies(
  { policies, reason, passes }: Judgement,
  direction: Direction,
  resources: PolicyResources,
): readonly AppliedPolicy[] {
  const decisive = new Map(passes.map(({ policy, index }) => [policy, index]));
  const last = reason.kind === "rule" ? policies.indexOf(reason.policy) : policies.length - 1;
  const passedTiers = new Map<string, number>(passes.map(({ policy }) => [policy.spec.tier, policies.indexOf(policy)]));
  return policies.map((policy, position) => {
    const { tier, order } = policy.spec;
    const passedAt = passedTiers.get(tier);
    const isReached = position <= last && (passedAt === undefined || position <= passedAt);
    const passing = decisive.get(policy);
    const decides = reason.kind === "rule" && reason.policy === policy;
    const outcome = decides
      ? "decides"
      : passing !== undefined
        ? `${ruleTitle(direction, passing)} passes to the next tier`
        : isReached
          ? "no rule matches"
          : "not reached";
    const problem = problemIn(policy, resources);
    return {
      ...referenceOf(policy),
      tier,
      ...(order === undefined || !Number.isFinite(order) ? {} : { order }),
      outcome: problem === undefined ? outcome : `${outcome}; denies everything because ${problem}`,
    };
  });
}

/** Judgements contain what is enforced of a policy, not the policy itself. */
function problemIn(policy: AnyPolicy, resources: PolicyResources): string | undefined {
  const all: readonly AnyPolicy[] = [...resources.networkPolicies, ...resources.globalNetworkPolicies];
  const stored = all.find(({ kind, metadata }) => kind === policy.kind && metadata === policy.metadata);
  return stored && problemOf(stored, resources);
}

function referenceOf({ kind, metadata: { name, namespace } }: AnyPolicy) {
  return { kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

function titleOf({ kind, metadata: { name, namespace } }: AnyPolicy): string {
  return `${kind} "${namespace === undefined ? name : `${namespace}/${name}`}"`;
}
