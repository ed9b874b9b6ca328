/** Why one endpoint allows or denies a packet in one direction, in words, with the policies that apply. Pure. */
import { authoredPolicy } from "../../model/cluster-network-policy.ts";
import type { Direction } from "../effective-rule.ts";
import { originWords } from "../table/rule-comment.ts";
import { problemOf } from "./enforced-policy.ts";
import type { EvaluatedPolicies, InterfaceJudgement } from "./host-judge.ts";
import { type DecidingRule, type Judgement, judge, type Reason } from "./judge.ts";
import type { Packet } from "./packet.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "./resources.ts";
import { protocolWords, ruleWords } from "./rule-words.ts";

export interface ExplainedSide {
  readonly direction: Direction;
  /** Absent: the source of an egress side, the destination of an ingress side. */
  readonly hostEndpoint?: ExplainedHostEndpoint;
  /** Not packets but a request over the connection, which the sidecar of the workload decides about. */
  readonly isRequest?: true;
  readonly verdict: Judgement["verdict"];
  /** Its node enforces nothing, so that it is allowed whatever its profiles say. */
  readonly isUnenforced?: true;
  /** Why, in words. */
  readonly reason: string;
  /** What else to know or to do, in words. */
  readonly hint?: string;
  readonly decidedBy?: Decider;
  /** Those that apply, in the order of their evaluation. */
  readonly policies: readonly AppliedPolicy[];
  /** Of a packet to a failsafe port: what would decide if the port were not one. */
  readonly withoutFailsafe?: Pick<ExplainedSide, "verdict" | "reason" | "decidedBy" | "policies">;
}

export interface ExplainedHostEndpoint {
  readonly name: string;
  readonly node: string;
  /** `*`: all that no other host endpoint has; absent: the one with an expected address. */
  readonly interfaceName?: string;
  /** Whether the packet passes its interface is not certain: the node has others. */
  readonly isUncertain?: true;
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
  /** Of a policy that is evaluated before all others. */
  readonly stage?: "doNotTrack" | "preDNAT";
  readonly outcome: string;
}

export function unjudgedSide(direction: Direction, reason: string): ExplainedSide {
  return { direction, verdict: "allow", reason, policies: [] };
}

/** The policies and profiles of a workload. */
export function workloadSide(
  packet: Packet,
  endpoint: AnyEndpoint,
  direction: Direction,
  resources: PolicyResources,
): ExplainedSide {
  const judgement = judge(packet, endpoint, direction, resources);
  return {
    direction,
    verdict: judgement.verdict,
    reason: reasonWords(judgement, direction, endpoint),
    ...deciderField(judgement.reason),
    policies: appliedPolicies(judgement, direction, resources),
  };
}

/** The policies and profiles of a host endpoint, and what passes whatever they say. */
export function hostEndpointSide(
  { packet, judgement }: { readonly packet: Packet; readonly judgement: InterfaceJudgement },
  hostEndpoint: ExplainedHostEndpoint,
  resources: PolicyResources,
): ExplainedSide {
  const { direction, withoutFailsafe } = judgement;
  const side = { direction, hostEndpoint, ...hostDecision(packet, judgement, resources) };
  if (withoutFailsafe === undefined) return side;
  const otherwise = hostDecision(packet, withoutFailsafe, resources);
  return {
    ...side,
    reason: `${side.reason}; without it: ${otherwiseWords(otherwise)}`,
    withoutFailsafe: otherwise,
  };
}

type HostDecision = NonNullable<ExplainedSide["withoutFailsafe"]>;

function hostDecision(packet: Packet, judgement: InterfaceJudgement, resources: PolicyResources): HostDecision {
  const { direction, verdict, evaluated } = judgement;
  return {
    verdict,
    reason: hostReason(packet, judgement),
    ...deciderField(evaluated.at(-1)?.reason),
    policies: evaluated.flatMap((each) => appliedPolicies(each, direction, resources)),
  };
}

/** `allowed by GlobalNetworkPolicy "ssh", ingress rule 1 …`, or `denied because no rule …`. */
function otherwiseWords({ verdict, reason, decidedBy }: HostDecision): string {
  const isRuleOfPolicy = decidedBy?.rule !== undefined && decidedBy.kind !== "Profile";
  return `${verdict === "allow" ? "allowed" : "denied"} ${isRuleOfPolicy ? "by" : "because"} ${reason}`;
}

function hostReason(packet: Packet, { stage, direction, endpoint, evaluated }: InterfaceJudgement): string {
  const { policies = [], passes = [], reason } = evaluated.at(-1) ?? {};
  const words = reason === undefined ? "" : reasonWords({ reason, policies }, direction, endpoint);
  switch (stage) {
    case "neighbour discovery":
      return "IPv6 neighbour discovery always passes";
    case "failsafe": {
      const [field, way] =
        direction === "ingress"
          ? (["failsafeInboundHostPorts", "incoming"] as const)
          : (["failsafeOutboundHostPorts", "outgoing"] as const);
      const port = `${protocolWords(packet.protocol)} port ${packet.destinationPort}`;
      return `${port} is a failsafe port for ${way} connections (${field}), which no policy closes`;
    }
    case "doNotTrack":
      return `${words}; doNotTrack: its replies need a rule of their own`;
    case "preDNAT":
      return `${words}; preDNAT: decided before the destination is rewritten`;
    case "policies":
      return words;
    case "applyOnForward":
      if (reason !== undefined) return words;
      return passes.length > 0
        ? "all tiers passed, so it is forwarded"
        : `no ${direction} policy with applyOnForward applies, so it is forwarded`;
  }
}

