/** Asks the kernel for the route of a packet, as `ip route get` does: including rules, tables and caches. */
import { type Address, addressBits, addressBytes, addressFromBytes } from "../../ip/address.ts";
import { isKernelError } from "../kernel-error.ts";
import type { MessageCursor } from "../netlink/message-reader.ts";
import { attempt, type NetlinkSocket } from "../netlink-socket.ts";
import { familyNumber } from "./family.ts";

const GET_ROUTE = 26;
const NEW_ROUTE = 24;
const ATTRIBUTE = { destination: 1, link: 4, gateway: 5, source: 7 } as const;
const KIND = { local: 2, broadcast: 3 } as const;
const KIND_PLACE = 7;
const HEADER_LENGTH = 12;

export interface FoundRoute {
  readonly linkIndex: number | undefined;
  readonly gateway: Address | undefined;
  /** Of packets whose sender does not choose it. */
  readonly source: Address | undefined;
  /** Whether the address is one of this host, or a broadcast address of one of its networks. */
  readonly isLocal: boolean;
}

/** The index of the link of the route to the address; `undefined` if there is no route. */
export function linkTowards(socket: NetlinkSocket, address: Address): number | undefined {
  return routeTowards(socket, address)?.linkIndex;
}

/** `undefined` if there is no route. */
export function routeTowards(socket: NetlinkSocket, address: Address): FoundRoute | undefined {
  let route: FoundRoute | undefined;
  const request = {
    action: "find the route to an address",
    type: GET_ROUTE,
    flags: 0,
    isQuestion: true,
    write(writer: { raw(bytes: Uint8Array): void; bytes(type: number, value: Uint8Array): void }) {
      const header = new Uint8Array(HEADER_LENGTH);
      header[0] = familyNumber(address.family);
      header[1] = addressBits(address.family);
      writer.raw(header);
      writer.bytes(ATTRIBUTE.destination, addressBytes(address));
    },
  };
  const [error] = attempt(socket, [request], (message) => {
    if (message.type === NEW_ROUTE) route = readFoundRoute(message);
  });
  if (error === undefined) return route;
  if (isKernelError(error, "ENETUNREACH", "EHOSTUNREACH", "EACCES", "EINVAL", "ESRCH")) return undefined;
  throw error;
}

function readFoundRoute(message: MessageCursor): FoundRoute {
  const kind = message.view.getUint8(message.start + KIND_PLACE);
  let linkIndex: number | undefined;
  let gateway: Address | undefined;
  let source: Address | undefined;
  const attributes = message.attributes(HEADER_LENGTH);
  while (attributes.next()) {
    if (attributes.type === ATTRIBUTE.link) linkIndex = attributes.u32();
    else if (attributes.type === ATTRIBUTE.gateway) gateway = addressFromBytes(attributes.copy());
    else if (attributes.type === ATTRIBUTE.source) source = addressFromBytes(attributes.copy());
  }
  return { linkIndex, gateway, source, isLocal: kind === KIND.local || kind === KIND.broadcast };
}
