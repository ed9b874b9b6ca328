/**
 * Packets get from each node and each pod to each pod exactly where routing promises it and policy (the slow judge)
 * allows it. They are followed hop by hop through the kernels, and so are the replies.
 */
import { type Address, formatAddress } from "../../src/ip/address.ts";
import { explain } from "../../src/policy/judge/explain.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import { type Invariant, livingAttachments, type World } from "./invariant.ts";
import { kernelRules } from "./packets/kernel-rules.ts";
import type { EnterHost, Network } from "./packets/network.ts";
import { type Probes, probesFor, replyTo, titleOf } from "./packets/probes.ts";
import { promiseOf } from "./packets/promise.ts";
import { chosenSource, walk } from "./packets/walk.ts";
import { type PolicyState, policyReader } from "./policy-state.ts";
import { machinesIn, podStation, type Station } from "./stations.ts";

/** More would only say the same again. */
const MOST_VIOLATIONS = 5;
/** Each costs about a millisecond. */
const MOST_WAYS = 250;

export function reachableWhereAllowed(enter: EnterHost = kernelRules, read = policyReader()): Invariant {
  return {
    name: "reachable where allowed",
    when: "at rest",
    check(world) {
      const found: string[] = [];
      for (const violation of new Survey(world, read(world.records), enter).violations()) {
        found.push(violation);
        if (found.length === MOST_VIOLATIONS) break;
      }
      return found;
    },
  };
}

interface Way {
  readonly from: Station;
  readonly to: Station;
  readonly destination: Address;
}

class Survey {
  private readonly network: Network;
  private readonly hosts: readonly Station[];

  constructor(
    private readonly world: World,
    private readonly state: PolicyState,
    enter: EnterHost,
  ) {
    const machines = machinesIn(world);
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
      const pod = podStation(this.world, attachment, this.state);
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
