/** Whether an ipset contains an IPv4 address, asked in a system call: `ipset test` takes milliseconds. */
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import type { NetlinkRequest } from "../../src/linux/netlink/request.ts";
import { attempt, type NetlinkSocket } from "../../src/linux/netlink-socket.ts";

/** Of <linux/netfilter/ipset/ip_set.h>. */
const TEST = 0x060b;
const PROTOCOL = { attribute: 1, version: 6 };
const SET_NAME = 2;
const DATA = 7;
const ADDRESS = 1;
/** An IPv4 address in network byte order. */
const IPV4 = 1 | 0x4000;

export function isIpsetMember(socket: NetlinkSocket, set: string, address: string): boolean {
  const parsed = parseAddress(address);
  if (parsed === undefined) throw new Error(`"${address}" is not an address`);
  const request: NetlinkRequest = {
    action: `test a member of ipset "${set}"`,
    type: TEST,
    flags: 0,
    write(writer) {
      writer.raw(new Uint8Array(4));
      writer.u8(PROTOCOL.attribute, PROTOCOL.version);
      writer.text(SET_NAME, set);
      const data = writer.open(DATA);
      const key = writer.open(ADDRESS);
      writer.bytes(IPV4, addressBytes(parsed));
      writer.close(key);
      writer.close(data);
    },
  };
  const [error] = attempt(socket, [request]);
  return error === undefined;
}
