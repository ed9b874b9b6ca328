/** One network namespace of the kernel model: its tables, its settings, and the sockets that listen to its changes. */
import type { MessageWriter } from "../../src/linux/netlink/message-writer.ts";
import { type Cause, encodeMessage, type KernelMessage } from "./message.ts";
import type {
  ModelAddress,
  ModelForwardingEntry,
  ModelLink,
  ModelNamespace,
  ModelNeighbour,
  ModelRoute,
  ModelRule,
} from "./model.ts";
import { NetfilterState } from "./nftables/state.ts";
import { addLinkSettings, initialSettings } from "./settings.ts";
import { TABLE } from "./wire.ts";

/** A socket that joined groups. */
export interface Listener {
  readonly protocol: "route" | "netfilter";
  hears(group: number): boolean;
  /** A copy of what was sent to the group. */
  deliver(bytes: Uint8Array): void;
}

/** What a namespace needs from the kernel around it. */
export interface KernelClock {
  /** Virtual milliseconds. */
  now(): number;
  /** Executes the work some virtual milliseconds later. */
  later(milliseconds: number, work: () => void): void;
  /** A number from 0 up to 1, from the seed. */
  chance(): number;
}

const LOOPBACK_MTU = 65_536;
const NO_CAUSE: Cause = { sequence: 0, port: 0 };

export class Namespace implements ModelNamespace {
  readonly links = new Map<number, ModelLink>();
  readonly addresses: ModelAddress[] = [];
  readonly routes: ModelRoute[] = [];
  readonly rules: ModelRule[] = [
    { family: 4, priority: 0, table: TABLE.local },
    { family: 4, priority: 32_766, table: TABLE.main },
    { family: 4, priority: 32_767, table: TABLE.default },
    { family: 6, priority: 0, table: TABLE.local },
    { family: 6, priority: 32_766, table: TABLE.main },
  ];
  hasOwnIpv4Rules = false;
  hasLocalIpv4Table = false;
  /** The IPv6 tables that were ever used. */
  readonly ipv6Tables = new Set<number>([TABLE.main, TABLE.local]);
  readonly neighbours: ModelNeighbour[] = [];
  readonly forwarding: ModelForwardingEntry[] = [];
  /** Link and MAC: what links that are not VXLAN devices were told to listen to. */
  readonly filteredMacs = new Set<string>();
  readonly nftables: NetfilterState;
  readonly sysctls: Map<string, string> = initialSettings();
  readonly listeners = new Set<Listener>();
  changes = 0;
  private lastIndex = 1;

  constructor(
    readonly id: number,
    readonly clock: KernelClock,
  ) {
    this.nftables = new NetfilterState(() => clock.now());
    this.links.set(1, {
      index: 1,
      name: "lo",
      mac: new Uint8Array(6),
      mtu: LOOPBACK_MTU,
      isUp: false,
      group: 0,
      transmitQueueLength: 1000,
      transmitQueues: 1,
      receiveQueues: 1,
      hasCarrier: true,
      operState: "unknown",
      isCarrierChangePending: false,
      isActive: false,
      isIpv6Ready: false,
    });
    addLinkSettings(this.sysctls, "lo");
  }

  /** Indexes are not used again. */
  reserveIndex(): number {
    this.lastIndex += 1;
    return this.lastIndex;
  }

  linkNamed(name: string): ModelLink | undefined {
    for (const link of this.links.values()) if (link.name === name) return link;
    return undefined;
  }

  /** Whether a setting is 1 (or more). */
  isSet(name: string): boolean {
    return Number(this.sysctls.get(name) ?? 0) > 0;
  }

  /** Tells all listeners of the group. */
  announce(group: number, message: KernelMessage, cause: Cause = NO_CAUSE): void {
    this.deliver("route", group, () => encodeMessage(message, cause));
  }

  /** Messages of netfilter are encoded by those who know them. */
  deliver(protocol: Listener["protocol"], group: number, encode: () => Uint8Array): void {
    for (const listener of this.listeners) {
      if (listener.protocol === protocol && listener.hears(group)) listener.deliver(encode());
    }
  }
}

/** Removes those for which the test is true; returns them. */
export function removeWhere<Item>(list: Item[], isRemoved: (item: Item) => boolean): readonly Item[] {
  const removed: Item[] = [];
  let kept = 0;
  for (const item of list) {
    if (isRemoved(item)) removed.push(item);
    else {
      list[kept] = item;
      kept += 1;
    }
  }
  list.length = kept;
  return removed;
}

/** A header of a family, written with a view. */
export function writeHeader(writer: MessageWriter, length: number, fill: (view: DataView) => void): void {
  const header = new Uint8Array(length);
  fill(new DataView(header.buffer));
  writer.raw(header);
}
