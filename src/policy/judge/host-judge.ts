/**
 * What do the host endpoints of a node say about a packet? Slow and obvious like the judge of workloads, and independent
 * of the compiler. A packet passes the stages of its way one after another; the first that denies it decides.
 */
import { isSameAddress, parseAddress } from "../../ip/address.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import { hasPrefix, workloadPrefixes } from "../../model/interface-prefix.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { Direction } from "../effective-rule.ts";
import type { HostInterface } from "../host-interface.ts";
import {
  decide,
  inOrder,
  isBeforeRouting,
  type Judgement,
  judge,
  policiesOf,
  type Reason,
  type TierOutcome,
} from "./judge.ts";
import type { Packet } from "./packet.ts";
import type { AnyPolicy, PolicyResources } from "./resources.ts";

/** The way of a packet, by the interfaces that it passes. */
export type Passage =
  | { readonly kind: "to host"; readonly from: string }
  | { readonly kind: "from host"; readonly to: string }
  | { readonly kind: "forwarded"; readonly from: string; readonly to: string };

/** What the host endpoints depend on beside the resources of the datastore. */
export interface HostFacts {
  readonly node: string;
  readonly interfaces: readonly HostInterface[];
  readonly settings: Pick<
    NodeAgentSettings,
    "failsafeInboundHostPorts" | "failsafeOutboundHostPorts" | "interfacePrefix"
  >;
}

export interface HostJudgement {
  readonly verdict: "allow" | "deny";
  /** What decided; absent if no host endpoint concerns the packet. */
  readonly by?: InterfaceJudgement;
}

/** What one host endpoint says about a packet that passes its interface. */
export interface InterfaceJudgement {
  readonly endpoint: HostEndpoint;
  /** Ingress: it comes in through the interface, also if it is forwarded. */
  readonly direction: Direction;
  readonly verdict: "allow" | "deny";
  /** What decided. */
  readonly stage: "doNotTrack" | "preDNAT" | "neighbour discovery" | "failsafe" | "policies" | "applyOnForward";
  /** The policies that were evaluated, stage by stage. Only the last one can have a reason for the verdict. */
  readonly evaluated: readonly EvaluatedPolicies[];
  /** What would decide if the port of the packet were not a failsafe port. Present if and only if that is the stage. */
  readonly withoutFailsafe?: InterfaceJudgement;
}

type FailsafePort = HostFacts["settings"]["failsafeInboundHostPorts"][number];

export type EvaluatedPolicies = Pick<Judgement, "policies" | "passes"> & { readonly reason?: Reason };

const UNCONCERNED: HostJudgement = { verdict: "allow" };

export function judgeAtHost(
  packet: Packet,
  passage: Passage,
  facts: HostFacts,
  resources: PolicyResources,
): HostJudgement {
  const at = (interfaceName: string, direction: Direction): HostJudgement => {
    const endpoint = hostEndpointOf(interfaceName, facts, resources);
    if (endpoint === undefined) return UNCONCERNED;
    const isForwarded = passage.kind === "forwarded";
    const by = judgeInterface({ packet, endpoint, direction, isForwarded, settings: facts.settings }, resources);
    return { verdict: by.verdict, by };
  };
  switch (passage.kind) {
    case "to host":
      return at(passage.from, "ingress");
    case "from host":
      return at(passage.to, "egress");
    case "forwarded": {
      const incoming = at(passage.from, "ingress");
      const outgoing = at(passage.to, "egress");
      return incoming.verdict === "deny" || outgoing.by === undefined ? incoming : outgoing;
    }
  }
}

export interface InterfacePacket {
  readonly packet: Packet;
  readonly endpoint: HostEndpoint;
  readonly direction: Direction;
  /** Otherwise it is from or to the host itself. */
  readonly isForwarded: boolean;
  readonly settings: HostFacts["settings"];
}

export function judgeInterface(judged: InterfacePacket, resources: PolicyResources): InterfaceJudgement {
  const { endpoint, direction, isForwarded } = judged;
  const stages = direction === "ingress" ? (["doNotTrack", "preDNAT"] as const) : (["doNotTrack"] as const);
  const evaluated: EvaluatedPolicies[] = [];
  // The interface that a forwarded packet leaves by sees it only after routing.
  for (const stage of isForwarded && direction === "egress" ? [] : stages) {
    const outcome = beforeRouting(judged, stage, resources);
    if (outcome === undefined) continue;
    const { decided, policies, passes } = outcome;
    if (decided === undefined) evaluated.push({ policies, passes });
    else {
      const [verdict, reason] = decided;
      return { endpoint, direction, verdict, stage, evaluated: [...evaluated, { policies, passes, reason }] };
    }
  }
  const last = isForwarded ? forwarded(judged, resources) : ofHost(judged, resources);
  const judgement = { endpoint, direction, ...last, evaluated: [...evaluated, ...last.evaluated] };
  if (last.stage !== "failsafe") return judgement;
  return { ...judgement, withoutFailsafe: judgeInterface(withoutItsFailsafe(judged), resources) };
}

