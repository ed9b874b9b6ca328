/**
 * Probes the VXLAN tunnels to a few other nodes, answers their probes, and turns checksum offload off where the network card
 * damages it: when the agent starts, when a device or its setting changes, every hour, and every few seconds while something
 * is wrong. The kernel keeps what was decided; why is kept in a file for the next agent.
 */
import * as v from "valibot";
import type { Address } from "../../ip/address.ts";
import { formatAddress } from "../../ip/address.ts";
import type { FileFolder } from "../../linux/file-folder.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { onceEach } from "../../log/once-each.ts";
import type { PlannedPeer, PlannedTunnel, RoutePlan, TunnelName } from "../../routing/plan.ts";
import {
  choosePeers,
  decideOffload,
  describePaths,
  isSuspicious,
  isUnanswered,
  type OffloadSetting,
  type OffloadState,
  type PathResult,
} from "../../routing/tunnel-paths.ts";
import { Wakeup } from "../../wakeup.ts";
import type { AgentClock } from "../means.ts";
import type { TunnelProbes } from "./probe-path.ts";
import { TUNNELS } from "./tunnel-device.ts";

/** In the run directory. */
export const PATHS_FILE = "tunnel-paths.json";
const SUSPICIOUS_MILLISECONDS = 3_000;
/** After some rounds of the same trouble. */
const TROUBLED_MILLISECONDS = 60_000;
const HEALTHY_MILLISECONDS = 3_600_000;
/** What lasts for so many rounds is told. */
const LASTING_ROUNDS = 3;

export interface TunnelPathMeans {
  readonly node: string;
  readonly probes: TunnelProbes;
  /** Those that are there. */
  readonly devices: () => ReadonlyMap<TunnelName, Pick<Link, "index" | "mtu">>;
  readonly folder: FileFolder;
  readonly clock: AgentClock;
  readonly needsOwnChecksums: boolean;
  readonly setting: () => OffloadSetting;
  readonly report: (message: string) => void;
  /** Something that people should know of has changed. */
  readonly tell: (message: string) => Promise<void>;
}

interface Device {
  readonly tunnel: PlannedTunnel;
  readonly name: string;
  readonly linkIndex: number;
  readonly mtu: number;
}

interface Known {
  readonly linkIndex: number;
  readonly state: OffloadState;
  readonly round: readonly PathResult[];
  /** Rounds one after the other that were suspicious. */
  readonly troubled: number;
}

export class TunnelPaths {
  private plan: RoutePlan | undefined;
  /** Of the plan, from the first question on. Everybody may ask, so it must not take long to find out who does. */
  private peerAddresses: ReadonlySet<string> | undefined;
  private seen = "";
  private readonly known = new Map<string, Known>();
  private readonly wakeup = new Wakeup();
  private readonly answering = new Map<string, AbortController>();
  private told: ReadonlySet<string> = new Set();
  private readonly failures: { readonly report: (message: string) => void };

  constructor(private readonly means: TunnelPathMeans) {
    this.failures = onceEach(means.report);
    for (const [name, each] of readKnown(means.folder)) this.known.set(name, each);
  }

  /** For people. */
  get problems(): readonly string[] {
    return this.devices().flatMap(({ name, mtu, tunnel, linkIndex }) => {
      const known = this.known.get(name);
      if (known === undefined || known.linkIndex !== linkIndex) return [];
      const { state, round, troubled } = known;
      const port = tunnel.vxlan?.port ?? 0;
      const { headerLength } = TUNNELS[tunnel.name];
      return describePaths({ name, mtu, headerLength, port }, state, { round, isLasting: troubled >= LASTING_ROUNDS });
    });
  }

  /** The kernel has been given this plan, or was compared with it. */
  note(plan: RoutePlan): void {
    this.plan = plan;
    this.peerAddresses = undefined;
    const seen = JSON.stringify([
      this.devices().map(({ name, linkIndex, mtu }) => [name, linkIndex, mtu]),
      this.means.setting(),
      plan.peers.size > 0,
    ]);
    if (seen === this.seen) return;
    this.seen = seen;
    this.wakeup.notify();
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { wait } = this.means.clock;
    const spread = spreadOf(this.means.node);
    try {
      let pause = HEALTHY_MILLISECONDS;
      while (!signal.aborted) {
        // The agents of a cluster that starts do not probe all at once.
        await wait(pause * (1 + spread / 4), AbortSignal.any([signal, this.wakeup.signal]));
        if (this.wakeup.isNotified) await wait(spread * SUSPICIOUS_MILLISECONDS, signal);
        this.wakeup.reset();
        if (!signal.aborted) pause = await this.look(signal);
      }
    } finally {
      for (const each of this.answering.values()) each.abort();
    }
  }

  /** Returns how long to wait. */
  private async look(signal: AbortSignal): Promise<number> {
    const devices = this.devices();
    this.answerAt(devices.map(({ tunnel }) => tunnel.address));
    const pauses = await Promise.all(
      devices.map(async (device) => {
        try {
          return await this.lookAt(device, signal);
        } catch (failure) {
          this.failures.report(`Cannot probe the tunnel ${device.name}: ${failure}`);
          return TROUBLED_MILLISECONDS;
        }
      }),
    );
    await this.tellNews();
    // Another program may have the port for a while.
    const unanswering = this.answering.size < devices.length ? TROUBLED_MILLISECONDS : HEALTHY_MILLISECONDS;
    return Math.min(unanswering, ...pauses);
  }

