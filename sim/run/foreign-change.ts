/** What another program does to what the product has set in the kernel: it deletes something. */

import type { NetlinkRequest } from "../../src/linux/netlink/request.ts";
import { closeNetlinkSocket, type NetlinkSocket, perform } from "../../src/linux/netlink-socket.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { deleteForwardingEntry } from "../../src/linux/rtnetlink/forwarding-entry.ts";
import { deleteLink } from "../../src/linux/rtnetlink/link.ts";
import { deleteNeighbour } from "../../src/linux/rtnetlink/neighbour.ts";
import { deleteRoute, MAIN_TABLE, ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
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
  const request = requestFor(host, what, choice);
  if (request === undefined) return false;
  withSocket(kernel.openSocket("route"), (socket) => perform(socket, [request]));
  return true;
}

function requestFor(
  { root }: SimulatedHost,
  what: Exclude<ForeignChange, "delete a table">,
  choice: number,
): NetlinkRequest | undefined {
  switch (what) {
    case "delete a route": {
      const own = root.routes.filter(
        ({ table, protocol }) => table === MAIN_TABLE && protocol !== ROUTE_PROTOCOL.kernel,
      );
      const route = pick(
        own.filter(({ destination }) => destination.length > 0),
        choice,
      );
      if (route === undefined) return undefined;
      const { destination, priority, table } = route;
      return deleteRoute({ destination, priority, table });
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
