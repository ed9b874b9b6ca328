/**
 * What policy denies is not delivered, whatever happens: once a node has had the time to learn of a denial, its kernel drops
 * such packets for as long as the denial lasts, also while its agent restarts, is cut off or lists everything again.
 *
 *   denied, as the records say ──▶ learned: the node was quiet for long enough ──▶ followed through the kernels at each change
 *
 * A few packets of each node are watched, not all: what opens a firewall opens it for many.
 */
import { explain } from "../../src/policy/judge/explain.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import { type Invariant, type LivingAttachment, livingAttachments, type World, type WorldHost } from "./invariant.ts";
import { kernelRules } from "./packets/kernel-rules.ts";
import type { EnterHost } from "./packets/network.ts";
import { probesFor, titleOf } from "./packets/probes.ts";
import { walk } from "./packets/walk.ts";
import { type PolicyState, policyReader } from "./policy-state.ts";
import { machinesIn, podStation, type Station } from "./stations.ts";

/** Within that time after a change of the records, an agent that nothing disturbs has changed its kernel. */
export const BOUND = 10_000;
/** After a fault, until an agent follows the datastore again. */
export const RECOVERY = 60_000;
/** The agent looks that often whether its rules are still there. */
export const REPAIR = 180_000;
const WATCHED_PER_NODE = 3;
/** Between two searches for more packets of a node to watch. */
const PAUSE = 2_000;

/** The identifiers of containers. */
interface Way {
  readonly from: string;
  readonly to: string;
  readonly packet: Packet;
}

interface DeniedWay extends Way {
  /** Why, in words. */
  readonly reason: string;
  /** The reason has been the same since then. */
  readonly since: number;
  readonly isLearned: boolean;
}

/** What is known of a node. */
interface WatchedNode {
  readonly ways: readonly DeniedWay[];
  /** How often its kernel had changed when the packets were last followed. */
  readonly kernel: number;
  readonly search: { readonly at: number; readonly state: PolicyState; readonly living: number } | undefined;
}

const UNKNOWN: WatchedNode = { ways: [], kernel: -1, search: undefined };

export function nothingDeniedIsDelivered(enter: EnterHost = kernelRules, read = policyReader()): Invariant {
  const watched = new Map<string, WatchedNode>();
  let last: PolicyState | undefined;
  return {
    name: "nothing denied is delivered",
    when: "after each step",
    check(world) {
      const state = read(world.records);
      const survey = new DeniedSurvey(world, state, { enter, isNewState: state !== last });
      last = state;
      return Array.from(world.nodes.values()).flatMap(({ name, host }) => {
        if (host === undefined) return [];
        const { node, found } = survey.look(watched.get(name) ?? UNKNOWN, name, host);
        watched.set(name, node);
        return found;
      });
    },
  };
}

interface SurveyOptions {
  readonly enter: EnterHost;
  /** The records that policy follows from have changed since the last look. */
  readonly isNewState: boolean;
}

class DeniedSurvey {
  private known: ReadonlyMap<string, LivingAttachment> | undefined;
  private readonly stations = new Map<string, Station | undefined>();

  constructor(
    private readonly world: World,
    private readonly state: PolicyState,
    private readonly options: SurveyOptions,
  ) {}

  private get living(): ReadonlyMap<string, LivingAttachment> {
    this.known ??= new Map(livingAttachments(this.world).map((attachment) => [attachment.containerId, attachment]));
    return this.known;
  }

  /** Packets are followed when the kernel of their node has changed: nothing else lets them pass. */
  look(
    before: WatchedNode,
    name: string,
    host: WorldHost,
  ): { readonly node: WatchedNode; readonly found: readonly string[] } {
    const { now } = this.world;
    const kernel = host.root.changes + host.root.nftables.changes;
    const isChanged = kernel !== before.kernel;
    if (!isChanged && !this.options.isNewState) return { node: before, found: [] };
    if (now - (host.tamperedAt ?? Number.NEGATIVE_INFINITY) < REPAIR) return { node: UNKNOWN, found: [] };
    const kept = before.ways.flatMap((way) => this.judgedAgain(way, name) ?? []);
    const known = this.withMore({ ...before, ways: kept, kernel }, name);
    if (!isChanged) return { node: known, found: [] };
    const { quietTimes } = host;
    const ways = known.ways.map((way) => ({ ...way, isLearned: way.isLearned || isLearned(way, quietTimes) }));
    return { node: { ...known, ways }, found: ways.flatMap((way) => this.follow(way) ?? []) };
  }

