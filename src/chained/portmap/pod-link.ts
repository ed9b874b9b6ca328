/** The link through which the host reaches a pod. */
import { type Address, parseAddress } from "../../ip/address.ts";
import { ownSockets } from "../../linux/netlink-socket.ts";
import { findLinkByIndex } from "../../linux/rtnetlink/link.ts";
import { linkTowards } from "../../linux/rtnetlink/route-lookup.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import type { PodLink } from "./masqueraded-sources.ts";

/** Addresses that no network has: the route to them is the default route. */
const ELSEWHERE = { 4: parseAddress("203.0.113.1"), 6: parseAddress("2001:db8:ffff::1") } as const;
/** Links that lead to pods and nowhere else, unless they have the default route. */
const KINDS_TO_PODS: readonly (string | undefined)[] = ["veth", "bridge"];

/** `undefined` if there is no route to the pod. */
export function findPodLink(pod: Address): PodLink | undefined {
  return withRouteSocket(ownSockets, (socket) => {
    const index = linkTowards(socket, pod);
    const link = index === undefined ? undefined : findLinkByIndex(socket, index);
    if (link === undefined) return undefined;
    const elsewhere = ELSEWHERE[pod.family];
    const isDefault = elsewhere !== undefined && linkTowards(socket, elsewhere) === index;
    const isUplink = isDefault || !KINDS_TO_PODS.includes(link.kind);
    return { name: link.name, index: link.index, isShared: link.kind === "bridge", isUplink };
  });
}