function deciderField(reason: Reason | undefined): { readonly decidedBy?: Decider } {
  const decidedBy = reason === undefined ? undefined : deciderOf(reason);
  return decidedBy === undefined ? {} : { decidedBy };
}

function deciderOf(reason: Reason): Decider | undefined {
  switch (reason.kind) {
    case "rule":
      return { ...authoredPolicy(reason.policy), rule: reason.index };
    case "tier default":
      return { kind: "Tier", name: reason.tier };
    case "profile":
      return { kind: "Profile", name: reason.profile, ...(reason.isUnedited ? {} : { rule: reason.index }) };
    case "no profile allows it":
      return undefined;
  }
}

function reasonWords(
  { reason, policies }: Pick<Judgement, "reason" | "policies">,
  direction: Direction,
  { spec }: AnyEndpoint,
): string {
  switch (reason.kind) {
    case "rule": {
      const { policy, rule } = reason;
      return `${ruleOfPolicy(reason, direction)}: ${ruleWords(rule, policy.metadata.namespace)}`;
    }
    case "tier default": {
      const count = reason.policies.length === 1 ? "the policy" : `any of the ${reason.policies.length} policies`;
      return `no rule of ${count} that ${reason.policies.length === 1 ? "applies" : "apply"} in tier "${reason.tier}" matches, so the tier denies it`;
    }
    case "profile": {
      const before = policies.length === 0 ? profilesDecide(direction) : "all tiers passed";
      if (reason.isUnedited) return `${before}: Profile "${reason.profile}" ${UNEDITED_WORDS}`;
      return `${before}: Profile "${reason.profile}", ${ruleTitle(direction, reason.index)}: ${ruleWords(reason.rule, undefined)}`;
    }
    case "no profile allows it": {
      const before = policies.length === 0 ? `no ${direction} policy applies` : "all tiers passed";
      const names = (spec.profiles ?? []).map((name) => `"${name}"`).join(", ");
      const absent = reason.missing === undefined ? "" : `: ${missingProfileWords(reason.missing)}`;
      return `${before}, and no profile of the endpoint allows it (${names === "" ? "it has none" : names})${absent}`;
    }
  }
}

export function profilesDecide(direction: Direction): string {
  return `no ${direction} policy applies, so the profiles decide`;
}

/** Of the profile of a network that nobody has edited. */
export const UNEDITED_WORDS =
  "has the rules that ADD writes, which close no container; edit it to make its rules count";

/** `NetworkPolicy "red/web", ingress rule 1 (spec.ingress[0])`. */
export function ruleOfPolicy({ policy, index }: DecidingRule, direction: Direction): string {
  const { name, namespace } = policy.metadata;
  const title = namespace === undefined ? name : `${namespace}/${name}`;
  return originWords({ kind: "policy", policy: title, direction, rule: index });
}

/** `profile "pods" does not exist`. */
export function missingProfileWords(names: readonly string[]): string {
  const all = names.map((name) => `"${name}"`).join(", ");
  return names.length === 1 ? `profile ${all} does not exist` : `profiles ${all} do not exist`;
}

/** Rules are counted from 1 in words, and from 0 in the field that names the rule. */
function ruleTitle(direction: Direction, index: number): string {
  return `${direction} rule ${index + 1} (spec.${direction}[${index}])`;
}

function appliedPolicies(
  { policies, reason, passes }: EvaluatedPolicies,
  direction: Direction,
  resources: PolicyResources,
): readonly AppliedPolicy[] {
  const decisive = new Map(passes.map(({ policy, index }) => [policy, index]));
  const last = reason?.kind === "rule" ? policies.indexOf(reason.policy) : policies.length - 1;
  const passedTiers = new Map<string, number>(passes.map(({ policy }) => [policy.spec.tier, policies.indexOf(policy)]));
  return policies.map((policy, position) => {
    const { tier, order } = policy.spec;
    const passedAt = passedTiers.get(tier);
    const isReached = position <= last && (passedAt === undefined || position <= passedAt);
    const passing = decisive.get(policy);
    const decides = reason?.kind === "rule" && reason.policy === policy;
    const outcome = decides
      ? "decides"
      : passing !== undefined
        ? `${ruleTitle(direction, passing)} passes to the next tier`
        : isReached
          ? "no rule matches"
          : "not reached";
    const problem = problemIn(policy, resources);
    return {
      ...authoredPolicy(policy),
      tier,
      ...(order === undefined || !Number.isFinite(order) ? {} : { order }),
      ...stageField(policy),
      outcome: problem === undefined ? outcome : `${outcome}; denies everything because ${problem}`,
    };
  });
}

function stageField(policy: AnyPolicy): Pick<AppliedPolicy, "stage"> {
  if (policy.kind === "NetworkPolicy") return {};
  if (policy.spec.doNotTrack) return { stage: "doNotTrack" };
  return policy.spec.preDNAT ? { stage: "preDNAT" } : {};
}

/** Judgements contain what is enforced of a policy, not the policy itself. */
function problemIn(policy: AnyPolicy, resources: PolicyResources): string | undefined {
  const all: readonly AnyPolicy[] = [...resources.networkPolicies, ...resources.globalNetworkPolicies];
  const stored = all.find(({ kind, metadata }) => kind === policy.kind && metadata === policy.metadata);
  return stored && problemOf(stored, resources);
}
