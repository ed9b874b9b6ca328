/** Which addresses a host has itself, or its gateway: asked of the routing tables, whose size does not matter. */
import { type Address, isSameAddress, parseAddress } from "../../ip/address.ts";
import { routeTowards } from "./route-lookup.ts";
import { withRouteSocket } from "./route-socket.ts";

/** Addresses for documentation (RFC 5737, RFC 3849): no host has them, so that only a default route leads there. */
const ELSEWHERE = { 4: "203.0.113.1", 6: "2001:db8:ffff::1" } as const;

/** Whether the address is one of this host (a broadcast address included) or of the default route's gateway. */
export function isHostAddress(address: Address): boolean {
  return withRouteSocket((socket) => {
    if (routeTowards(socket, address)?.isLocal === true) return true;
    const elsewhere = parseAddress(ELSEWHERE[address.family]);
    const gateway = elsewhere && routeTowards(socket, elsewhere)?.gateway;
    return gateway !== undefined && isSameAddress(gateway, address);
  });
}
