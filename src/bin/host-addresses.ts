/** The host's own addresses, as the admin tool registers them. */
import type { HostAddress } from "../admin/node/host-addresses.ts";
import { type Address, parseAddress } from "../ip/address.ts";
import { listAddresses } from "../linux/rtnetlink/address.ts";
import { linkTowards } from "../linux/rtnetlink/route-lookup.ts";
import { withRouteSocket } from "../linux/rtnetlink/route-socket.ts";

/** Addresses for documentation (RFC 5737, RFC 3849): no host has them, so that only a default route leads there. */
const ELSEWHERE = ["203.0.113.1", "2001:db8::1"];

export function hostAddresses(): readonly HostAddress[] {
  return withRouteSocket((socket) => {
    const elsewhere = ELSEWHERE.map(parseAddress).filter((address): address is Address => address !== undefined);
    const uplinks = new Set(elsewhere.map((address) => linkTowards(socket, address)));
    return listAddresses(socket)
      .filter(({ scope, isTentative }) => scope === "universe" && !isTentative)
      .map(({ address, length, linkIndex }) => ({ address, length, isOfUplink: uplinks.has(linkIndex) }));
  });
}
