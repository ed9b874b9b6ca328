/** Permanent forwarding entries of a VXLAN device: the host that has a MAC. */
import { putNumber } from "../../bytes.ts";
import { type Address, addressBytes, addressFromBytes } from "../../ip/address.ts";
import { formatMac } from "../../ip/mac.ts";
import type { MessageCursor } from "../netlink/message-reader.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { dump, type NetlinkSocket } from "../netlink-socket.ts";
import { linkHeader } from "./link-wire.ts";
import { BRIDGE_FAMILY, NEIGHBOUR, NEIGHBOUR_HEADER_LENGTH, NEIGHBOUR_STATE, RTM_NEIGHBOUR } from "./neighbour-wire.ts";

/** In the device itself, not in a bridge that it belongs to. */
const SELF = 2;
const PERMANENT = NEIGHBOUR_STATE.permanent | NEIGHBOUR_STATE.noArp;

export interface ForwardingEntry {
  readonly linkIndex: number;
  readonly mac: Uint8Array;
  /** The address of the host. */
  readonly remote: Address;
}

export interface KnownForwardingEntry extends ForwardingEntry {
  readonly isPermanent: boolean;
}

/** Replaces an existing entry of the MAC: no packet is lost. */
export function setForwardingEntry(entry: ForwardingEntry): NetlinkRequest {
  return entryRequest("set", entry);
}

/** ENOENT if there is none. */
export function deleteForwardingEntry(entry: ForwardingEntry): NetlinkRequest {
  return entryRequest("delete", entry);
}

function entryRequest(verb: "set" | "delete", { linkIndex, mac, remote }: ForwardingEntry): NetlinkRequest {
  return {
    action: `${verb} forwarding entry ${formatMac(mac)} of link ${linkIndex}`,
    type: verb === "set" ? RTM_NEIGHBOUR.new : RTM_NEIGHBOUR.delete,
    flags: verb === "set" ? FLAG.create | FLAG.replace : 0,
    write(writer) {
      const header = new Uint8Array(NEIGHBOUR_HEADER_LENGTH);
      header[0] = BRIDGE_FAMILY;
      putNumber(header, 4, linkIndex);
      header[8] = PERMANENT;
      header[10] = SELF;
      writer.raw(header);
      writer.bytes(NEIGHBOUR.mac, mac);
      writer.bytes(NEIGHBOUR.address, addressBytes(remote));
    },
  };
}

/** Those of one link with a single destination; the kernel skips the others. */
export function listForwardingEntries(socket: NetlinkSocket, linkIndex: number): KnownForwardingEntry[] {
  const request: NetlinkRequest = {
    action: `list forwarding entries of link ${linkIndex}`,
    type: RTM_NEIGHBOUR.get,
    flags: 0,
    // Only the longer header of links makes the kernel select a link; its index has the same place.
    write(writer) {
      const header = linkHeader(linkIndex);
      header[0] = BRIDGE_FAMILY;
      writer.raw(header);
    },
  };
  return dump(socket, request, readForwardingEntry).filter((entry) => entry.linkIndex === linkIndex);
}

/** A change of an entry, as the kernel reports it to those who joined its group; `undefined` for other messages. */
export function readForwardingChange(
  message: MessageCursor,
): { readonly kind: "put" | "delete"; readonly entry: KnownForwardingEntry } | undefined {
  if (message.type !== RTM_NEIGHBOUR.new && message.type !== RTM_NEIGHBOUR.delete) return undefined;
  const entry = decodeEntry(message);
  return entry && { kind: message.type === RTM_NEIGHBOUR.new ? "put" : "delete", entry };
}

function readForwardingEntry(message: MessageCursor): KnownForwardingEntry | undefined {
  return message.type === RTM_NEIGHBOUR.new ? decodeEntry(message) : undefined;
}

/** `undefined` for a neighbour, and for an entry without a destination. */
function decodeEntry(message: MessageCursor): KnownForwardingEntry | undefined {
  const { view, start } = message;
  if (view.getUint8(start) !== BRIDGE_FAMILY) return undefined;
  let mac: Uint8Array | undefined;
  let remote: Address | undefined;
  const attributes = message.attributes(NEIGHBOUR_HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === NEIGHBOUR.mac) mac = attributes.copy();
    else if (attributes.type === NEIGHBOUR.address) remote = addressFromBytes(attributes.copy());
  }
  if (mac === undefined || remote === undefined) return undefined;
  const isPermanent = (view.getUint16(start + 8, true) & NEIGHBOUR_STATE.permanent) !== 0;
  return { linkIndex: view.getInt32(start + 4, true), mac, remote, isPermanent };
}
