/** The host's own addresses, as the admin tool registers them. */
import type { HostAddress } from "../admin/node/host-addresses.ts";
import { listAddresses } from "../linux/rtnetlink/address.ts";
import { withRouteSocket } from "../linux/rtnetlink/route-socket.ts";
import { uplinksOf } from "./uplinks.ts";

export function hostAddresses(): readonly HostAddress[] {
  return withRouteSocket((socket) => {
    const uplinks = uplinksOf(socket);
    return listAddresses(socket)
      .filter(({ scope, isTentative }) => scope === "universe" && !isTentative)
      .map(({ address, length, linkIndex }) => ({ address, length, isOfUplink: uplinks.has(linkIndex) }));
  });
}
