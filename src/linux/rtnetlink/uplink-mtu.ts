/** The smallest MTU of the links with a default route; without one, of all links that have an address of their own. */
import type { SocketOpener } from "../netlink-socket.ts";
import { listAddresses } from "./address.ts";
import { listLinks } from "./link.ts";
import { isOwnDevice } from "./own-devices.ts";
import { withRouteSocket } from "./route-socket.ts";
import { uplinksOf } from "./uplinks.ts";

const LOOPBACK = "lo";

export function uplinkMtu(kernel: SocketOpener): number | undefined {
  return withRouteSocket(kernel, (socket) => {
    const uplinks = Object.values(uplinksOf(socket)).filter((index) => index !== undefined);
    const addressed = listAddresses(socket).flatMap(({ scope, linkIndex }) =>
      scope === "universe" ? [linkIndex] : [],
    );
    const chosen = new Set(uplinks.length === 0 ? addressed : uplinks);
    const mtus = listLinks(socket)
      .filter(({ index, name }) => chosen.has(index) && name !== LOOPBACK && !isOwnDevice(name))
      .map(({ mtu }) => mtu);
    return mtus.length === 0 ? undefined : Math.min(...mtus);
  });
}
