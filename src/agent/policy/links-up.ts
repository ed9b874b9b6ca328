/** Which interfaces are up. */
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { findLink, listLinks } from "../../linux/rtnetlink/link.ts";

/** From this number on, reading all links is faster than reading each. */
const MANY = 16;

export function linksUp(socket: NetlinkSocket, names: readonly string[]): ReadonlySet<string> {
  const links = names.length < MANY ? names.map((name) => findLink(socket, name)) : listLinks(socket);
  return new Set(links.flatMap((link) => (link?.isUp === true ? [link.name] : [])));
}
