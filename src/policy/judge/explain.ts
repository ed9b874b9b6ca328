/**
 * Who decides about the first packet of a connection, and why: the egress policies of its source, then the ingress
 * policies of its destination; on its way, the host endpoints of the interfaces that it passes. Pure.
 */
import { type Address, isSameAddress } from "../../ip/address.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { policyLimits } from "../policy-size.ts";
import { connectionSide, requestSide } from "./explain-request.ts";
import {
  type ExplainedHostEndpoint,
  type ExplainedSide,
  hostEndpointSide,
  unjudgedSide,
  workloadSide,
} from "./explain-side.ts";
import { judgeInterface } from "./host-judge.ts";
import { type HostPassage, hostPassages, nodeOf, type PacketEnd } from "./host-passages.ts";
import type { Packet, PacketRequest } from "./packet.ts";
import type { PolicyResources } from "./resources.ts";

export interface ExplainedPacket {
  /** As it arrives; `beforeNat` is what was sent. */
  readonly packet: Packet;
  readonly source: PacketEnd;
  readonly destination: PacketEnd;
  readonly settingsOf: (node: string) => NodeAgentSettings;
  /** Over the connection that the packet begins. */
  readonly request?: PacketRequest;
  /** The source address that other nodes see, if the node of the source masquerades. */
  readonly leavesAs?: Address;
  /** The node that rewrites the destination. Absent: that of the source, or nobody does. */
  readonly via?: Via;
  /** The packet is to the loopback interface of its source. */
  readonly isToLoopback?: boolean;
  /** Whether the node has no policy table, so that what profiles do not allow passes too. */
  readonly isUnenforcedAt?: (node: string) => boolean;
}

export interface Via {
  readonly node: string;
  /** The source address that the next node sees, if this one masquerades. */
  readonly leavesAs?: Address;
}

export interface Explanation {
  /** `depends`: on the interface of a host that the packet passes. */
  readonly verdict: Verdict;
  /** In the order in which a packet passes them. */
  readonly sides: readonly ExplainedSide[];
}

export type Verdict = "allow" | "deny" | "depends";

export function explain(explained: ExplainedPacket, resources: PolicyResources): Explanation {
  const { packet, source, destination, via, leavesAs } = explained;
  const isRewritten = packet.beforeNat !== undefined;
  const isToItself = explained.isToLoopback === true || isSameAddress(packet.source, packet.destination);
  if (source.workload !== undefined && !isRewritten && isToItself) {
    const reason = "a packet of a workload to its own address never leaves it";
    return { verdict: "allow", sides: [unjudgedSide("egress", reason)] };
  }
  const { leaving, between, entering } = hostPassages(explained, resources);
  const sent = isRewrittenAfter(explained) ? (packet.beforeNat ?? packet) : packet;
  const outside = withSource(packet, leavesAs);
  const arriving = withSource(packet, via?.leavesAs ?? leavesAs);
  const enforcedAt = ({ spec }: WorkloadEndpoint): PolicyResources => ({
    ...resources,
    policyLimits: policyLimits(explained.settingsOf(spec.node ?? "")),
  });
  const asEnforced = (end: PacketEnd) => (side: ExplainedSide) => {
    const isUnenforced = side.verdict === "deny" && explained.isUnenforcedAt?.(nodeOf(end) ?? "") === true;
    return certain(isUnenforced ? unenforced(side) : side);
  };
  const steps: readonly Step[] = [
    ...(source.workload === undefined
      ? []
      : [workloadSide(sent, source.workload, "egress", enforcedAt(source.workload))].map(asEnforced(source))),
    ...(leaving === undefined ? [] : [hostStep(leaving, { ...explained, packet: sent }, resources)]),
    ...between.map((passage) => hostStep(passage, { ...explained, packet: outside }, resources)),
    ...(entering === undefined ? [] : [hostStep(entering, { ...explained, packet: arriving }, resources)]),
    ...(isToOwnHost(explained) ? [asEnforced(destination)(toOwnHostSide(explained))] : []),
    ...(destination.workload === undefined
      ? []
      : ingressSides({ ...explained, packet: arriving }, destination.workload, enforcedAt(destination.workload)).map(
          asEnforced(destination),
        )),
  ];
  return { verdict: verdictOf(steps), sides: steps.flatMap(({ sides }) => sides) };
}

