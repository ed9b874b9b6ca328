/** The route from a host to one address of its workloads; the link is that of the workload. */
import type { Address } from "../ip/address.ts";
import { singlePrefix } from "../ip/prefix.ts";
import { ROUTE_PROTOCOL, type Route } from "../linux/rtnetlink/route.ts";

export function workloadRoute(address: Address): Omit<Route, "linkIndex"> {
  return {
    destination: singlePrefix(address),
    // IPv6 has only one scope.
    scope: address.family === 4 ? "link" : "universe",
    protocol: ROUTE_PROTOCOL.own,
  };
}
