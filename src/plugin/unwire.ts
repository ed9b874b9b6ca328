/** Takes an attachment's links away: found by their mark, so that nobody else's are touched. */
import { PluginError } from "../errors.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../linux/netlink-socket.ts";
import { closeNetns, openNetlinkSocketIn, openNetns } from "../linux/netns.ts";
import { findLink, type Link } from "../linux/rtnetlink/link.ts";
import type { LinkAccess } from "../linux/rtnetlink/link-access.ts";
import { isOwn } from "./sandbox.ts";
import { removeHostLink, removeLink } from "./wire.ts";
import type { Workload } from "./workload.ts";

/** For DEL: whatever end is found; neither is success. A namespace that is gone took its links with it. */
export async function removeLinks(workload: Workload, netns: string | undefined, links: LinkAccess): Promise<void> {
  const host = openNetlinkSocket("route");
  try {
    const link = findOwnLink(host, workload);
    if (link === undefined) removeInside(workload, netns);
    else await removeHostLink(link, () => links.remove(host, link));
  } catch (failure) {
    // What is no namespace holds no link.
    if (!(failure instanceof PluginError) || failure.kind !== "netns-invalid") throw failure;
  } finally {
    closeNetlinkSocket(host);
  }
}

/** By the host's end; the container's goes with it. */
export function removeOwnLink(host: NetlinkSocket, workload: Workload): void {
  const link = findOwnLink(host, workload);
  if (link !== undefined) removeLink(host, link);
}

function findOwnLink(host: NetlinkSocket, workload: Workload): Link | undefined {
  const link = findLink(host, workload.hostInterface);
  return link?.alias === workload.mark ? link : undefined;
}

/** The host's end may bear another name: the naming follows the build's identity. */
function removeInside(workload: Workload, path: string | undefined): void {
  const netns = path === undefined ? undefined : openNetns(path);
  if (netns === undefined) return;
  try {
    const container = openNetlinkSocketIn(netns, "route");
    try {
      const link = findLink(container, workload.ifname);
      if (link !== undefined && isOwn(link, workload)) removeLink(container, link);
    } finally {
      closeNetlinkSocket(container);
    }
  } finally {
    closeNetns(netns);
  }
}
