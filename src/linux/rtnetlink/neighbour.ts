/** Permanent neighbour entries: the MAC of an address on a link. */
import { putNumber } from "../../bytes.ts";
import { type Address, addressBytes, addressFromBytes, formatAddress } from "../../ip/address.ts";
import type { MessageCursor } from "../netlink/message-reader.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { dump, type NetlinkSocket } from "../netlink-socket.ts";
import { familyNumber, familyOfNumber } from "./family.ts";
import { NEIGHBOUR, NEIGHBOUR_HEADER_LENGTH, NEIGHBOUR_STATE, RTM_NEIGHBOUR } from "./neighbour-wire.ts";

export interface Neighbour {
  readonly linkIndex: number;
  readonly address: Address;
  readonly mac: Uint8Array;
}

export interface KnownNeighbour extends Neighbour {
  readonly isPermanent: boolean;
}

/** Replaces an existing entry of the address. */
export function setNeighbour(neighbour: Neighbour): NetlinkRequest {
  return {
    action: `set neighbour ${formatAddress(neighbour.address)} of link ${neighbour.linkIndex}`,
    type: RTM_NEIGHBOUR.new,
    flags: FLAG.create | FLAG.replace,
    write(writer) {
      writer.raw(header(neighbour, NEIGHBOUR_STATE.permanent));
      writer.bytes(NEIGHBOUR.address, addressBytes(neighbour.address));
      writer.bytes(NEIGHBOUR.mac, neighbour.mac);
    },
  };
}

/** ENOENT if there is none. */
export function deleteNeighbour(neighbour: Omit<Neighbour, "mac">): NetlinkRequest {
  return {
    action: `delete neighbour ${formatAddress(neighbour.address)} of link ${neighbour.linkIndex}`,
    type: RTM_NEIGHBOUR.delete,
    flags: 0,
    write(writer) {
      writer.raw(header(neighbour, 0));
      writer.bytes(NEIGHBOUR.address, addressBytes(neighbour.address));
    },
  };
}

/** Of both families; of one link only if it is given. */
export function listNeighbours(socket: NetlinkSocket, linkIndex?: number): KnownNeighbour[] {
  const request: NetlinkRequest = {
    action: "list neighbours",
    type: RTM_NEIGHBOUR.get,
    flags: 0,
    write(writer) {
      writer.raw(new Uint8Array(NEIGHBOUR_HEADER_LENGTH));
      if (linkIndex !== undefined) writer.u32(NEIGHBOUR.link, linkIndex);
    },
  };
  const neighbours = dump(socket, request, readNeighbour);
  // Old kernels return those of all links.
  return linkIndex === undefined ? neighbours : neighbours.filter((each) => each.linkIndex === linkIndex);
}

function header({ address, linkIndex }: Omit<Neighbour, "mac">, state: number): Uint8Array {
  const bytes = new Uint8Array(NEIGHBOUR_HEADER_LENGTH);
  bytes[0] = familyNumber(address.family);
  putNumber(bytes, 4, linkIndex);
  bytes[8] = state;
  return bytes;
}

/** A change of a neighbour, as the kernel reports it to those who joined its group; `undefined` for other messages. */
export function readNeighbourChange(
  message: MessageCursor,
): { readonly kind: "put" | "delete"; readonly neighbour: KnownNeighbour } | undefined {
  if (message.type !== RTM_NEIGHBOUR.new && message.type !== RTM_NEIGHBOUR.delete) return undefined;
  const neighbour = decodeNeighbour(message);
  return neighbour && { kind: message.type === RTM_NEIGHBOUR.new ? "put" : "delete", neighbour };
}

function readNeighbour(message: MessageCursor): KnownNeighbour | undefined {
  return message.type === RTM_NEIGHBOUR.new ? decodeNeighbour(message) : undefined;
}

/** `undefined` for an entry of a family other than IPv4 and IPv6. */
function decodeNeighbour(message: MessageCursor): KnownNeighbour | undefined {
  if (familyOfNumber(message.view.getUint8(message.start)) === undefined) return undefined;
  let address: Address | undefined;
  let mac: Uint8Array = new Uint8Array(0);
  const attributes = message.attributes(NEIGHBOUR_HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === NEIGHBOUR.address) address = addressFromBytes(attributes.copy());
    else if (attributes.type === NEIGHBOUR.mac) mac = attributes.copy();
  }
  if (address === undefined) return undefined;
  return {
    linkIndex: message.view.getInt32(message.start + 4, true),
    address,
    mac,
    isPermanent: (message.view.getUint16(message.start + 8, true) & NEIGHBOUR_STATE.permanent) !== 0,
  };
}
