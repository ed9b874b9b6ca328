import { shareIpamHost } from "../ipam/shared-ipam-host.ts";
import { shareLinks } from "../linux/rtnetlink/shared-links.ts";
import { shareNetfilter } from "../linux/shared-netfilter.ts";
import type { Host } from "./host.ts";

/** For a long-running agent: its calls share stores, turns, sockets and decoded values. Two agent hosts share nothing. */
export function agentHost(): Host {
  const [ipam, links, netfilter] = [shareIpamHost(), shareLinks(), shareNetfilter()];
  return {
    ipam: async () => ipam,
    links: async () => links,
    netfilter: async () => netfilter,
    noticeLostCaller: () => Bun.sleep(0),
  };
}
