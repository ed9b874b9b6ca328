/**
 * Links as the kernel describes them, and the requests that change them.
 *
 * The requests are plain data for `perform`, so that several can be sent in one
 * system call. Error messages contain names, not indexes.
 */
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import type { MessageWriter } from "../netlink/message-writer.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { attempt, dump, type NetlinkSocket, perform } from "../netlink-socket.ts";
import { createLink } from "./create-link.ts";
import { IFF_UP, INFO, IPV4_FAMILY, IPV4_SETTING, LINK, linkHeader, RTM } from "./link-wire.ts";

export interface Link {
  readonly index: number;
  readonly name: string;
  readonly isUp: boolean;
  readonly mtu: number;
  readonly mac: Uint8Array;
  readonly alias?: string;
  /** `veth`, `ifb`, `vxlan` …; absent for hardware and loopback. */
  readonly kind?: string;
  /** The other end of a veth, or the underlying device: an index in the peer's namespace. */
  readonly peerIndex?: number;
  /** The bridge or bond the link belongs to. */
  readonly masterIndex?: number;
  /** Absent: 0, the default group. */
  readonly group?: number;
  readonly transmitQueues: number;
  readonly receiveQueues: number;
}

const encoder = new TextEncoder();
const HEADER_LENGTH = 16;
const SKIP_STATISTICS = 1 << 3;

/** The link of that name in the socket's namespace. */
export function findLink(socket: NetlinkSocket, name: string): Link | undefined {
  return describeLink(socket, name, readLink);
}

/** What `read` returns for the description of the link of that name. */
export function describeLink<Description>(
  socket: NetlinkSocket,
  name: string,
  read: (message: MessageCursor) => Description | undefined,
): Description | undefined {
  const request: NetlinkRequest = {
    ...readLinkRequest(`read link "${name}"`, 0),
    write(writer) {
      writer.raw(linkHeader(0));
      writer.u32(LINK.extensionMask, SKIP_STATISTICS);
      writer.text(LINK.name, name);
    },
  };
  return readOneLink(socket, request, read);
}

export function findLinkByIndex(socket: NetlinkSocket, index: number): Link | undefined {
  return readOneLink(socket, readLinkRequest(`read link ${index}`, index), readLink);
}

/** Whether the link exists. The kernel replies when changes of links in progress are done. */
export function hasLink(socket: NetlinkSocket, index: number): boolean {
  let isThere = false;
  perform(socket, [readLinkRequest(`read link ${index}`, index)], () => {
    isThere = true;
  });
  return isThere;
}

export function listLinks(socket: NetlinkSocket): Link[] {
  return dump(socket, readLinkRequest("list links", 0), readLink);
}

function readOneLink<Description>(
  socket: NetlinkSocket,
  request: NetlinkRequest,
  read: (message: MessageCursor) => Description | undefined,
): Description | undefined {
  let found: Description | undefined;
  const [error] = attempt(socket, [request], (message) => {
    found = read(message);
  });
  if (error !== undefined) throw error;
  return found;
}

function readLinkRequest(action: string, index: number): NetlinkRequest {
  return {
    action,
    type: RTM.getLink,
    flags: 0,
    isQuestion: true,
    whenNone: "ENODEV",
    write(writer) {
      writer.raw(linkHeader(index));
      writer.u32(LINK.extensionMask, SKIP_STATISTICS);
    },
  };
}

/** Decodes one description of a link. */
export function readLink(message: MessageCursor): Link | undefined {
  if (message.type !== RTM.newLink) return undefined;
  const link: { -readonly [Field in keyof Link]: Link[Field] } = {
    index: message.view.getInt32(message.start + 4, true),
    name: "",
    isUp: (message.view.getUint32(message.start + 8, true) & IFF_UP) !== 0,
    mtu: 0,
    mac: new Uint8Array(0),
    transmitQueues: 0,
    receiveQueues: 0,
  };
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === LINK.name) link.name = attributes.text();
    else if (attributes.type === LINK.mtu) link.mtu = attributes.u32();
    else if (attributes.type === LINK.address) link.mac = attributes.copy();
    else if (attributes.type === LINK.alias) link.alias = attributes.text();
    else if (attributes.type === LINK.link) link.peerIndex = attributes.u32();
    else if (attributes.type === LINK.master) link.masterIndex = attributes.u32();
    else if (attributes.type === LINK.group) link.group = attributes.u32();
    else if (attributes.type === LINK.transmitQueues) link.transmitQueues = attributes.u32();
    else if (attributes.type === LINK.receiveQueues) link.receiveQueues = attributes.u32();
    else if (attributes.type === LINK.info) {
      const info = attributes.nested();
      while (info.next()) if (info.type === INFO.kind) link.kind = info.text();
    }
  }
  return link;
}

/** The settings of the kind in the description of a link, if it is of that kind. */
export function readInfoData(message: MessageCursor, kind: string): AttributeCursor | undefined {
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type !== LINK.info) continue;
    const info = attributes.nested();
    let isOfKind = false;
    while (info.next()) {
      if (info.type === INFO.kind) isOfKind = info.text() === kind;
      else if (info.type === INFO.data && isOfKind) return info.nested();
    }
  }
  return undefined;
}

