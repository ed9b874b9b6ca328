/** Addresses of links. */
import { putNumber } from "../../bytes.ts";
import { type Address, addressBytes, addressFromBytes, type Family } from "../../ip/address.ts";
import { formatInterfaceAddress, type InterfaceAddress } from "../../ip/prefix.ts";
import type { MessageCursor } from "../netlink/message-reader.ts";
import type { NetlinkRequest } from "../netlink/request.ts";
import { FLAG } from "../netlink/wire.ts";
import { dump, type NetlinkSocket } from "../netlink-socket.ts";
import { familyNumber } from "./family.ts";

export const RTM = { newAddress: 20, deleteAddress: 21, getAddress: 22 } as const;
const ATTRIBUTE = { address: 1, local: 2, flags: 8 } as const;
const HEADER_LENGTH = 8;
const ADDRESS_FLAG = { temporary: 0x01, noDuplicateDetection: 0x02, deprecated: 0x20, tentative: 0x40 } as const;
const IPV6 = 10;
const SCOPE = { universe: 0, link: 253, host: 254 } as const;

export interface LinkAddress extends InterfaceAddress {
  readonly linkIndex: number;
}

export interface KnownAddress extends LinkAddress {
  readonly scope: "universe" | "link" | "host" | "other";
  /** Not usable yet: duplicate address detection is running. */
  readonly isTentative: boolean;
  /** Only if it is deprecated, or a privacy address of IPv6: it is not there for long. */
  readonly isShortLived?: true;
}

/** An IPv6 address is usable at once: without duplicate address detection. */
export function addAddress(address: LinkAddress): NetlinkRequest {
  return addressRequest("add", RTM.newAddress, FLAG.create | FLAG.exclusive, address);
}

/** Like `addAddress`, but not an error if the link has the address already. */
export function ensureAddress(address: LinkAddress): NetlinkRequest {
  return addressRequest("set", RTM.newAddress, FLAG.create | FLAG.replace, address);
}

export function deleteAddress(address: LinkAddress): NetlinkRequest {
  return addressRequest("delete", RTM.deleteAddress, 0, address);
}

function addressRequest(verb: string, type: number, flags: number, of: LinkAddress): NetlinkRequest {
  return {
    action: `${verb} address ${formatInterfaceAddress(of)} of link ${of.linkIndex}`,
    type,
    flags,
    write(writer) {
      const header = new Uint8Array(HEADER_LENGTH);
      header[0] = familyNumber(of.address.family);
      header[1] = of.length;
      header[2] = of.address.family === 6 && type === RTM.newAddress ? ADDRESS_FLAG.noDuplicateDetection : 0;
      header[3] = SCOPE.universe;
      putNumber(header, 4, of.linkIndex);
      writer.raw(header);
      const bytes = addressBytes(of.address);
      writer.bytes(ATTRIBUTE.local, bytes);
      writer.bytes(ATTRIBUTE.address, bytes);
    },
  };
}

export function listAddresses(socket: NetlinkSocket, family?: Family): KnownAddress[] {
  const request: NetlinkRequest = {
    action: "list addresses",
    type: RTM.getAddress,
    flags: 0,
    write(writer) {
      const header = new Uint8Array(HEADER_LENGTH);
      header[0] = familyNumber(family);
      writer.raw(header);
    },
  };
  return dump(socket, request, readAddress);
}

function readAddress(message: MessageCursor): KnownAddress | undefined {
  return message.type === RTM.newAddress ? addressIn(message) : undefined;
}

export interface AddressChange {
  readonly change: "put" | "delete";
  readonly address: KnownAddress;
}

export function readAddressChange(message: MessageCursor): AddressChange | undefined {
  if (message.type !== RTM.newAddress && message.type !== RTM.deleteAddress) return undefined;
  const address = addressIn(message);
  return address && { change: message.type === RTM.newAddress ? "put" : "delete", address };
}

function addressIn(message: MessageCursor): KnownAddress | undefined {
  const { view, start } = message;
  let address: Address | undefined;
  let local: Address | undefined;
  let flags = view.getUint8(start + 2);
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.address) address = addressFromBytes(attributes.copy());
    else if (attributes.type === ATTRIBUTE.local) local = addressFromBytes(attributes.copy());
    else if (attributes.type === ATTRIBUTE.flags) flags = attributes.u32();
  }
  // On a point-to-point link `address` is that of the other end.
  const own = local ?? address;
  if (own === undefined) return undefined;
  return {
    linkIndex: view.getUint32(start + 4, true),
    address: own,
    length: view.getUint8(start + 1),
    scope: scopeOf(view.getUint8(start + 3)),
    isTentative: (flags & ADDRESS_FLAG.tentative) !== 0,
    ...(isShortLived(view.getUint8(start), flags) ? { isShortLived: true } : {}),
  };
}

/** Of IPv4 the flag of temporary ones says that it is not the first address of its network. */
function isShortLived(family: number, flags: number): boolean {
  const relevant = family === IPV6 ? ADDRESS_FLAG.deprecated | ADDRESS_FLAG.temporary : ADDRESS_FLAG.deprecated;
  return (flags & relevant) !== 0;
}

function scopeOf(scope: number): KnownAddress["scope"] {
  if (scope === SCOPE.universe) return "universe";
  if (scope === SCOPE.link) return "link";
  return scope === SCOPE.host ? "host" : "other";
}
