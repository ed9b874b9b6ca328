/**
 * Would this node allow an open connection, if it began now? The judge on its first packet, at the points of this node that
 * judge such a packet in the kernel. Pure.
 *
 *   source          workload of this node    its egress policies; to this host, also defaultEndpointToHostAction
 *                   this host                the host endpoint of the interface towards who answers
 *   who answers     workload of this node    its ingress policies, unless this host is the source
 *                   this host                the host endpoint of the interface towards the source
 *   between others                           the host endpoints of the interfaces towards both
 *
 * The connection table does not say which interfaces a packet passed: those of this host by which it reaches the other end count.
 * What cannot be told for certain is not denied.
 */
import { type Address, formatAddress, isSameAddress } from "../../ip/address.ts";
import type { NodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { TCP } from "../../model/protocols.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { addressesOfEndpoint } from "../compile/entity.ts";
import type { HostInterface } from "../host-interface.ts";
import { hostEndpointOf, judgeAtHost } from "./host-judge.ts";
import type { PacketEnd } from "./host-passages.ts";
import { IndexedJudge, namedSourcePorts } from "./indexed-judge.ts";
import type { Packet } from "./packet.ts";
import type { PolicyResources } from "./resources.ts";

/** As the kernel tracks it: what its first packet said, and who answers it. */
export interface OpenConnection {
  readonly protocol: number;
  readonly source: Address;
  readonly destination: Address;
  /** After the translation of the destination; otherwise the destination. */
  readonly answering: Address;
  /** Absent if the protocol has none. */
  readonly ports?: { readonly source: number; readonly destination: number; readonly answering: number };
  /** Of ICMP. */
  readonly icmp?: { readonly type: number; readonly code: number };
}

/** What is known of this node beside the resources. */
export interface JudgingNode {
  readonly name: string;
  readonly settings: NodeAgentSettings;
  /** Those whose packets the kernel judges. */
  readonly workloads: Iterable<WorkloadEndpoint>;
  readonly interfaces: readonly HostInterface[];
  /** The name of the interface by which this node reaches the address. */
  readonly interfaceTowards: (address: Address) => string | undefined;
}

export class OpenConnectionJudge {
  private readonly judge: IndexedJudge;
  private readonly workloads = new Map<string, WorkloadEndpoint | "several">();
  private readonly ownAddresses: ReadonlySet<string>;
  private readonly hasHostEndpoints: boolean;
  private readonly isNamedSource: (port: number) => boolean;
  private readonly known = new Map<string, boolean>();

  constructor(
    private readonly resources: PolicyResources,
    private readonly node: JudgingNode,
  ) {
    this.judge = new IndexedJudge(resources, () => node.settings);
    for (const endpoint of node.workloads) {
      for (const address of addressesOfEndpoint(endpoint)) {
        const key = formatAddress(address);
        this.workloads.set(key, this.workloads.has(key) ? "several" : endpoint);
      }
    }
    this.ownAddresses = new Set(node.interfaces.flatMap(({ addresses }) => addresses.map(formatAddress)));
    this.hasHostEndpoints = resources.hostEndpoints.some(({ spec }) => spec.node === node.name);
    this.isNamedSource = namedSourcePorts(resources);
  }

  isDenied(connection: OpenConnection): boolean {
    const { protocol, source, destination, answering, ports, icmp } = connection;
    const addresses = [source, destination, answering].map(formatAddress);
    const sourcePort = ports !== undefined && this.isTold(ports.source) ? ports.source : "";
    const key = [
      protocol,
      ...addresses,
      sourcePort,
      ports?.destination,
      ports?.answering,
      icmp?.type,
      icmp?.code,
    ].join();
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const isDenied = this.decide(connection);
    this.known.set(key, isDenied);
    return isDenied;
  }

  /** Hardly any rule does, and each connection has another one. Host endpoints have failsafe ports. */
  private isTold(port: number): boolean {
    return this.hasHostEndpoints || this.isNamedSource(port);
  }

  private decide(connection: OpenConnection): boolean {
    const { source: from, answering: to } = connection;
    const [source, destination] = [this.endAt(from), this.endAt(to)];
    if (source === undefined || destination === undefined || isOfTunnel(connection, source, destination, this.node))
      return false;
    const packet = packetOf(connection);
    const [isHere, isThere] = [isOfNode(source), isOfNode(destination)];
    // Between workloads of this node, or this node and them, a packet passes no interface of the host.
    if (!this.hasHostEndpoints || (isHere && isThere)) return this.isDeniedBetween(packet, source, destination);
    if (!isHere && !isThere) return this.isDeniedOnTheWay(packet);
    const hostEndpoint = this.hostEndpointTowards(isHere ? to : from);
    if (hostEndpoint === undefined) return this.isDeniedAtWorkloads(packet, source, destination);
    const ends = isHere
      ? { source: { ...source, hostEndpoint }, destination }
      : { source, destination: { ...destination, hostEndpoint } };
    return this.judge.explain({ packet, ...ends }).verdict === "deny";
  }

  private isDeniedBetween(packet: Packet, source: PacketEnd, destination: PacketEnd): boolean {
    return this.judge.explain({ packet, source, destination }).verdict === "deny";
  }

  /** Whoever has the interface that it passes, no host endpoint does. */
  private isDeniedAtWorkloads(packet: Packet, source: PacketEnd, destination: PacketEnd): boolean {
    const isDenied = (end: PacketEnd, direction: "egress" | "ingress") =>
      end.workload !== undefined && this.judge.verdict(packet, end.workload, direction) === "deny";
    return isDenied(source, "egress") || isDenied(destination, "ingress");
  }

  /** From another machine to another one. */
  private isDeniedOnTheWay(packet: Packet): boolean {
    const { name: node, settings, interfaces, interfaceTowards } = this.node;
    const [from, to] = [packet.source, packet.destination].map(interfaceTowards);
    if (from === undefined || to === undefined) return false;
    const passage = { kind: "forwarded", from, to } as const;
    return judgeAtHost(packet, passage, { node, settings, interfaces }, this.resources).verdict === "deny";
  }

  /** `undefined`: several workloads claim the address, and the kernel knows which one has it. */
  private endAt(address: Address): PacketEnd | undefined {
    const text = formatAddress(address);
    const workload = this.workloads.get(text);
    if (workload === "several") return undefined;
    if (workload !== undefined) return { workload };
    return this.ownAddresses.has(text) || isLoopback(address) ? { node: this.node.name } : {};
  }

  private hostEndpointTowards(address: Address): PacketEnd["hostEndpoint"] {
    const { name: node, settings, interfaces } = this.node;
    const interfaceName = this.node.interfaceTowards(address);
    if (interfaceName === undefined) return undefined;
    return hostEndpointOf(interfaceName, { node, settings, interfaces }, this.resources);
  }
}

function packetOf({ protocol, source, destination, answering, ports, icmp }: OpenConnection): Packet {
  const to = (address: Address, port: number | undefined): Packet => ({
    ...{ source, destination: address, protocol },
    ...(ports === undefined || port === undefined ? {} : { sourcePort: ports.source, destinationPort: port }),
    ...(icmp === undefined ? {} : { icmp }),
  });
  const packet = to(answering, ports?.answering);
  const isRewritten = !isSameAddress(destination, answering) || ports?.destination !== ports?.answering;
  return isRewritten ? { ...packet, beforeNat: to(destination, ports?.destination) } : packet;
}

function isOfNode({ workload, node }: PacketEnd): boolean {
  return workload !== undefined || node !== undefined;
}

const IPIP = 4;
const UDP = 17;
const USUAL_VXLAN_PORT = 4789;

/** Policies of hosts do not cut the tunnels between nodes. */
function isOfTunnel(
  { protocol, ports }: OpenConnection,
  source: PacketEnd,
  destination: PacketEnd,
  { settings }: JudgingNode,
): boolean {
  if (source.workload !== undefined || destination.workload !== undefined) return false;
  const port = ports?.answering;
  if (protocol === IPIP || ((protocol === TCP || protocol === UDP) && port === PROBE_PORT)) return true;
  return protocol === UDP && (port === settings.vxlanPort || port === USUAL_VXLAN_PORT);
}

const LOOPBACK_NETWORK = 127n;

function isLoopback({ family, value }: Address): boolean {
  return family === 4 ? value >> 24n === LOOPBACK_NETWORK : value === 1n;
}
