import type { IpamHost } from "../ipam/ipam-host.ts";
import type { HostKernel } from "../linux/host-kernel.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import type { LinkAccess } from "../linux/rtnetlink/link-access.ts";
import type { PluginHost } from "./plugin-host.ts";

/**
 * What differs between a process that ends with its call (process-host.ts) and
 * the long-running agent (agent-host.ts). A plugin loads only the members it needs.
 */
export interface Host extends Pick<PluginHost, "noticeLostCaller" | "openKubeClient" | "isNatFollowed"> {
  ipam(): Promise<IpamHost>;
  kernel(): Promise<HostKernel>;
  links(): Promise<LinkAccess>;
  netfilter(): Promise<NetfilterAccess>;
}

export async function pluginHostOf(host: Host): Promise<PluginHost> {
  const [ipam, kernel, links, netfilter] = await Promise.all([
    host.ipam(),
    host.kernel(),
    host.links(),
    host.netfilter(),
  ]);
  const { noticeLostCaller, openKubeClient, isNatFollowed } = host;
  return { ...ipam, kernel, links, netfilter, noticeLostCaller, openKubeClient, isNatFollowed };
}
