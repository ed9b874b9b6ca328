/**
 * Packets get from each node and each pod to each pod exactly where routing promises it and policy (the slow judge)
 * allows it. They are followed hop by hop through the kernels, and so are the replies.
 */
import { type Address, formatAddress, isSameAddress, parseAddress } from "../../src/ip/address.ts";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { explain } from "../../src/policy/judge/explain.ts";
import type { PacketEnd } from "../../src/policy/judge/host-passages.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import type { NetworkNamespace } from "../kernel/model.ts";
import { type Invariant, type LivingAttachment, livingAttachments, type World } from "./invariant.ts";
import { kernelRules } from "./packets/kernel-rules.ts";
import type { EnterHost, Machine, Network } from "./packets/network.ts";
import { type Probes, probesFor, replyTo, titleOf } from "./packets/probes.ts";
import { promiseOf } from "./packets/promise.ts";
import { chosenSource, walk } from "./packets/walk.ts";
import { type PolicyState, policyStateOf } from "./policy-state.ts";

/** More would only say the same again. */
const MOST_VIOLATIONS = 5;
/** Each costs about a millisecond. */
const MOST_WAYS = 250;

export function reachableWhereAllowed(enter: EnterHost = kernelRules): Invariant {
  return {
    name: "reachable where allowed",
    when: "at rest",
    check(world) {
      const found: string[] = [];
      for (const violation of new Survey(world, enter).violations()) {
        found.push(violation);
        if (found.length === MOST_VIOLATIONS) break;
      }
      return found;
    },
  };
}

/** A namespace that sends or receives, and what the records say of it. */
interface Station {
  readonly title: string;
  readonly machine: Machine;
  readonly namespace: NetworkNamespace;
  readonly end: PacketEnd;
  /** Of a pod; a host chooses by its routes. */
  readonly addresses: readonly Address[];
}

interface Way {
  readonly from: Station;
  readonly to: Station;
  readonly destination: Address;
}

class Survey {
  private readonly state: PolicyState;
  private readonly network: Network;
  private readonly hosts: readonly Station[];

  constructor(
    private readonly world: World,
    enter: EnterHost,
  ) {
    this.state = policyStateOf(world.records);
    const machines = Array.from(world.nodes.values()).flatMap(({ name, host }) =>
      host === undefined ? [] : [{ name, root: host.root, segment: host.segment }],
    );
    this.network = { machines, enter };
    this.hosts = machines
      .filter(({ name }) => world.nodes.get(name)?.isRegistered === true)
      .map((machine) => ({
        ...{ title: `node ${machine.name}`, machine, namespace: machine.root },
        ...{ end: { node: machine.name }, addresses: [] },
      }));
  }

  *violations(): Generator<string> {
    const pods: Station[] = [];
    for (const attachment of livingAttachments(this.world)) {
      const pod = this.podStation(attachment);
      if (typeof pod === "string") yield pod;
      else if (pod !== undefined) pods.push(pod);
    }
    const probes = probesFor(this.state.resources);
    const ways = pods.flatMap((to) =>
      [...this.hosts, ...pods]
        .filter((from) => from !== to)
        .flatMap((from) => to.addresses.map((destination) => ({ from, to, destination }))),
    );
    // Each time others, if there are too many.
    const every = Math.ceil(ways.length / MOST_WAYS);
    for (const [index, way] of ways.entries())
      if ((index + this.world.now) % every === 0) yield* this.tryWay(way, probes);
  }

  private *tryWay({ from, to, destination }: Way, probes: Probes): Generator<string> {
    const promised = promiseOf(this.state.routing, from.machine.name, to.machine.name, destination);
    if (promised.kind === "unknown") return;
    const isHost = from.addresses.length === 0;
    const source = isHost
      ? chosenSource(from.namespace, destination)
      : from.addresses.find(({ family }) => family === destination.family);
    if (source === undefined) {
      if (isHost && promised.kind === "reachable")
        yield `${from.title} has no route to ${to.title} (${formatAddress(destination)})`;
      return;
    }
    for (const packet of probes(source, destination)) {
      const violation = this.tryPacket({ from, to, packet }, promised);
      if (violation !== undefined) yield violation;
    }
  }

  private podStation(attachment: LivingAttachment): Station | string | undefined {
    const { node, containerId, netnsPath, pod } = attachment;
    const { host } = this.world.nodes.get(node) ?? {};
    if (host === undefined) return undefined;
    const title = `pod ${pod.namespace}/${pod.name} on ${node}`;
    const machine = this.network.machines.find(({ name }) => name === node);
    const namespace = netnsPath === undefined ? undefined : host.namespaceAt(netnsPath);
    if (machine === undefined || namespace === undefined) return `${title} has no network namespace`;
    const addresses = attachment.addresses.flatMap((text) => parseAddress(text) ?? []);
    const workload = this.state.resources.endpoints.find(({ spec }) => spec.containerID === containerId);
    if (workload === undefined || !hasAddresses(workload, addresses))
      return `${title} has no endpoint of its addresses`;
    return { title, machine, namespace, end: { workload }, addresses };
  }

  private tryPacket(
    { from, to, packet }: { readonly from: Station; readonly to: Station; readonly packet: Packet },
    promised: ReturnType<typeof promiseOf>,
  ): string | undefined {
    const { settingsOf, resources } = this.state;
    const explained = { packet, source: from.end, destination: to.end, settingsOf };
    const judged = explain(explained, resources);
    if (judged.verdict === "depends") return undefined;
    const there = walk(this.network, { machine: from.machine, namespace: from.namespace, packet });
    const isThere = there.end === "delivered" && there.namespace === to.namespace;
    const isWanted = promised.kind === "reachable" && judged.verdict === "allow";
    const title = `${titleOf(packet)} from ${from.title} to ${to.title}`;
    if (isThere !== isWanted) {
      const reasons = judged.sides.map(({ direction, verdict, reason }) => `${direction} ${verdict}: ${reason}`);
      const what = isThere ? "arrives, but must not" : "does not arrive, but must";
      return `${title} ${what} (${[promised.reason, ...reasons].join("; ")}); its way: ${there.path.join(" | ")}`;
    }
    if (!isThere) return undefined;
    const back = walk(this.network, {
      ...{ machine: to.machine, namespace: to.namespace, packet: replyTo(there.packet), state: "established" },
    });
    if (back.end === "delivered" && back.namespace === from.namespace) return undefined;
    return `The reply to ${title} does not arrive; its way: ${back.path.join(" | ")}`;
  }
}

function hasAddresses({ spec }: WorkloadEndpoint, addresses: readonly Address[]): boolean {
  const recorded = (spec.ipNetworks ?? []).flatMap((text) => parseInterfaceAddress(text)?.address ?? []);
  return (
    recorded.length === addresses.length &&
    addresses.every((address) => recorded.some((own) => isSameAddress(own, address)))
  );
}
