/**
 * Connections between pods that scripts open. Their packets pass the simulated kernels, which track them: the one who opened
 * it sends a packet now and then, and whoever gets it answers. If only the other end is left, that one sends. Nobody is told
 * that the other one is gone, as with UDP.
 */
import { parseAddress } from "../../src/ip/address.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import { livingAttachments, type World, type WorldNode } from "../judge/invariant.ts";
import { trackingRules } from "../judge/packets/kernel-rules.ts";
import type { Journey } from "../judge/packets/network.ts";
import { replyTo, titleOf } from "../judge/packets/probes.ts";
import { walk } from "../judge/packets/walk.ts";
import { machinesIn } from "../judge/stations.ts";
import type { Scheduler } from "../schedule/scheduler.ts";
import type { Action } from "../script/operation.ts";

type OpenConnection = Extract<Action, { readonly kind: "open connection" }>;

const PROTOCOL = { TCP: 6, UDP: 17 } as const;
/** More often than the kernel forgets a packet that nobody answers. */
const PAUSE = 20_000;
const FIRST_PORT = 41_000;

export interface ConnectionMeans {
  readonly world: World;
  readonly scheduler: Scheduler;
  readonly trace: (line: string) => void;
}

interface Connection {
  readonly opener: string;
  readonly answerer: string;
  readonly packet: Packet;
  readonly until: number;
}

export class Connections {
  private opened = 0;

  constructor(private readonly means: ConnectionMeans) {}

  /** Nothing if one of the pods does not run. */
  open({ from, to, protocol, port, lasts }: OpenConnection): void {
    const living = livingAttachments(this.means.world);
    const [opener, answerer] = [from, to].map((wanted) =>
      living.find(({ pod }) => pod.namespace === wanted.namespace && pod.name === wanted.name),
    );
    const [source, destination] = [opener, answerer].map((found) => parseAddress(found?.addresses[0] ?? ""));
    if (opener === undefined || answerer === undefined || source === undefined || destination === undefined) return;
    this.opened += 1;
    const ports = { sourcePort: FIRST_PORT + this.opened, destinationPort: port };
    this.turn({
      ...{ opener: opener.containerId, answerer: answerer.containerId, until: this.means.scheduler.now + lasts },
      packet: { source, destination, protocol: PROTOCOL[protocol], ...ports },
    });
  }

  private turn(connection: Connection): void {
    const { scheduler } = this.means;
    if (!this.exchange(connection) || scheduler.now + PAUSE > connection.until) return;
    scheduler.after(PAUSE, () => this.turn(connection));
  }

  /** `false` if nobody is left to send. */
  private exchange({ opener, answerer, packet }: Connection): boolean {
    const there = this.send(opener, packet);
    if (there === undefined) return this.send(answerer, replyTo(packet)) !== undefined;
    if (there.end !== "delivered" || there.namespace === undefined) return true;
    const receiver = this.containers().find(({ namespace }) => namespace === there.namespace);
    if (receiver !== undefined) this.send(receiver.containerId, replyTo(packet));
    return true;
  }

  /** `undefined` if it does not run any more. */
  private send(containerId: string, packet: Packet): Journey | undefined {
    const sender = this.containers().find((each) => each.containerId === containerId);
    if (sender === undefined) return undefined;
    const machines = machinesIn(this.means.world);
    const machine = machines.find(({ name }) => name === sender.node);
    if (machine === undefined) return undefined;
    const journey = walk({ machines, enter: trackingRules }, { machine, namespace: sender.namespace, packet });
    this.means.trace(`${titleOf(packet)} from ${containerId} is ${journey.end}`);
    return journey;
  }

  private containers() {
    return Array.from(this.means.world.nodes.values()).flatMap((node) => containersOn(node));
  }
}

function containersOn({ name: node, attachments, host }: WorldNode) {
  return Array.from(attachments.values()).flatMap(({ containerId, state, netnsPath }) => {
    const namespace = netnsPath === undefined ? undefined : host?.namespaceAt(netnsPath);
    return state === "attached" && namespace !== undefined ? [{ node, containerId, namespace }] : [];
  });
}
