/** The gateways of all routes, those with several next hops included. */
import { type Address, addressFromBytes, type Family } from "../../ip/address.ts";
import type { AttributeCursor, MessageCursor } from "../netlink/message-reader.ts";
import { dump, type NetlinkSocket } from "../netlink-socket.ts";
import { familyNumber } from "./family.ts";

const RTM = { newRoute: 24, getRoute: 26 } as const;
const ATTRIBUTE = { gateway: 5, nextHops: 9 } as const;
const HEADER_LENGTH = 12;
/** A next hop begins like an attribute, with its length; the index of its link follows. */
const LINK_INDEX_LENGTH = 4;

export function listGateways(socket: NetlinkSocket, family: Family): readonly Address[] {
  const request = {
    action: "list gateways",
    type: RTM.getRoute,
    flags: 0,
    write(writer: { raw(bytes: Uint8Array): void }) {
      const header = new Uint8Array(HEADER_LENGTH);
      header[0] = familyNumber(family);
      writer.raw(header);
    },
  };
  return dump(socket, request, readGateways).flat();
}

function readGateways(message: MessageCursor): readonly Address[] | undefined {
  if (message.type !== RTM.newRoute) return undefined;
  const gateways = gatewaysIn(message.attributes(HEADER_LENGTH));
  return gateways.length === 0 ? undefined : gateways;
}

function gatewaysIn(attributes: AttributeCursor): readonly Address[] {
  const found: Address[] = [];
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.gateway) found.push(...addressOf(attributes.copy()));
    if (attributes.type !== ATTRIBUTE.nextHops) continue;
    const hops = attributes.nested();
    while (hops.next()) found.push(...gatewaysIn(hops.nested(LINK_INDEX_LENGTH)));
  }
  return found;
}

function addressOf(bytes: Uint8Array): readonly Address[] {
  const address = addressFromBytes(bytes);
  return address === undefined ? [] : [address];
}
