/** The host's own addresses, and by which of them it reaches others. */
import type { Address, Family } from "../../ip/address.ts";
import { parseAddress } from "../../ip/address.ts";
import type { InterfaceAddress } from "../../ip/prefix.ts";
import type { SocketOpener } from "../netlink-socket.ts";
import { listAddresses } from "./address.ts";
import { listLinks } from "./link.ts";
import { isOwnDevice } from "./own-devices.ts";
import { routeTowards } from "./route-lookup.ts";
import { withRouteSocket } from "./route-socket.ts";
import { uplinksOf } from "./uplinks.ts";

/** An address that other hosts may use: of universe scope, neither tentative, deprecated nor temporary. */
export interface HostAddress extends InterfaceAddress {
  readonly link: HostLink;
}

export interface HostLink {
  readonly name: string;
  readonly mtu: number;
  /** The families that it has a default route of. */
  readonly defaultRoutes: readonly Family[];
}

/** Those that other hosts may use, in the order of their links. */
export function hostAddresses(kernel: SocketOpener): readonly HostAddress[] {
  return withRouteSocket(kernel, (socket) => {
    const uplinks = uplinksOf(socket);
    const links = new Map(listLinks(socket).map(({ index, name, mtu }) => [index, { name, mtu }]));
    const usable = listAddresses(socket).filter(
      ({ scope, isTentative, isShortLived }) => scope === "universe" && !isTentative && !isShortLived,
    );
    return usable
      .toSorted((left, right) => left.linkIndex - right.linkIndex)
      .flatMap(({ address, length, linkIndex }): HostAddress[] => {
        const link = links.get(linkIndex);
        const defaultRoutes = FAMILIES.filter((family) => uplinks[family] === linkIndex);
        return link === undefined || isOwnDevice(link.name)
          ? []
          : [{ address, length, link: { ...link, defaultRoutes } }];
      });
  });
}

export function linkNames(kernel: SocketOpener): readonly string[] {
  return withRouteSocket(kernel, (socket) => listLinks(socket).map(({ name }) => name));
}

const FAMILIES: readonly Family[] = [4, 6];

/** The source address of packets to an address or a name; `undefined` if there is no route, or no such name. */
export async function sourceTowards(
  kernel: SocketOpener,
  destination: string,
  family: Family,
): Promise<Address | undefined> {
  const address = parseAddress(destination) ?? (await resolve(destination, family));
  return address === undefined ? undefined : withRouteSocket(kernel, (socket) => routeTowards(socket, address)?.source);
}

async function resolve(name: string, family: Family): Promise<Address | undefined> {
  try {
    const { lookup } = await import("node:dns/promises");
    return parseAddress((await lookup(name, { family })).address);
  } catch {
    return undefined;
  }
}