  /** `undefined` if it is not denied any more, or one of the containers is gone. */
  private judgedAgain(way: DeniedWay, node: string): DeniedWay | undefined {
    if (!this.living.has(way.from) || !this.living.has(way.to)) return undefined;
    if (!this.options.isNewState) return way;
    const reason = this.whyDenied(way, node);
    if (reason === way.reason) return way;
    return reason === undefined ? undefined : { ...way, reason, since: this.world.now, isLearned: false };
  }

  /** Looks for more packets that the policies of this node deny, now and then, if something has changed. */
  private withMore(node: WatchedNode, name: string): WatchedNode {
    const { state, world } = this;
    const { search, ways } = node;
    if (ways.length >= WATCHED_PER_NODE || (search !== undefined && world.now - search.at < PAUSE)) return node;
    const { living } = this;
    if (search?.state === state && search.living === living.size) return node;
    const more = this.denied(name, ways).slice(0, WATCHED_PER_NODE - ways.length);
    return { ...node, ways: [...ways, ...more], search: { at: world.now, state, living: living.size } };
  }

  private denied(node: string, known: readonly Way[]): readonly DeniedWay[] {
    const probes = probesFor(this.state.resources);
    const all = [...this.living.values()];
    const own = all.filter((attachment) => attachment.node === node);
    const pairs = own.flatMap((pod) =>
      all
        .filter((other) => other !== pod)
        .flatMap((other) => [
          { from: other, to: pod },
          { from: pod, to: other },
        ]),
    );
    const found: DeniedWay[] = [];
    for (const [index, { from, to }] of pairs.entries()) {
      if (known.some((way) => way.from === from.containerId && way.to === to.containerId)) continue;
      const [source, destination] = [this.station(from)?.addresses[0], this.station(to)?.addresses[0]];
      if (source === undefined || destination === undefined || source.family !== destination.family) continue;
      const packets = probes(source, destination);
      const packet = packets[(index + this.world.now) % packets.length];
      if (packet === undefined) continue;
      const way = { from: from.containerId, to: to.containerId, packet };
      const reason = this.whyDenied(way, node);
      if (reason === undefined) continue;
      found.push({ ...way, reason, since: this.world.now, isLearned: false });
      if (found.length === WATCHED_PER_NODE) break;
    }
    return found;
  }

  /** `undefined` if the policies of this node do not deny it. */
  private whyDenied({ from, to, packet }: Way, node: string): string | undefined {
    const [source, destination] = [from, to].map((id) => this.station(this.living.get(id)));
    if (source === undefined || destination === undefined) return undefined;
    return whyDeniedAt(node, { packet, source, destination }, this.state);
  }

  /** What is wrong: it arrives. */
  private follow({ from, to, packet, reason, isLearned }: DeniedWay): string | undefined {
    const [source, destination] = [from, to].map((id) => this.station(this.living.get(id)));
    if (!isLearned || source === undefined || destination === undefined) return undefined;
    const { machine, namespace } = source;
    const network = { machines: machinesIn(this.world), enter: this.options.enter };
    const { end, namespace: reached, path } = walk(network, { machine, namespace, packet });
    if (end !== "delivered" || reached !== destination.namespace) return undefined;
    return `${titleOf(packet)} from ${source.title} to ${destination.title} arrives, but must not (${reason}); its way: ${path.join(" | ")}`;
  }

  private station(attachment: LivingAttachment | undefined): Station | undefined {
    if (attachment === undefined) return undefined;
    const { containerId } = attachment;
    if (!this.stations.has(containerId)) {
      const station = podStation(this.world, attachment, this.state);
      this.stations.set(containerId, typeof station === "string" ? undefined : station);
    }
    return this.stations.get(containerId);
  }
}

interface JudgedPacket {
  readonly packet: Packet;
  readonly source: Station;
  readonly destination: Station;
}

/** `undefined` if the policies of this node do not deny it. */
export function whyDeniedAt(
  node: string,
  { packet, source, destination }: JudgedPacket,
  { settingsOf, resources }: PolicyState,
): string | undefined {
  const { sides } = explain({ packet, source: source.end, destination: destination.end, settingsOf }, resources);
  const placeOf = (direction: string) => (direction === "egress" ? source : destination).machine.name;
  const isDenied = sides.some(({ direction, verdict }) => verdict === "deny" && placeOf(direction) === node);
  if (!isDenied) return undefined;
  return sides.map(({ direction, verdict, reason }) => `${direction} ${verdict}: ${reason}`).join("; ");
}

/** Nothing disturbed the node while it learned of the denial. */
function isLearned({ since }: DeniedWay, quietTimes: WorldHost["quietTimes"]): boolean {
  if (quietTimes === undefined) return true;
  return quietTimes.some((quiet) => Math.max(quiet.since + RECOVERY, since) + BOUND <= quiet.until);
}
