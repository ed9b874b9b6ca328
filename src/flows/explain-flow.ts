/**
 * Why a recorded flow was allowed or denied: the judge's reasoning about this very connection, with the resources as they were
 * when it began. Pure.
 *
 * The kernel decided, and its rule is in the record. The judge computes from the resources alone, so that the two can be
 * compared: if they disagree, the explanation says so.
 */
import type { NodeAgentSettings } from "../model/node-agent-configuration.ts";
import { type ExplainedPacket, explain } from "../policy/judge/explain.ts";
import type { AppliedPolicy, ExplainedSide } from "../policy/judge/explain-side.ts";
import type { PolicyResources } from "../policy/judge/resources.ts";
import { isNameOf, originWords, type RuleOrigin, readRuleComment } from "../policy/table/rule-comment.ts";
import type { FlowExplanation } from "./flow-answer.ts";
import {
  endsOf,
  type FlowEnds,
  hasAddressOf,
  isWorkload,
  packetOf,
  reasonNotToExplain,
  titleOfEnd,
  UNREADABLE_ADDRESSES,
} from "./flow-packet.ts";
import { type FlowDecision, type FlowRecord, type Point, UNKNOWN_RULES } from "./flow-record.ts";

export interface ExplainMeans {
  /** As the settings of the node were then. */
  readonly settingsOf: (node: string) => NodeAgentSettings;
}

/**
 * `resources`: as they were when the flow began, with the endpoints of its two ends and no others; `undefined`: they are not
 * kept any more.
 */
export function explainFlow(
  flow: FlowRecord,
  resources: PolicyResources | undefined,
  { settingsOf }: ExplainMeans,
): FlowExplanation {
  if (resources === undefined) return { flow, missing: ["the resources as they were then are not kept any more"] };
  const unexplained = reasonNotToExplain(flow);
  if (unexplained !== undefined) return { flow, missing: [unexplained] };
  const judged = packetOf(flow);
  if (judged === undefined) return { flow, missing: [UNREADABLE_ADDRESSES] };
  const ends = endsOf(flow, (end) => resources.endpoints.find((endpoint) => hasAddressOf(endpoint, end)));
  const packet: ExplainedPacket = { ...judged, source: ends.source, destination: ends.destination, settingsOf };
  const { sides } = explain(packet, resources);
  return {
    flow,
    sides: sides.map((side) => explainedSide(side, { flow, ...ends })),
    missing: [
      ...missingEndpoints(flow, ends),
      ...flow.decisions.flatMap((decision) => unknownWords(decision)),
      ...differences(flow, sides, ends),
    ],
  };
}

function missingEndpoints({ source, destination, backend }: FlowRecord, ends: FlowEnds): readonly string[] {
  const target = backend ?? destination;
  return [
    ...(isWorkload(source) && ends.source.workload === undefined ? [source] : []),
    ...(isWorkload(target) && ends.destination.workload === undefined ? [target] : []),
  ].map((end) => `the endpoint of ${titleOfEnd(end)} is not kept any more, so its policies are not shown`);
}

function unknownWords({ point, unknown }: FlowDecision): readonly string[] {
  return unknown === undefined ? [] : [`which rule decided (${point}): ${UNKNOWN_RULES[unknown]}`];
}

type ExplainedFlowSide = NonNullable<FlowExplanation["sides"]>[number];

function explainedSide(
  side: ExplainedSide,
  { flow, ...ends }: FlowEnds & { readonly flow: FlowRecord },
): ExplainedFlowSide {
  const { direction, verdict, hostEndpoint, policies, reason, hint } = side;
  const end = direction === "egress" ? flow.source : (flow.backend ?? flow.destination);
  const node = nodeOf(side, ends);
  const elsewhere = node === undefined || node === flow.node ? [] : [`judged on node ${node}, not on ${flow.node}`];
  return {
    direction,
    of: hostEndpoint === undefined ? titleOfEnd(end) : `host endpoint ${hostEndpoint.name} (node ${hostEndpoint.node})`,
    ...(hostEndpoint === undefined && end.namespace !== undefined ? { namespace: end.namespace } : {}),
    verdict: verdict === "allow" ? "allowed" : "denied",
    reason: [reason, ...(hint === undefined ? [] : [hint]), ...elsewhere].join("; "),
    policies: policies.map((policy) => ({ title: policyTitle(policy), tier: policy.tier, outcome: policy.outcome })),
  };
}

function policyTitle({ kind, namespace, name }: AppliedPolicy): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** Whose kernel judges the side. */
function nodeOf({ direction, hostEndpoint }: ExplainedSide, ends: FlowEnds): string | undefined {
  if (hostEndpoint !== undefined) return hostEndpoint.node;
  const { workload, node } = direction === "egress" ? ends.source : ends.destination;
  return workload?.spec.node ?? node;
}

/** What the kernel of this node did, and the judge would not. */
function differences(flow: FlowRecord, sides: readonly ExplainedSide[], ends: FlowEnds): readonly string[] {
  return flow.decisions.flatMap((decision): readonly string[] => {
    const side = sides.find((each) => pointOf(each) === decision.point && nodeOf(each, ends) === flow.node);
    if (side === undefined || decision.rule === undefined || side.hostEndpoint?.isUncertain === true) return [];
    const origin = readRuleComment(decision.rule);
    const isSameVerdict = decision.verdict === "unknown" || decision.verdict === side.verdict;
    if (isSameVerdict && isDecidedBy(origin, side)) return [];
    const verdict = decision.verdict === "allow" ? "allowed" : "denied";
    return [
      `${decision.point}: recorded is that ${originWords(origin)} ${verdict} it, but by the resources of that time the reason is another one: ${side.reason}; they changed while it began, or this is an error of the agent`,
    ];
  });
}

function pointOf({ direction, hostEndpoint, isRequest }: ExplainedSide): Point | undefined {
  if (isRequest === true) return undefined;
  if (hostEndpoint !== undefined) return direction === "ingress" ? "host in" : "host out";
  return direction === "ingress" ? "workload ingress" : "workload egress";
}

function isDecidedBy(origin: RuleOrigin, { decidedBy, direction, verdict }: ExplainedSide): boolean {
  switch (origin.kind) {
    case "policy": {
      if (decidedBy === undefined) return false;
      const { namespace, name, rule } = decidedBy;
      const title = namespace === undefined ? name : `${namespace}/${name}`;
      return isNameOf(origin.policy, title) && rule === origin.rule && direction === origin.direction;
    }
    case "tier":
      return decidedBy?.kind === "Tier" && isNameOf(origin.tier, decidedBy.name);
    case "profile":
      return decidedBy?.kind === "Profile";
    case "no profile":
      return decidedBy === undefined && verdict === "deny";
    case "no policy":
    case "failsafe":
    case "neighbour discovery":
    case "exempt link":
    case "own workload":
    case "invalid":
    case "other":
      return true;
  }
}