  private async lookAt(device: Device, signal: AbortSignal): Promise<number> {
    const { clock, probes } = this.means;
    const { name, linkIndex, mtu, tunnel } = device;
    const former = this.known.get(name);
    const isSame = former?.linkIndex === linkIndex;
    const state = this.decide(device, isSame ? former.state : { failures: 0 });
    const others = this.tunnelled(tunnel);
    const round = await Promise.all(
      choosePeers(this.means.node, [...others.keys()]).flatMap((node) => {
        const other = others.get(node);
        return other === undefined ? [] : [probes.probe({ node, ...other, mtu }, clock.wait, signal)];
      }),
    );
    if (signal.aborted || this.means.devices().get(tunnel.name)?.index !== linkIndex) return SUSPICIOUS_MILLISECONDS;
    const next = this.decide(device, state, round);
    const troubled = isSuspicious(next, round) ? (isSame ? former.troubled : 0) + 1 : 0;
    this.known.set(name, { linkIndex, state: next, round, troubled });
    writeKnown(this.means.folder, this.known, this.failures.report);
    if (next.record !== state.record) return SUSPICIOUS_MILLISECONDS;
    if (troubled === 0) return round.some(isUnanswered) ? TROUBLED_MILLISECONDS : HEALTHY_MILLISECONDS;
    return troubled < LASTING_ROUNDS ? SUSPICIOUS_MILLISECONDS : TROUBLED_MILLISECONDS;
  }

  private decide({ name }: Device, before: OffloadState, round?: readonly PathResult[]): OffloadState {
    const { probes, needsOwnChecksums, setting } = this.means;
    const { wanted, ...state } = decideOffload(before, {
      ...{ setting: setting(), needsOwnChecksums },
      ...(round === undefined ? {} : { round }),
    });
    if (wanted !== undefined && probes.isOffloadOn(name) !== (wanted === "on")) probes.setOffload(name, wanted);
    return state;
  }

  /** At addresses that this host has by now. */
  private answerAt(addresses: readonly Address[]): void {
    const { probes, clock } = this.means;
    const wanted = new Map(addresses.map((address) => [formatAddress(address), address]));
    for (const [text, each] of this.answering) if (!wanted.has(text)) each.abort();
    for (const [text, address] of wanted) {
      if (this.answering.has(text)) continue;
      const ending = new AbortController();
      this.answering.set(text, ending);
      probes
        .answer({ address, isPeer: (other) => this.isPeer(other) }, clock.wait, ending.signal)
        .catch((failure: unknown) => this.failures.report(`Cannot answer the probes of other nodes: ${failure}`))
        .finally(() => this.answering.delete(text));
    }
  }

  private isPeer(address: Address): boolean {
    const peers = this.plan?.peers.values() ?? [];
    this.peerAddresses ??= new Set(Array.from(peers, (peer) => formatAddress(peer.address)));
    return this.peerAddresses.has(formatAddress(address));
  }

  private async tellNews(): Promise<void> {
    const now = new Set(this.problems);
    const news = [...now].filter((each) => !this.told.has(each));
    this.told = now;
    for (const each of news) await this.means.tell(each);
  }

  /** The VXLAN devices of the plan that are there. */
  private devices(): readonly Device[] {
    return Array.from(this.plan?.tunnels.values() ?? []).flatMap((tunnel) => {
      const { kind, deviceName: name } = TUNNELS[tunnel.name];
      const link = kind === "vxlan" ? this.means.devices().get(tunnel.name) : undefined;
      return link === undefined ? [] : [{ tunnel, name, linkIndex: link.index, mtu: link.mtu }];
    });
  }

  /** The nodes that are reached by the tunnel, not directly. */
  private tunnelled({ name }: PlannedTunnel): ReadonlyMap<string, Pick<PlannedPeer, "address" | "remote">> {
    const { routes, peers } = this.plan ?? { routes: new Map(), peers: new Map() };
    const gateways = new Set(
      routes
        .values()
        .flatMap(({ hop }) => (hop.kind === "tunnel" && hop.tunnel === name ? [formatAddress(hop.gateway)] : [])),
    );
    return new Map(
      peers
        .entries()
        .flatMap(([key, { tunnel, address, remote }]) =>
          tunnel === name && gateways.has(formatAddress(address))
            ? [[key.slice(`${name} `.length), { address, remote }]]
            : [],
        ),
    );
  }
}

/** From 0 up to 1, the same for a node each time. */
function spreadOf(node: string): number {
  return Number(Bun.hash.crc32(node)) / 2 ** 32;
}

const knownFile = v.record(
  v.string(),
  v.object({
    linkIndex: v.number(),
    record: v.object({ by: v.picklist(["setting", "kernel", "probes"]), reason: v.string() }),
  }),
);

function readKnown(folder: FileFolder): readonly (readonly [string, Known])[] {
  try {
    const found = v.parse(knownFile, JSON.parse(folder.read(PATHS_FILE)));
    return Object.entries(found).map(([name, { linkIndex, record }]) => [
      name,
      { linkIndex, state: { record, failures: 0 }, round: [], troubled: 0 },
    ]);
  } catch {
    return [];
  }
}

function writeKnown(folder: FileFolder, known: ReadonlyMap<string, Known>, report: (message: string) => void): void {
  const kept = Array.from(known).flatMap(([name, { linkIndex, state }]) =>
    state.record === undefined ? [] : [[name, { linkIndex, record: state.record }]],
  );
  try {
    folder.write(PATHS_FILE, `${JSON.stringify(Object.fromEntries(kept))}\n`);
  } catch (failure) {
    report(`Cannot write "${folder.path}/${PATHS_FILE}": ${failure}`);
  }
}
