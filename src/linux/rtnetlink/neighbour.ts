/** Permanent neighbour entries: the MAC of an address on a link. */
import { putNumber } from "../../bytes.ts";
import { type Address, addressBytes, addressFromBytes, formatAddress } from "../../ip/address.ts";
import type { MessageCursor } from "../netlink/message-reader.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { dump, type NetlinkSocket } from "../netlink-socket.ts";
import { familyNumber } from "./family.ts";

const RTM = { newNeighbour: 28, deleteNeighbour: 29, getNeighbour: 30 } as const;
const ATTRIBUTE = { address: 1, mac: 2 } as const;
const PERMANENT = 0x80;
const HEADER_LENGTH = 12;

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
    type: RTM.newNeighbour,
    flags: FLAG.create | FLAG.replace,
    write(writer) {
      writer.raw(header(neighbour, PERMANENT));
      writer.bytes(ATTRIBUTE.address, addressBytes(neighbour.address));
      writer.bytes(ATTRIBUTE.mac, neighbour.mac);
    },
  };
}

/** ENOENT if there is none. */
export function deleteNeighbour(neighbour: Omit<Neighbour, "mac">): NetlinkRequest {
  return {
    action: `delete neighbour ${formatAddress(neighbour.address)} of link ${neighbour.linkIndex}`,
    type: RTM.deleteNeighbour,
    flags: 0,
    write(writer) {
      writer.raw(header(neighbour, 0));
      writer.bytes(ATTRIBUTE.address, addressBytes(neighbour.address));
    },
  };
}

export function listNeighbours(socket: NetlinkSocket): KnownNeighbour[] {
  const request: NetlinkRequest = {
    action: "list neighbours",
    type: RTM.getNeighbour,
    flags: 0,
    write: (writer) => writer.raw(new Uint8Array(HEADER_LENGTH)),
  };
  return dump(socket, request, readNeighbour);
}

function header({ address, linkIndex }: Omit<Neighbour, "mac">, state: number): Uint8Array {
  const bytes = new Uint8Array(HEADER_LENGTH);
  bytes[0] = familyNumber(address.family);
  putNumber(bytes, 4, linkIndex);
  bytes[8] = state;
  return bytes;
}

function readNeighbour(message: MessageCursor): KnownNeighbour | undefined {
  if (message.type !== RTM.newNeighbour) return undefined;
  let address: Address | undefined;
  let mac: Uint8Array = new Uint8Array(0);
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.address) address = addressFromBytes(attributes.copy());
    else if (attributes.type === ATTRIBUTE.mac) mac = attributes.copy();
  }
  if (address === undefined) return undefined;
  return {
    linkIndex: message.view.getInt32(message.start + 4, true),
    address,
    mac,
    isPermanent: (message.view.getUint16(message.start + 8, true) & PERMANENT) !== 0,
  };
}
