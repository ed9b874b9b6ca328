/** The link behind which a pod is, and whether 127.0.0.1 may be led to it. */
import type { Address } from "../../ip/address.ts";
import { findLinkByIndex } from "../../linux/rtnetlink/link.ts";
import { linkTowards } from "../../linux/rtnetlink/route-lookup.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { readSysctl, writeSysctl } from "../../linux/sysctl.ts";
import type { PodLink } from "./masqueraded-sources.ts";

/** `undefined` where no route leads to the pod. */
export function findPodLink(pod: Address): PodLink | undefined {
  return withRouteSocket((socket) => {
    const index = linkTowards(socket, pod);
    const link = index === undefined ? undefined : findLinkByIndex(socket, index);
    return link === undefined ? undefined : { name: link.name, isShared: link.kind === "bridge" };
  });
}

/** Packets from 127.0.0.1 may leave by the link. The table's guard keeps those to 127.0.0.1 from coming in by it. */
export function allowLoopbackSources({ name }: PodLink): void {
  if (!loopbackSourcesAllowed({ name, isShared: false })) writeSysctl(settingOf(name), "1");
}

export function loopbackSourcesAllowed({ name }: PodLink): boolean {
  return readSysctl(settingOf(name)) === "1" || readSysctl(settingOf("all")) === "1";
}

function settingOf(link: string): string {
  return `net/ipv4/conf/${link}/route_localnet`;
}
