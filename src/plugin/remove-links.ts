/** Removes the links of an attachment: found by their mark, so that no other links are touched. */
import { PluginError } from "../errors.ts";
import type { Address } from "../ip/address.ts";
import type { HostKernel } from "../linux/host-kernel.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../linux/netlink-socket.ts";
import { findLink, type Link } from "../linux/rtnetlink/link.ts";
import { withRouteSocket } from "../linux/rtnetlink/route-socket.ts";
import { addressesRoutedTo } from "./former-addresses.ts";
import type { PluginHost } from "./plugin-host.ts";
import { isOwn } from "./sandbox.ts";
import { removeHostLink, removeLink } from "./wire.ts";
import type { Workload } from "./workload.ts";

/**
 * For DEL: removes either end that exists; finding none is success. A deleted namespace has no links. Returns the
 * host's end, if it existed.
 */
export async function removeLinks(
  workload: Workload,
  netns: string | undefined,
  { kernel, links }: Pick<PluginHost, "kernel" | "links">,
): Promise<Link | undefined> {
  const host = kernel.openSocket("route");
  try {
    const link = findOwnLink(host, workload);
    if (link === undefined) removeInside(kernel, workload, netns);
    else await removeHostLink(link, () => links.remove(host, link));
    return link;
  } catch (failure) {
    // A file that is not a network namespace contains no links.
    if (!(failure instanceof PluginError) || failure.kind !== "netns-invalid") throw failure;
    return undefined;
  } finally {
    closeNetlinkSocket(host);
  }
}

/** The addresses that are routed to the host's end; none if it does not exist. */
export function addressesOnLink(kernel: SocketOpener, workload: Workload): readonly Address[] {
  return withRouteSocket(kernel, (host) => {
    const link = findOwnLink(host, workload);
    return link === undefined ? [] : addressesRoutedTo(host, link.index);
  });
}

/** Removes the host's end, and with it the container's. */
export function removeOwnLink(host: NetlinkSocket, workload: Workload): void {
  const link = findOwnLink(host, workload);
  if (link !== undefined) removeLink(host, link);
}

function findOwnLink(host: NetlinkSocket, workload: Workload): Link | undefined {
  const link = findLink(host, workload.hostInterface);
  return link?.alias === workload.mark ? link : undefined;
}

/** The host's end may have another name: its prefix depends on the build's identity. */
function removeInside(kernel: HostKernel, workload: Workload, path: string | undefined): void {
  const netns = path === undefined ? undefined : kernel.openNetns(path);
  if (netns === undefined) return;
  try {
    const container = kernel.openSocketIn(netns, "route");
    try {
      const link = findLink(container, workload.ifname);
      if (link !== undefined && isOwn(link, workload)) removeLink(container, link);
    } finally {
      closeNetlinkSocket(container);
    }
  } finally {
    kernel.closeNetns(netns);
  }
}
