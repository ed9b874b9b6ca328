/** Neighbours (the MAC of an address on a link) and the forwarding entries of VXLAN devices. */
import { type Address, addressBytes, addressFromBytes, type Family, isSameAddress } from "../../../src/ip/address.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { attributesOf, type Cause, type KernelMessage, type KernelRequest, numberIn, Refusal } from "../message.ts";
import type { ModelForwardingEntry, ModelNeighbour } from "../model.ts";
import { type Namespace, removeWhere, writeHeader } from "../namespace.ts";
import { AF, familyOf, GROUP, MESSAGE, NDA, NEIGHBOUR_STATE, numberOf } from "../wire.ts";

const HEADER_LENGTH = 12;
const SELF = 2;
const MAC_LENGTH = 6;

export function newNeighbour(namespace: Namespace, request: KernelRequest): boolean {
  if (request.payload.getUint8(0) === AF.bridge) return newEntry(namespace, request);
  const { link, address, mac, state } = readNeighbour(namespace, request);
  const existing = findNeighbour(namespace, link.index, address);
  if (existing === undefined && (request.flags & FLAG.create) === 0) throw new Refusal("ENOENT");
  if (existing !== undefined && (request.flags & FLAG.exclusive) !== 0) throw new Refusal("EEXIST");
  if (existing === undefined) {
    const added = { linkIndex: link.index, address, mac: mac ?? new Uint8Array(MAC_LENGTH), state };
    namespace.neighbours.push(added);
    announceNeighbour(namespace, added, "new", request);
    return true;
  }
  const isSame = existing.state === state && (mac === undefined || isSameMac(existing.mac, mac));
  existing.state = state;
  if (mac !== undefined) existing.mac = mac;
  if (!isSame) announceNeighbour(namespace, existing, "new", request);
  return !isSame;
}

export function deleteNeighbour(namespace: Namespace, request: KernelRequest): boolean {
  if (request.payload.getUint8(0) === AF.bridge) return deleteEntry(namespace, request);
  const { link, address } = readNeighbour(namespace, request);
  const existing = findNeighbour(namespace, link.index, address);
  if (existing === undefined) throw new Refusal("ENOENT");
  existing.state = NEIGHBOUR_STATE.failed;
  announceNeighbour(namespace, existing, "new", request);
  namespace.neighbours.splice(namespace.neighbours.indexOf(existing), 1);
  announceNeighbour(namespace, existing, "delete", request);
  return true;
}

/** The link is down, or has another MAC. */
export function flushNeighbours(namespace: Namespace, family: Family, linkIndex: number): void {
  const gone = removeWhere(
    namespace.neighbours,
    (each) => each.linkIndex === linkIndex && each.address.family === family,
  );
  for (const each of gone) announceNeighbour(namespace, each, "delete");
}

export function flushEntries(namespace: Namespace, linkIndex: number): void {
  const gone = removeWhere(namespace.forwarding, (each) => each.linkIndex === linkIndex);
  for (const each of gone) announceEntry(namespace, each, "delete");
}

function readNeighbour(namespace: Namespace, request: KernelRequest) {
  const attributes = attributesOf(request, HEADER_LENGTH);
  const address = addressFromBytes(attributes.get(NDA.address) ?? new Uint8Array());
  if (address === undefined) throw new Refusal("EINVAL", "Network address not specified");
  if (address.family !== familyOf(request.payload.getUint8(0))) throw new Refusal("EAFNOSUPPORT");
  const link = namespace.links.get(request.payload.getInt32(4, true));
  if (link === undefined) throw new Refusal("ENODEV");
  return { link, address, mac: attributes.get(NDA.mac), state: request.payload.getUint16(8, true) };
}

function findNeighbour(namespace: Namespace, linkIndex: number, address: Address): ModelNeighbour | undefined {
  return namespace.neighbours.find((each) => each.linkIndex === linkIndex && isSameAddress(each.address, address));
}

function newEntry(namespace: Namespace, request: KernelRequest): boolean {
  const { link, mac, remote, state } = readEntry(namespace, request);
  if (link.vxlan === undefined) return addFilteredMac(namespace, link.index, mac);
  if (remote.family !== link.vxlan.family) throw new Refusal("EAFNOSUPPORT");
  const existing = namespace.forwarding.find((each) => each.linkIndex === link.index && isSameMac(each.mac, mac));
  if (existing !== undefined && (request.flags & FLAG.exclusive) !== 0) throw new Refusal("EEXIST");
  if (isGroupMac(mac) && (request.flags & FLAG.replace) !== 0) throw new Refusal("EOPNOTSUPP");
  if (existing === undefined) {
    if ((request.flags & FLAG.create) === 0) throw new Refusal("ENOENT");
    const added = { linkIndex: link.index, mac, remote, state };
    namespace.forwarding.push(added);
    announceEntry(namespace, added, "new");
    return true;
  }
  if (existing.state === state && isSameAddress(existing.remote, remote)) return false;
  existing.state = state;
  existing.remote = remote;
  announceEntry(namespace, existing, "new");
  return true;
}

