/** Links and routes of this host, as the route keeper reads and changes them. */
import type { Address } from "../../ip/address.ts";
import type { KernelError } from "../../linux/kernel-error.ts";
import type { NetlinkRequest } from "../../linux/netlink/request.ts";
import { attempt, closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { findLink, findLinkByIndex, type Link, listLinks } from "../../linux/rtnetlink/link.ts";
import { addRoute, deleteRoute, listHostRoutes, type Route } from "../../linux/rtnetlink/route.ts";
import { routeTowards } from "../../linux/rtnetlink/route-lookup.ts";
import type { RouteDifference } from "../../routing/compare-routes.ts";
import type { HostState } from "./local-routes.ts";

export interface RouteKernel {
  /** Everything: takes milliseconds with thousands of routes. */
  state(): HostState;
  linkNamed(name: string): Link | undefined;
  /** The link to which packets to the address go directly; `undefined` if there is none, or if they go to a gateway. */
  linkServing(address: Address): Link | undefined;
  /** Returns why the kernel refused it. Nothing but the routes of the difference is changed. */
  resolve(difference: RouteDifference): KernelError | undefined;
  close(): void;
}

export function openKernelRoutes(kernel: SocketOpener): RouteKernel {
  const socket = kernel.openSocket("route");
  return {
    state: () => ({ links: listLinks(socket), routes: listHostRoutes(socket) }),
    linkNamed: (name) => findLink(socket, name),
    linkServing(address) {
      const route = routeTowards(socket, address);
      if (route?.linkIndex === undefined || route.gateway !== undefined || route.isLocal) return undefined;
      return findLinkByIndex(socket, route.linkIndex);
    },
    resolve: (difference) => attempt(socket, requestsFor(difference)).find((refusal) => refusal !== undefined),
    close: () => closeNetlinkSocket(socket),
  };
}

function requestsFor(difference: RouteDifference): readonly NetlinkRequest[] {
  switch (difference.kind) {
    case "missing":
      return [addRoute(difference.wanted)];
    case "changed":
      return [removal(difference.present), addRoute(difference.wanted)];
    case "stale":
      return [removal(difference.present)];
    case "clash":
      return [];
  }
}

/** Of this very route: another one that took its place meanwhile stays. */
function removal({ destination, kind, linkIndex, gateway, table, protocol, priority }: Route): NetlinkRequest {
  return deleteRoute({
    destination,
    ...(kind === undefined ? {} : { kind }),
    ...(linkIndex === undefined ? {} : { linkIndex }),
    ...(gateway === undefined ? {} : { gateway }),
    ...(table === undefined ? {} : { table }),
    ...(protocol === undefined ? {} : { protocol }),
    ...(priority === undefined ? {} : { priority }),
  });
}