/** Otherwise the packet stays on the node where it was sent, or is rewritten there. */
function isRewrittenAfter({ source, via }: ExplainedPacket): boolean {
  return via !== undefined && via.node !== nodeOf(source);
}

function withSource(packet: Packet, source: Address | undefined): Packet {
  if (source === undefined) return packet;
  const { beforeNat } = packet;
  return { ...packet, source, ...(beforeNat === undefined ? {} : { beforeNat: { ...beforeNat, source } }) };
}

/** One place of the packet's way; several sides if it is not certain which interface it passes. */
interface Step {
  readonly verdict: Verdict;
  readonly sides: readonly ExplainedSide[];
}

function certain(side: ExplainedSide): Step {
  return { verdict: side.verdict, sides: [side] };
}

function unenforced(side: ExplainedSide): ExplainedSide {
  const reason = `nothing is enforced; once there is a policy it is denied: ${side.reason}`;
  return { ...side, verdict: "allow", isUnenforced: true, reason };
}

function verdictOf(steps: readonly Step[]): Verdict {
  const verdicts = new Set(steps.map(({ verdict }) => verdict));
  return verdicts.has("deny") ? "deny" : verdicts.has("depends") ? "depends" : "allow";
}

function hostStep(passage: HostPassage, { packet, settingsOf }: ExplainedPacket, resources: PolicyResources): Step {
  const { node, direction, isForwarded, candidates, mayPassOther } = passage;
  const settings = settingsOf(node);
  const isUncertain = mayPassOther || candidates.length > 1;
  const sides = candidates.map((endpoint) => {
    const judgement = judgeInterface({ packet, endpoint, direction, isForwarded, settings }, resources);
    const { interfaceName } = endpoint.spec;
    const named: ExplainedHostEndpoint = {
      ...{ name: endpoint.metadata.name, node },
      ...(interfaceName === undefined ? {} : { interfaceName }),
      ...(isUncertain ? { isUncertain } : {}),
    };
    return hostEndpointSide({ packet, judgement }, named, resources);
  });
  const verdicts = new Set([...sides.map(({ verdict }) => verdict), ...(mayPassOther ? ["allow" as const] : [])]);
  const [only = "allow"] = verdicts;
  return { verdict: verdicts.size > 1 ? "depends" : only, sides };
}

function isToOwnHost(explained: ExplainedPacket): boolean {
  const { source, destination } = explained;
  const isOwn = destination.node !== undefined && source.workload?.spec.node === destination.node;
  return isOwn && !isRewrittenAfter(explained);
}

function toOwnHostSide({ destination: { node = "" }, settingsOf }: ExplainedPacket): ExplainedSide {
  const action = settingsOf(node).defaultEndpointToHostAction;
  const reason = `packets of its own workloads to node "${node}": defaultEndpointToHostAction is ${action}`;
  return { ...unjudgedSide("ingress", reason), verdict: action === "Drop" ? "deny" : "allow" };
}

function ingressSides(
  explained: ExplainedPacket,
  destination: WorkloadEndpoint,
  resources: PolicyResources,
): readonly ExplainedSide[] {
  const { packet, source, request } = explained;
  const isOfOwnHost = source.node !== undefined && destination.spec.node === source.node;
  const isFromOwnHost = isOfOwnHost && !isRewrittenAfter(explained);
  // Only packets: a sidecar cannot tell its node from others whose packets the node masquerades.
  const reason = `node "${source.node}" always reaches its own workloads, for example with health probes`;
  const connection = isFromOwnHost ? unjudgedSide("ingress", reason) : connectionSide(packet, destination, resources);
  if (request === undefined || connection.verdict === "deny") return [connection];
  const { hint: _, ...side } = connection;
  return [side, requestSide({ packet, request }, destination, resources)];
}
