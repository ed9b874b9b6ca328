/** The links with a default route: by them the host reaches others. */
import { parseAddress } from "../ip/address.ts";
import type { NetlinkSocket } from "../linux/netlink-socket.ts";
import { linkTowards } from "../linux/rtnetlink/route-lookup.ts";

/** Addresses for documentation (RFC 5737, RFC 3849): no host has them, so that only a default route leads there. */
const ELSEWHERE = ["203.0.113.1", "2001:db8::1"];

/** Their indexes. */
export function uplinksOf(socket: NetlinkSocket): ReadonlySet<number> {
  const found = ELSEWHERE.map((text) => {
    const address = parseAddress(text);
    return address === undefined ? undefined : linkTowards(socket, address);
  });
  return new Set(found.filter((index): index is number => index !== undefined));
}