/** The reverse path filter of IPv4 in the description of a link: 0 off, 1 strict, 2 loose. */
export function readReversePathFilter(message: MessageCursor): number | undefined {
  const families = nestedIn(message.attributes(HEADER_LENGTH), LINK.families);
  const ipv4 = families && nestedIn(families, IPV4_FAMILY.number);
  while (ipv4?.next()) {
    if (ipv4.type !== IPV4_FAMILY.settings) continue;
    // Numbers of 32 bits; the first setting is number 1.
    const values = ipv4.copy();
    const place = (IPV4_SETTING.reversePathFilter - 1) * 4;
    return values.length < place + 4 ? undefined : new DataView(values.buffer).getUint32(place, true);
  }
  return undefined;
}

function nestedIn(attributes: AttributeCursor, type: number): AttributeCursor | undefined {
  while (attributes.next()) if (attributes.type === type) return attributes.nested();
  return undefined;
}

/** What can be changed on an existing link. */
export interface LinkChange {
  readonly state?: "up" | "down";
  readonly mac?: Uint8Array;
  readonly mtu?: number;
  readonly alias?: string;
  readonly group?: number;
  readonly ipv4?: Ipv4Settings;
}

/** Settings that are also files below `net/ipv4/conf/<link>`: as part of a request they need no file access. */
export type Ipv4Settings = { readonly [Name in keyof typeof IPV4_SETTING]?: number };

/** A link by index, or by name only: then an earlier request of the same call may create it. */
export interface LinkReference {
  readonly name: string;
  readonly index?: number;
}

export function changeLink(link: LinkReference, change: LinkChange): NetlinkRequest {
  return {
    action: `change link "${link.name}"`,
    type: RTM.newLink,
    flags: 0,
    write(writer) {
      writeState(writer, link.index ?? 0, change);
      if (link.index === undefined) writer.text(LINK.name, link.name);
      writeChange(writer, change);
    },
  };
}

/**
 * Changes all links of the group; none is success. For one that an earlier request of the same call creates in a group of its
 * own: if the kernel refuses to create it, since there is a link of this name, `changeLink` by name would change that one.
 */
export function changeLinkGroup(group: number, change: Omit<LinkChange, "group">): NetlinkRequest {
  return {
    action: `change the links of group ${group}`,
    type: RTM.newLink,
    flags: 0,
    write(writer) {
      writeState(writer, 0, change);
      writer.u32(LINK.group, group);
      writeChange(writer, change);
    },
  };
}

function writeState(writer: MessageWriter, index: number, { state }: LinkChange): void {
  writer.raw(linkHeader(index, state === "up" ? IFF_UP : 0, state === undefined ? 0 : IFF_UP));
}

function writeChange(writer: MessageWriter, change: LinkChange): void {
  if (change.alias !== undefined) writer.bytes(LINK.alias, encoder.encode(change.alias));
  if (change.mac !== undefined) writer.bytes(LINK.address, change.mac);
  if (change.mtu !== undefined) writer.u32(LINK.mtu, change.mtu);
  if (change.group !== undefined) writer.u32(LINK.group, change.group);
  if (change.ipv4 !== undefined) writeIpv4(writer, change.ipv4);
}

function writeIpv4(writer: MessageWriter, { forwarding, proxyArp, reversePathFilter }: Ipv4Settings): void {
  const families = writer.openUnmarked(LINK.families);
  const ipv4 = writer.openUnmarked(IPV4_FAMILY.number);
  const settings = writer.openUnmarked(IPV4_FAMILY.settings);
  if (forwarding !== undefined) writer.u32(IPV4_SETTING.forwarding, forwarding);
  if (proxyArp !== undefined) writer.u32(IPV4_SETTING.proxyArp, proxyArp);
  if (reversePathFilter !== undefined) writer.u32(IPV4_SETTING.reversePathFilter, reversePathFilter);
  writer.close(settings);
  writer.close(ipv4);
  writer.close(families);
}

/** Removes the link, and the other end of a veth with it. ENODEV if it does not exist. */
export function deleteLink(link: LinkReference): NetlinkRequest {
  return {
    action: `delete link "${link.name}"`,
    type: RTM.deleteLink,
    flags: 0,
    write(writer) {
      writer.raw(linkHeader(link.index ?? 0));
      if (link.index === undefined) writer.text(LINK.name, link.name);
    },
  };
}

/** Removes all links of the group at once: the kernel waits once for all. ENODEV if there are none. */
export function deleteLinkGroup(group: number): NetlinkRequest {
  return {
    action: `delete the links of group ${group}`,
    type: RTM.deleteLink,
    flags: 0,
    write(writer) {
      writer.raw(linkHeader(0));
      writer.u32(LINK.group, group);
    },
  };
}

/**
 * An intermediate functional block (IFB): the device that shapes the incoming traffic
 * of another link. The kernel ignores an alias at creation: send `changeLink` after it.
 */
export function createIfb(ifb: {
  readonly name: string;
  readonly mtu: number;
  readonly state: "up" | "down";
}): NetlinkRequest {
  return createLink({
    ...ifb,
    kind: "ifb",
    attributes(writer) {
      writer.u32(LINK.mtu, ifb.mtu);
      writer.u32(LINK.transmitQueueLength, 0);
    },
  });
}
