/**
 * Why a recorded flow was allowed or denied: the judge's reasoning about this very connection, with the resources as they were
 * when it began. Pure.
 *
 * The kernel decided, and its rule is in the record. The judge computes from the resources alone, so that the two can be
 * compared: if they disagree, the explanation says so.
 */
import { type Address, isSameAddress, parseAddress } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import type { NodeAgentSettings } from "../model/node-agent-configuration.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { type ExplainedPacket, explain } from "../policy/judge/explain.ts";
import type { AppliedPolicy, ExplainedSide } from "../policy/judge/explain-side.ts";
import type { PacketEnd } from "../policy/judge/host-passages.ts";
import type { Packet } from "../policy/judge/packet.ts";
import type { PolicyResources } from "../policy/judge/resources.ts";
import { isNameOf, originWords, type RuleOrigin, readRuleComment } from "../policy/table/rule-comment.ts";
import type { FlowExplanation } from "./flow-answer.ts";
import { type FlowDecision, type FlowEnd, type FlowRecord, type Point, UNKNOWN_RULES } from "./flow-record.ts";

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
  if (judged === undefined) return { flow, missing: ["the addresses of the record cannot be read"] };
  const ends = endsOf(flow, resources);
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

/** No policy judged it: the kernel accepts it because of another connection. */
function reasonNotToExplain({ relatedTo }: FlowRecord): string | undefined {
  if (relatedTo === undefined) return undefined;
  return `no rule judged it: it exists because of ${relatedTo}, which was judged; explain that one`;
}

function packetOf(flow: FlowRecord): Pick<ExplainedPacket, "packet" | "leavesAs" | "via"> | undefined {
  const { source, destination, backend, seenAs, node } = flow;
  const [from, to] = [parseAddress(source.address), parseAddress(destination.address)];
  const arrives = backend === undefined ? to : parseAddress(backend.address);
  const leavesAs = seenAs && parseAddress(seenAs.address);
  if (from === undefined || to === undefined || arrives === undefined) return undefined;
  const sent = packetTo(flow, from, to, destination.port);
  if (backend === undefined) return { packet: sent, ...(leavesAs === undefined ? {} : { leavesAs }) };
  const packet = { ...packetTo(flow, from, arrives, backend.port), beforeNat: sent };
  const hidden = leavesAs === undefined ? {} : { leavesAs };
  // A node on the way of a connection from elsewhere rewrites it, not that of the source.
  return isOn(source, node) ? { packet, ...hidden } : { packet, via: { node, ...hidden } };
}

function packetTo(
  { protocol, source, icmp }: FlowRecord,
  from: Address,
  to: Address,
  destinationPort: number | undefined,
): Packet {
  return {
    ...{ source: from, destination: to, protocol },
    ...(source.port === undefined ? {} : { sourcePort: source.port }),
    ...(destinationPort === undefined ? {} : { destinationPort }),
    ...(icmp === undefined ? {} : { icmp }),
  };
}

function isOn({ kind, name, node }: FlowEnd, place: string): boolean {
  return kind === "host" ? name === place : node === place;
}

interface Ends {
  readonly source: PacketEnd;
  readonly destination: PacketEnd;
}

function endsOf({ source, destination, backend }: FlowRecord, { endpoints }: PolicyResources): Ends {
  const endOf = (end: FlowEnd): PacketEnd => {
    if (end.kind === "host") return { node: end.name };
    const workload = isWorkload(end) ? endpoints.find((endpoint) => isOfEnd(endpoint, end)) : undefined;
    return workload === undefined ? {} : { workload };
  };
  return { source: endOf(source), destination: endOf(backend ?? destination) };
}

function isWorkload({ kind }: FlowEnd): boolean {
  return kind === "pod" || kind === "container";
}

function isOfEnd({ spec }: WorkloadEndpoint, { address }: FlowEnd): boolean {
  const wanted = parseAddress(address);
  const own = [...(spec.ipNetworks ?? []), ...(spec.ipNATs ?? []).map(({ externalIP }) => externalIP)];
  return own.some((text) => {
    const read = parseInterfaceAddress(text)?.address ?? parseAddress(text);
    return read !== undefined && wanted !== undefined && isSameAddress(read, wanted);
  });
}

function missingEndpoints({ source, destination, backend }: FlowRecord, ends: Ends): readonly string[] {
  const target = backend ?? destination;
  return [
    ...(isWorkload(source) && ends.source.workload === undefined ? [source] : []),
    ...(isWorkload(target) && ends.destination.workload === undefined ? [target] : []),
  ].map((end) => `the endpoint of ${titleOf(end)} is not kept any more, so its policies are not shown`);
}

function titleOf({ kind, namespace, name, address }: FlowEnd): string {
  if (name === undefined || kind === "outside" || kind === "hidden") return address;
  return kind === "host" ? `node ${name}` : namespace === undefined ? name : `${namespace}/${name}`;
}

function unknownWords({ point, unknown }: FlowDecision): readonly string[] {
  return unknown === undefined ? [] : [`which rule decided (${point}): ${UNKNOWN_RULES[unknown]}`];
}

type ExplainedFlowSide = NonNullable<FlowExplanation["sides"]>[number];

function explainedSide(
  side: ExplainedSide,
  { flow, ...ends }: Ends & { readonly flow: FlowRecord },
): ExplainedFlowSide {
  const { direction, verdict, hostEndpoint, policies, reason, hint } = side;
  const end = direction === "egress" ? flow.source : (flow.backend ?? flow.destination);
  const node = nodeOf(side, ends);
  const elsewhere = node === undefined || node === flow.node ? [] : [`judged on node ${node}, not on ${flow.node}`];
  return {
    direction,
    of: hostEndpoint === undefined ? titleOf(end) : `host endpoint ${hostEndpoint.name} (node ${hostEndpoint.node})`,
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
function nodeOf({ direction, hostEndpoint }: ExplainedSide, ends: Ends): string | undefined {
  if (hostEndpoint !== undefined) return hostEndpoint.node;
  const { workload, node } = direction === "egress" ? ends.source : ends.destination;
  return workload?.spec.node ?? node;
}

/** What the kernel of this node did, and the judge would not. */
function differences(flow: FlowRecord, sides: readonly ExplainedSide[], ends: Ends): readonly string[] {
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
