/** What another program does to what the product has set in the kernel: it deletes something. */

import type { NetlinkRequest } from "../../src/linux/netlink/request.ts";
import { closeNetlinkSocket, type NetlinkSocket, perform } from "../../src/linux/netlink-socket.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { deleteForwardingEntry } from "../../src/linux/rtnetlink/forwarding-entry.ts";
import { deleteLink } from "../../src/linux/rtnetlink/link.ts";
import { deleteNeighbour } from "../../src/linux/rtnetlink/neighbour.ts";
import { deleteRoute, MAIN_TABLE, ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
import type { ModelRoute } from "../kernel/model.ts";
import type { SimulatedHost } from "../kernel/simulated-host.ts";
import type { ForeignChange } from "../script/operation.ts";

/** `choice` selects among what there is. Returns `false` if there is nothing. */
export function changeKernel(
  host: SimulatedHost,
  { what, choice }: { readonly what: ForeignChange; readonly choice: number },
): boolean {
  const kernel = host.directKernel();
  if (what === "delete a table") {
    const table = pick([...host.root.nftables.tables.values()], choice);
    if (table === undefined) return false;
    const { family, name } = table;
    withSocket(kernel.openSocket("netfilter"), (socket) =>
      commit(socket, [{ kind: "delete-table", table: { family, name } }]),
    );
    return true;
  }
  const requests = requestsFor(host, what, choice);
  if (requests.length === 0) return false;
  withSocket(kernel.openSocket("route"), (socket) => perform(socket, requests));
  return true;
}

function requestsFor(
  host: SimulatedHost,
  what: Exclude<ForeignChange, "delete a table">,
  choice: number,
): readonly NetlinkRequest[] {
  if (what === "delete all routes") return routesOf(host).map(deletionOf);
  const request = requestFor(host, what, choice);
  return request === undefined ? [] : [request];
}

function requestFor(
  host: SimulatedHost,
  what: Exclude<ForeignChange, "delete a table" | "delete all routes">,
  choice: number,
): NetlinkRequest | undefined {
  const { root } = host;
  switch (what) {
    case "delete a route": {
      const route = pick(routesOf(host), choice);
      return route && deletionOf(route);
    }
    case "delete a tunnel": {
      // Linux keeps its first IPIP device, and without its link a pod could not be repaired.
      const link = pick(
        [...root.links.values()].filter(({ kind }) => kind === "vxlan"),
        choice,
      );
      return link && deleteLink(link);
    }
    case "delete a neighbour": {
      const neighbour = pick(root.neighbours, choice);
      return neighbour && deleteNeighbour(neighbour);
    }
    case "delete a forwarding entry": {
      const entry = pick(root.forwarding, choice);
      return entry && deleteForwardingEntry(entry);
    }
  }
}

/** Those that the kernel has not made itself, but for the default route. */
function routesOf({ root }: SimulatedHost): readonly ModelRoute[] {
  return root.routes.filter(
    ({ table, protocol, destination }) =>
      table === MAIN_TABLE && protocol !== ROUTE_PROTOCOL.kernel && destination.length > 0,
  );
}

function deletionOf({ destination, priority, table }: ModelRoute): NetlinkRequest {
  return deleteRoute({ destination, priority, table });
}

function pick<Item>(items: readonly Item[], choice: number): Item | undefined {
  return items[choice % Math.max(1, items.length)];
}

function withSocket(socket: NetlinkSocket, work: (socket: NetlinkSocket) => void): void {
  try {
    work(socket);
  } finally {
    closeNetlinkSocket(socket);
  }
}
