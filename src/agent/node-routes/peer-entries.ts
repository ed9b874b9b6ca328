/** Neighbours and forwarding entries of a VXLAN device, compared with the other ends that are planned. Pure. */
import { type Address, isSameAddress } from "../../ip/address.ts";
import { formatMac, parseMac } from "../../ip/mac.ts";
import type { ForwardingEntry, KnownForwardingEntry } from "../../linux/rtnetlink/forwarding-entry.ts";
import type { KnownNeighbour, Neighbour } from "../../linux/rtnetlink/neighbour.ts";
import type { PlannedPeer } from "../../routing/plan.ts";

export interface PeerEntries {
  readonly neighbours: readonly Neighbour[];
  readonly forwarding: readonly ForwardingEntry[];
}

export interface PresentEntries {
  readonly linkIndex: number;
  readonly neighbours: readonly KnownNeighbour[];
  readonly forwarding: readonly KnownForwardingEntry[];
}

export interface EntryDifferences {
  readonly missing: PeerEntries;
  readonly stale: PeerEntries;
}

export function entriesOf(peer: PlannedPeer, linkIndex: number): { neighbour: Neighbour; forwarding: ForwardingEntry } {
  const mac = parseMac(peer.mac) ?? new Uint8Array(6);
  return {
    neighbour: { linkIndex, address: peer.address, mac },
    forwarding: { linkIndex, mac, remote: peer.remote },
  };
}

/** `peers`: those of this device. Entries that the kernel has learned itself are not stale. */
export function compareEntries(peers: readonly PlannedPeer[], present: PresentEntries): EntryDifferences {
  const wanted = peers.map((peer) => entriesOf(peer, present.linkIndex));
  const neighbours = new Map(present.neighbours.map((each) => [keyOf(each.address), each]));
  const forwarding = Map.groupBy(present.forwarding, ({ mac }) => formatMac(mac));
  const wantedNeighbours = new Set(wanted.map(({ neighbour }) => keyOf(neighbour.address)));
  const wantedForwarding = new Map(wanted.map((each) => [formatMac(each.forwarding.mac), each.forwarding]));
  return {
    missing: {
      neighbours: wanted.map(({ neighbour }) => neighbour).filter((each) => !isServed(each, neighbours)),
      forwarding: [...wantedForwarding]
        .filter(([mac, entry]) => !forwarding.get(mac)?.some((each) => each.isPermanent && isSameEntry(each, entry)))
        .map(([, entry]) => entry),
    },
    stale: {
      neighbours: present.neighbours.filter((each) => each.isPermanent && !wantedNeighbours.has(keyOf(each.address))),
      forwarding: present.forwarding.filter((each) => {
        const entry = wantedForwarding.get(formatMac(each.mac));
        return each.isPermanent && (entry === undefined || isSecond(each, entry, forwarding));
      }),
    },
  };
}

function isServed(wanted: Neighbour, present: ReadonlyMap<string, KnownNeighbour>): boolean {
  const found = present.get(keyOf(wanted.address));
  return found?.isPermanent === true && Bun.deepEquals(found.mac, wanted.mac);
}

/** Setting the wanted entry replaces a wrong one; of several, the others must be removed. */
function isSecond(
  entry: ForwardingEntry,
  wanted: ForwardingEntry,
  present: ReadonlyMap<string, readonly KnownForwardingEntry[]>,
): boolean {
  return !isSameEntry(entry, wanted) && (present.get(formatMac(entry.mac))?.length ?? 0) > 1;
}

function isSameEntry(left: ForwardingEntry, right: ForwardingEntry): boolean {
  return left.remote.family === right.remote.family && isSameAddress(left.remote, right.remote);
}

function keyOf({ family, value }: Address): string {
  return `${family} ${value.toString(16)}`;
}
