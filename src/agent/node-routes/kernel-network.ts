/** Links, entries and routes of this host, as the keeper of routes between nodes reads and changes them. */
import { setChecksumOffload } from "../../linux/checksum-offload.ts";
import type { KernelError } from "../../linux/kernel-error.ts";
import type { NetlinkRequest } from "../../linux/netlink/request.ts";
import { attempt, closeNetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { type KnownAddress, listAddresses } from "../../linux/rtnetlink/address.ts";
import { listForwardingEntries } from "../../linux/rtnetlink/forwarding-entry.ts";
import { type Link, listLinks } from "../../linux/rtnetlink/link.ts";
import { listNeighbours } from "../../linux/rtnetlink/neighbour.ts";
import { listMainRoutes, type Route } from "../../linux/rtnetlink/route.ts";
import { findVxlan, type LinkWithVxlan } from "../../linux/rtnetlink/vxlan.ts";
import type { PresentEntries } from "./peer-entries.ts";

export interface NetworkKernel {
  addresses(): { readonly links: readonly Link[]; readonly addresses: readonly KnownAddress[] };
  /** The link of that name, whatever its kind. */
  device(name: string): LinkWithVxlan | undefined;
  entries(linkIndex: number): PresentEntries;
  /** Those of the main table. A blackhole has no link. */
  routes(): readonly Route[];
  /** All at once, in this order. Returns why each was refused, if it was. */
  attempt(requests: readonly NetlinkRequest[]): readonly (KernelError | undefined)[];
  turnOffChecksumOffload(name: string): void;
  close(): void;
}

export function openKernelNetwork(kernel: SocketOpener): NetworkKernel {
  const socket = kernel.openSocket("route");
  return {
    addresses: () => ({ links: listLinks(socket), addresses: listAddresses(socket) }),
    device: (name) => findVxlan(socket, name),
    entries: (linkIndex) => ({
      linkIndex,
      neighbours: listNeighbours(socket, linkIndex),
      forwarding: listForwardingEntries(socket, linkIndex),
    }),
    routes: () => listMainRoutes(socket).map(withoutLoopback),
    attempt: (requests) => attempt(socket, requests),
    turnOffChecksumOffload: (name) => setChecksumOffload(name, "off"),
    close: () => closeNetlinkSocket(socket),
  };
}

/** The kernel says of a blackhole of IPv6 that it is on the loopback interface. */
export function withoutLoopback(route: Route): Route {
  if (route.kind !== "blackhole" || route.linkIndex === undefined) return route;
  const { linkIndex: _loopback, ...rest } = route;
  return rest;
}
