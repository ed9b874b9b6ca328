/**
 * Which addresses a host has itself, or its gateways. The routing tables are asked
 * about one address, so that their size does not matter. All routes are read only
 * for an address in a network that the host is in: a gateway is always in one.
 */
import { type Address, isSameAddress, parseAddress } from "../../ip/address.ts";
import type { SocketOpener } from "../netlink-socket.ts";
import { listGateways } from "./gateways.ts";
import { type FoundRoute, routeTowards } from "./route-lookup.ts";
import { withRouteSocket } from "./route-socket.ts";

/** Addresses for documentation (RFC 5737, RFC 3849): no host has them, so that only a default route leads there. */
const ELSEWHERE = { 4: "203.0.113.1", 6: "2001:db8:ffff::1" } as const;

/** Whether the address is one of this host (a broadcast address included) or of a gateway that a route leads through. */
export function isHostAddress(kernel: SocketOpener, address: Address): boolean {
  return withRouteSocket(kernel, (socket) => {
    const route = routeTowards(socket, address);
    if (route?.isLocal === true) return true;
    const elsewhere = parseAddress(ELSEWHERE[address.family]);
    const fallback = elsewhere && routeTowards(socket, elsewhere);
    if (fallback?.gateway !== undefined && isSameAddress(fallback.gateway, address)) return true;
    if (!isInOwnNetwork(route, fallback)) return false;
    return listGateways(socket, address.family).some((gateway) => isSameAddress(gateway, address));
  });
}

/** Reached directly, and not by a default route without a gateway, such as that of a tunnel. */
function isInOwnNetwork(route: FoundRoute | undefined, fallback: FoundRoute | undefined): boolean {
  if (route === undefined || route.gateway !== undefined) return false;
  const isFallback = fallback?.gateway === undefined && fallback?.linkIndex === route.linkIndex;
  return !isFallback;
}
