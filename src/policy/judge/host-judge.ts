/**
 * What do the host endpoints of a node say about a packet? Slow and obvious like the judge of workloads, and independent
 * of the compiler. A packet passes the stages of its way one after another; the first that denies it decides.
 */
import { identity } from "../../identity.ts";
import { isSameAddress, parseAddress } from "../../ip/address.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { Direction } from "../effective-rule.ts";
import type { HostInterface } from "../host-interface.ts";
import { decide, isBeforeRouting, judge, policiesOf } from "./judge.ts";
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
  readonly settings: Pick<NodeAgentSettings, "failsafeInboundHostPorts" | "failsafeOutboundHostPorts">;
}

export interface HostJudgement {
  readonly verdict: "allow" | "deny";
  /** The endpoint and the stage that decided; absent if no host endpoint concerns the packet. */
  readonly by?: { readonly endpoint: HostEndpoint; readonly stage: string };
}

const UNCONCERNED: HostJudgement = { verdict: "allow" };

export function judgeAtHost(
  packet: Packet,
  passage: Passage,
  facts: HostFacts,
  resources: PolicyResources,
): HostJudgement {
  const judging: Judging = { packet, facts, resources };
  switch (passage.kind) {
    case "to host": {
      const endpoint = endpointOf(passage.from, facts, resources);
      if (endpoint === undefined) return UNCONCERNED;
      return beforeRouting(judging, endpoint, "ingress") ?? ofHost(judging, endpoint, "ingress");
    }
    case "from host": {
      const endpoint = endpointOf(passage.to, facts, resources);
      if (endpoint === undefined) return UNCONCERNED;
      return beforeRouting(judging, endpoint, "egress") ?? ofHost(judging, endpoint, "egress");
    }
    case "forwarded": {
      const incoming = endpointOf(passage.from, facts, resources);
      const outgoing = endpointOf(passage.to, facts, resources);
      const first =
        incoming === undefined
          ? UNCONCERNED
          : (beforeRouting(judging, incoming, "ingress") ?? forwarded(judging, incoming, "ingress"));
      if (first.verdict === "deny" || outgoing === undefined) return first;
      return forwarded(judging, outgoing, "egress");
    }
  }
}

interface Judging {
  readonly packet: Packet;
  readonly facts: HostFacts;
  readonly resources: PolicyResources;
}

/** doNotTrack, then preDNAT policies. What one of them accepts, no later policy of the endpoint judges. */
function beforeRouting(after: Judging, endpoint: HostEndpoint, direction: Direction): HostJudgement | undefined {
  const judging = { ...after, packet: after.packet.beforeNat ?? after.packet };
  const { packet, resources } = judging;
  if (isNeighbourDiscovery(packet)) return undefined;
  for (const option of ["doNotTrack", "preDNAT"] as const) {
    if (isFailsafe(judging, direction) || (option === "doNotTrack" && isReplyOfFailsafe(judging, direction))) continue;
    const policies = policiesOf(endpoint, direction, resources).filter((policy) => hasOption(policy, option));
    const { decided } = decide(packet, policies, direction, resources);
    if (decided !== undefined) return { verdict: decided[0], by: { endpoint, stage: option } };
  }
  return undefined;
}

function ofHost(judging: Judging, endpoint: HostEndpoint, direction: Direction): HostJudgement {
  const { packet, resources } = judging;
  if (isNeighbourDiscovery(packet)) return { verdict: "allow", by: { endpoint, stage: "neighbour discovery" } };
  if (isFailsafe(judging, direction)) return { verdict: "allow", by: { endpoint, stage: "failsafe" } };
  return { verdict: judge(packet, endpoint, direction, resources).verdict, by: { endpoint, stage: direction } };
}

/** Without such policies everything is forwarded, and profiles do not count. */
function forwarded({ packet, resources }: Judging, endpoint: HostEndpoint, direction: Direction): HostJudgement {
  const policies = policiesOf(endpoint, direction, resources).filter(
    (policy) => hasOption(policy, "applyOnForward") && !isBeforeRouting(policy),
  );
  const [verdict] = decide(packet, policies, direction, resources).decided ?? (["allow"] as const);
  return { verdict, by: { endpoint, stage: "applyOnForward" } };
}

function hasOption(policy: AnyPolicy, option: "doNotTrack" | "preDNAT" | "applyOnForward"): boolean {
  return policy.kind === "GlobalNetworkPolicy" && policy.spec[option];
}

function isFailsafe({ packet, facts }: Judging, direction: Direction): boolean {
  const { failsafeInboundHostPorts, failsafeOutboundHostPorts } = facts.settings;
  const ports = direction === "ingress" ? failsafeInboundHostPorts : failsafeOutboundHostPorts;
  return ports.some(
    ({ protocol, port }) => protocolNumber(protocol) === packet.protocol && port === packet.destinationPort,
  );
}

function isReplyOfFailsafe({ packet, facts }: Judging, direction: Direction): boolean {
  const { failsafeInboundHostPorts, failsafeOutboundHostPorts } = facts.settings;
  const ports = direction === "ingress" ? failsafeOutboundHostPorts : failsafeInboundHostPorts;
  return ports.some(({ protocol, port }) => protocolNumber(protocol) === packet.protocol && port === packet.sourcePort);
}

const ICMPV6 = 58;
const NEIGHBOUR_DISCOVERY = [130, 131, 132, 133, 134, 135, 136, 143];

function isNeighbourDiscovery({ protocol, icmp }: Packet): boolean {
  return protocol === ICMPV6 && icmp !== undefined && NEIGHBOUR_DISCOVERY.includes(icmp.type);
}

/** The host endpoint that names the interface, or expects an address of it, or is for all interfaces. */
function endpointOf(
  interfaceName: string,
  { node, interfaces }: HostFacts,
  { hostEndpoints }: PolicyResources,
): HostEndpoint | undefined {
  if (interfaceName.startsWith(identity.interfacePrefix)) return undefined;
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
