/** The links with a default route: by them the host reaches others. */
import { type Family, parseAddress } from "../../ip/address.ts";
import type { NetlinkSocket } from "../netlink-socket.ts";
import { findLinkByIndex } from "./link.ts";
import { routeTowards } from "./route-lookup.ts";

/** Addresses for documentation (RFC 5737, RFC 3849): no host has them, so that only a default route leads there. */
const ELSEWHERE = { 4: "203.0.113.1", 6: "2001:db8:ffff::1" } as const;

export function uplinkNames(socket: NetlinkSocket): readonly string[] {
  const indexes = new Set(Object.values(uplinksOf(socket)).filter((index) => index !== undefined));
  return [...indexes].flatMap((index) => findLinkByIndex(socket, index)?.name ?? []);
}

/** Their indexes, by the family of the default route. */
export function uplinksOf(socket: NetlinkSocket): Readonly<Record<Family, number | undefined>> {
  const towards = (text: string) => {
    const address = parseAddress(text);
    const route = address === undefined ? undefined : routeTowards(socket, address);
    return route?.isLocal === true ? undefined : route?.linkIndex;
  };
  return { 4: towards(ELSEWHERE[4]), 6: towards(ELSEWHERE[6]) };
}
