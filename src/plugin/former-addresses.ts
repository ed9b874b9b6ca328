/**
 * The addresses that a host link was wired for by an earlier ADD: those with a route
 * of their own to the link. A second ADD that gets other addresses, because the
 * earlier ones were released meanwhile, unwires them: another container may have
 * them by now.
 */
import { effect } from "../effect.ts";
import { type Address, addressBits, formatAddress } from "../ip/address.ts";
import { singlePrefix } from "../ip/prefix.ts";
import type { HostLinks } from "../ipam/leaks/find.ts";
import { isMark } from "../ipam/link-mark.ts";
import { isKernelError } from "../linux/kernel-error.ts";
import type { NetlinkRequest } from "../linux/netlink/request.ts";
import { attempt, type NetlinkSocket } from "../linux/netlink-socket.ts";
import { deleteAddress } from "../linux/rtnetlink/address.ts";
import { deleteNeighbour } from "../linux/rtnetlink/neighbour.ts";
import { deleteRoute, listRoutes, MAIN_TABLE } from "../linux/rtnetlink/route.ts";

/** One end of an attachment's links, and the socket of its namespace. */
interface End {
  readonly socket: NetlinkSocket;
  readonly linkIndex: number;
}

export function addressesRoutedTo(host: NetlinkSocket, linkIndex: number): readonly Address[] {
  return listRoutes(host)
    .filter((route) => route.linkIndex === linkIndex && route.kind === "unicast" && route.table === MAIN_TABLE)
    .filter(({ destination }) => destination.length === addressBits(destination.network.family))
    .map(({ destination }) => destination.network);
}

/** Removes the address in the container, and the route and the neighbour entry on the host. */
export function unwireAddresses(
  former: readonly Address[],
  { host, container }: { readonly host: End; readonly container: End },
): void {
  if (former.length === 0) return;
  effect("remove former addresses", () => {
    performIfPresent(
      host.socket,
      former.flatMap((address) => [
        deleteRoute({ destination: singlePrefix(address), linkIndex: host.linkIndex }),
        deleteNeighbour({ address, linkIndex: host.linkIndex }),
      ]),
    );
    performIfPresent(
      container.socket,
      former.map((address) =>
        deleteAddress({ address, length: addressBits(address.family), linkIndex: container.linkIndex }),
      ),
    );
  });
}

/** After the removal of the own link: without those that another container of this host has by now. */
export function withoutThoseOfOthers(
  addresses: readonly Address[],
  { routed }: Pick<HostLinks, "routed">,
): readonly Address[] {
  return addresses.filter((address) => !isMark(routed.get(formatAddress(address)) ?? ""));
}

/** Those that are not among the current ones. */
export function formerAddresses(before: readonly Address[], now: readonly Address[]): readonly Address[] {
  const current = new Set(now.map(formatAddress));
  return before.filter((address) => !current.has(formatAddress(address)));
}

function performIfPresent(socket: NetlinkSocket, requests: readonly NetlinkRequest[]): void {
  for (const refusal of attempt(socket, requests)) {
    if (refusal === undefined || isKernelError(refusal, "ESRCH")) continue;
    if (isKernelError(refusal, "ENOENT") || isKernelError(refusal, "EADDRNOTAVAIL")) continue;
    throw refusal;
  }
}
