/** Planned routes as routes of the kernel, and which routes of the kernel are ours. Pure. */
import type { Address } from "../../ip/address.ts";
import { MAIN_TABLE, ROUTE_PROTOCOL, type Route } from "../../linux/rtnetlink/route.ts";
import type { PlannedRoute, TunnelName } from "../../routing/plan.ts";

/** The indexes of the links that routes lead to. */
export interface RouteLinks {
  /** Only of devices that exist. */
  readonly tunnels: ReadonlyMap<TunnelName, number>;
  /** The link in whose subnet the gateway is. */
  readonly towards: (gateway: Address) => number | undefined;
}

/** `undefined` if there is no link for it. */
export function kernelRoute({ destination, hop }: PlannedRoute, links: RouteLinks): Route | undefined {
  const protocol = ROUTE_PROTOCOL.own;
  switch (hop.kind) {
    case "blackhole":
      return { destination, protocol, kind: "blackhole" };
    case "tunnel": {
      const linkIndex = links.tunnels.get(hop.tunnel);
      return linkIndex === undefined
        ? undefined
        : { destination, protocol, gateway: hop.gateway, linkIndex, isOnLink: true };
    }
    case "gateway": {
      const linkIndex = links.towards(hop.gateway);
      return linkIndex === undefined ? undefined : { destination, protocol, gateway: hop.gateway, linkIndex };
    }
  }
}

/** The routes of pods have our protocol too, and neither a gateway nor are they blackholes: they have their own keeper. */
export function isBetweenNodes(
  { protocol, table = MAIN_TABLE, linkIndex, gateway, kind }: Route,
  tunnels: ReadonlySet<number>,
): boolean {
  if (protocol !== ROUTE_PROTOCOL.own || table !== MAIN_TABLE) return false;
  return kind === "blackhole" || gateway !== undefined || (linkIndex !== undefined && tunnels.has(linkIndex));
}
