/** Asks the kernel for the route of a packet, as `ip route get` does: including rules, tables and caches. */
import { type Address, addressBits, addressBytes } from "../../ip/address.ts";
import { isKernelError } from "../kernel-error.ts";
import { attempt, type NetlinkSocket } from "../netlink-socket.ts";
import { familyNumber } from "./family.ts";

const GET_ROUTE = 26;
const NEW_ROUTE = 24;
const ATTRIBUTE = { destination: 1, link: 4 } as const;
const HEADER_LENGTH = 12;

/** The index of the link of the route to the address; `undefined` if there is no route. */
export function linkTowards(socket: NetlinkSocket, address: Address): number | undefined {
  let link: number | undefined;
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
    if (message.type !== NEW_ROUTE) return;
    const attributes = message.attributes(HEADER_LENGTH);
    while (attributes.next()) if (attributes.type === ATTRIBUTE.link) link = attributes.u32();
  });
  if (error === undefined) return link;
  if (isKernelError(error, "ENETUNREACH", "EHOSTUNREACH", "EACCES", "EINVAL", "ESRCH")) return undefined;
  throw error;
}
