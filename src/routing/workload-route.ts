/** The routes of this product: to the workloads of this host, and to other nodes. Pure. */
import type { Address } from "../ip/address.ts";
import { singlePrefix } from "../ip/prefix.ts";
import { ROUTE_PROTOCOL, type Route } from "../linux/rtnetlink/route.ts";

/** The route from a host to one address of its workloads; the link is that of the workload. */
export function workloadRoute(address: Address): Omit<Route, "linkIndex"> {
  return {
    destination: singlePrefix(address),
    // IPv6 has only one scope.
    scope: address.family === 4 ? "link" : "universe",
    protocol: ROUTE_PROTOCOL.own,
  };
}

/** Whether the node agent made it to reach another node. Routes of workloads have no gateway. */
export function leadsToNode({ protocol, gateway }: Route): boolean {
  return protocol === ROUTE_PROTOCOL.own && gateway !== undefined;
}

/** Whether it leads to a workload of this host. */
export function isOfWorkload({ protocol, kind = "unicast", gateway }: Route): boolean {
  return protocol === ROUTE_PROTOCOL.own && kind === "unicast" && gateway === undefined;
}
