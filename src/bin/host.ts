import type { IpamHost } from "../ipam/ipam-host.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import type { LinkAccess } from "../linux/rtnetlink/link-access.ts";
import type { PluginHost } from "../plugin/plugin-host.ts";

/**
 * What the plugins do differently in a process that ends with its call
 * (process-host.ts) and in an agent that stays (agent-host.ts). Each part is loaded
 * by the plugin that needs it.
 */
export interface Host extends Pick<PluginHost, "noticeLostCaller"> {
  ipam(): Promise<IpamHost>;
  links(): Promise<LinkAccess>;
  netfilter(): Promise<NetfilterAccess>;
}

export async function pluginHostOf(host: Host): Promise<PluginHost> {
  const [ipam, links] = await Promise.all([host.ipam(), host.links()]);
  return { ...ipam, links, noticeLostCaller: host.noticeLostCaller };
}