/** doNotTrack, then preDNAT policies. What one of them accepts, no later policy of the endpoint judges. */
function beforeRouting(
  after: InterfacePacket,
  option: "doNotTrack" | "preDNAT",
  resources: PolicyResources,
): (TierOutcome & { readonly policies: readonly AnyPolicy[] }) | undefined {
  const judged = { ...after, packet: after.packet.beforeNat ?? after.packet };
  const { packet, endpoint, direction } = judged;
  const isReply = option === "doNotTrack" && isReplyOfFailsafe(judged);
  if (isNeighbourDiscovery(packet) || isFailsafe(judged) || isReply) return undefined;
  const policies = policiesOf(endpoint, direction, resources).filter((policy) => hasOption(policy, option));
  return { ...decide(packet, { policies, direction, endpoint }, resources), policies: inOrder(policies, resources) };
}

type Outcome = Pick<InterfaceJudgement, "verdict" | "stage" | "evaluated">;

function ofHost(judged: InterfacePacket, resources: PolicyResources): Outcome {
  const { packet, endpoint, direction } = judged;
  if (isNeighbourDiscovery(packet)) return { verdict: "allow", stage: "neighbour discovery", evaluated: [] };
  if (isFailsafe(judged)) return { verdict: "allow", stage: "failsafe", evaluated: [] };
  const judgement = judge(packet, endpoint, direction, resources);
  return { verdict: judgement.verdict, stage: "policies", evaluated: [judgement] };
}

/** Without such policies everything is forwarded, and profiles do not count. */
function forwarded({ packet, endpoint, direction }: InterfacePacket, resources: PolicyResources): Outcome {
  const policies = policiesOf(endpoint, direction, resources).filter(
    (policy) => hasOption(policy, "applyOnForward") && !isBeforeRouting(policy),
  );
  const { decided, passes } = decide(packet, { policies, direction, endpoint }, resources);
  const [verdict, reason] = decided ?? (["allow"] as const);
  const evaluated = { policies: inOrder(policies, resources), passes, ...(reason === undefined ? {} : { reason }) };
  return { verdict, stage: "applyOnForward", evaluated: [evaluated] };
}

function hasOption(policy: AnyPolicy, option: "doNotTrack" | "preDNAT" | "applyOnForward"): boolean {
  return policy.kind === "GlobalNetworkPolicy" && policy.spec[option];
}

function isFailsafe(judged: InterfacePacket): boolean {
  return judged.settings[failsafeField(judged)].some((port) => isPortOf(port, judged.packet));
}

/** The same packet, as if the administrator had removed its port from the failsafe ports. */
function withoutItsFailsafe(judged: InterfacePacket): InterfacePacket {
  const { packet, settings } = judged;
  const field = failsafeField(judged);
  const others = settings[field].filter((port) => !isPortOf(port, packet));
  return { ...judged, settings: { ...settings, [field]: others } };
}

function failsafeField({ direction }: InterfacePacket) {
  return direction === "ingress" ? "failsafeInboundHostPorts" : "failsafeOutboundHostPorts";
}

function isPortOf({ protocol, port }: FailsafePort, packet: Packet): boolean {
  return protocolNumber(protocol) === packet.protocol && port === packet.destinationPort;
}

function isReplyOfFailsafe({ packet, direction, settings }: InterfacePacket): boolean {
  const { failsafeInboundHostPorts, failsafeOutboundHostPorts } = settings;
  const ports = direction === "ingress" ? failsafeOutboundHostPorts : failsafeInboundHostPorts;
  return ports.some(({ protocol, port }) => protocolNumber(protocol) === packet.protocol && port === packet.sourcePort);
}

const ICMPV6 = 58;
const NEIGHBOUR_DISCOVERY = [130, 131, 132, 133, 134, 135, 136, 143];

function isNeighbourDiscovery({ protocol, icmp }: Packet): boolean {
  return protocol === ICMPV6 && icmp !== undefined && NEIGHBOUR_DISCOVERY.includes(icmp.type);
}

/** The host endpoint that names the interface, or expects an address of it, or is for all interfaces. */
export function hostEndpointOf(
  interfaceName: string,
  { node, interfaces, settings }: HostFacts,
  { hostEndpoints }: PolicyResources,
): HostEndpoint | undefined {
  if (hasPrefix(interfaceName, workloadPrefixes(settings.interfacePrefix))) return undefined;
  const here = hostEndpoints
    .filter(({ spec }) => spec.node === node)
    .toSorted((left, right) => (left.metadata.name < right.metadata.name ? -1 : 1));
  const addresses = interfaces.filter(({ name }) => name === interfaceName).flatMap((each) => each.addresses);
  const expects = ({ spec }: HostEndpoint) =>
    (spec.expectedIPs ?? [])
      .flatMap((text) => parseAddress(text) ?? [])
      .some((expected) => addresses.some((address) => isSameAddress(address, expected)));
  return (
    here.find(({ spec }) => spec.interfaceName === interfaceName) ??
    here.find((endpoint) => endpoint.spec.interfaceName === undefined && expects(endpoint)) ??
    (interfaceName === "lo" ? undefined : here.find(({ spec }) => spec.interfaceName === "*"))
  );
}