function deleteEntry(namespace: Namespace, request: KernelRequest): boolean {
  const { link, mac, remote } = readEntry(namespace, request);
  if (link.vxlan === undefined) return removeFilteredMac(namespace, link.index, mac);
  const at = namespace.forwarding.findIndex(
    (each) => each.linkIndex === link.index && isSameMac(each.mac, mac) && isSameAddress(each.remote, remote),
  );
  const [gone] = at === -1 ? [] : namespace.forwarding.splice(at, 1);
  if (gone === undefined) throw new Refusal("ENOENT");
  announceEntry(namespace, gone, "delete");
  return true;
}

/** Links of other kinds have a list of further MACs that they listen to, without a destination. */
function addFilteredMac(namespace: Namespace, linkIndex: number, mac: Uint8Array): boolean {
  namespace.filteredMacs.add(`${linkIndex} ${mac.toHex()}`);
  return true;
}

function removeFilteredMac(namespace: Namespace, linkIndex: number, mac: Uint8Array): boolean {
  if (!namespace.filteredMacs.delete(`${linkIndex} ${mac.toHex()}`)) throw new Refusal("ENOENT");
  return true;
}

function readEntry(namespace: Namespace, request: KernelRequest) {
  const attributes = attributesOf(request, HEADER_LENGTH);
  const index = request.payload.getInt32(4, true);
  if (index === 0) throw new Refusal("EINVAL", "invalid ifindex");
  const link = namespace.links.get(index);
  if (link === undefined) throw new Refusal("ENODEV", "unknown ifindex");
  const mac = attributes.get(NDA.mac);
  if (mac === undefined || mac.length !== MAC_LENGTH) throw new Refusal("EINVAL", "invalid address");
  if (link.name === "lo" || link.kind === "ipip")
    throw new Refusal("EINVAL", "FDB add only supported for Ethernet devices");
  const remote = addressFromBytes(attributes.get(NDA.address) ?? new Uint8Array());
  if (remote === undefined) throw new Refusal("EINVAL");
  return { link, mac, remote, state: request.payload.getUint16(8, true) };
}

/** All neighbours, or the forwarding entries. */
export function dumpNeighbours(namespace: Namespace, request: KernelRequest): readonly KernelMessage[] {
  const { payload } = request;
  if (payload.getUint8(0) === AF.bridge) {
    // The header is that of a link.
    const index = payload.byteLength >= 16 ? payload.getInt32(4, true) : 0;
    return namespace.forwarding
      .filter(({ linkIndex }) => index === 0 || linkIndex === index)
      .map((entry) => entryMessage(entry));
  }
  const index = numberIn(attributesOf(request, HEADER_LENGTH), NDA.link);
  const family = familyOf(payload.getUint8(0));
  return namespace.neighbours
    .filter((each) => index === undefined || index === 0 || each.linkIndex === index)
    .filter((each) => family === undefined || each.address.family === family)
    .map((each) => neighbourMessage(each));
}

function announceNeighbour(
  namespace: Namespace,
  neighbour: ModelNeighbour,
  change: "new" | "delete",
  cause?: Cause,
): void {
  namespace.announce(GROUP.neighbour, neighbourMessage(neighbour, typeOf(change)), cause);
}

function announceEntry(namespace: Namespace, entry: ModelForwardingEntry, change: "new" | "delete"): void {
  namespace.announce(GROUP.neighbour, entryMessage(entry, typeOf(change)));
}

function typeOf(change: "new" | "delete"): number {
  return change === "new" ? MESSAGE.newNeighbour : MESSAGE.deleteNeighbour;
}

function neighbourMessage(neighbour: ModelNeighbour, type: number = MESSAGE.newNeighbour): KernelMessage {
  const { linkIndex, address, mac, state } = neighbour;
  return {
    type,
    write(writer) {
      writeHeader(writer, HEADER_LENGTH, (view) => {
        view.setUint8(0, numberOf(address.family));
        view.setInt32(4, linkIndex, true);
        view.setUint16(8, state, true);
        view.setUint8(11, 1);
      });
      writer.bytes(NDA.address, addressBytes(address));
      if ((state & NEIGHBOUR_STATE.failed) === 0) writer.bytes(NDA.mac, mac);
    },
  };
}

function entryMessage(entry: ModelForwardingEntry, type: number = MESSAGE.newNeighbour): KernelMessage {
  const { linkIndex, mac, remote, state } = entry;
  return {
    type,
    write(writer) {
      writeHeader(writer, HEADER_LENGTH, (view) => {
        view.setUint8(0, AF.bridge);
        view.setInt32(4, linkIndex, true);
        view.setUint16(8, state, true);
        view.setUint8(10, SELF);
      });
      writer.bytes(NDA.mac, mac);
      writer.bytes(NDA.address, addressBytes(remote));
    },
  };
}

/** Multicast, or all zeros. */
function isGroupMac(mac: Uint8Array): boolean {
  return ((mac[0] ?? 0) & 1) !== 0 || mac.every((byte) => byte === 0);
}

function isSameMac(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => other[index] === byte);
}
