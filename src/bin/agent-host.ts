import { shareIpamHost } from "../ipam/shared-ipam-host.ts";
import type { OpenKubeClient } from "../kube/client.ts";
import { shareLinks } from "../linux/rtnetlink/shared-links.ts";
import { shareNetfilter } from "../linux/shared-netfilter.ts";
import type { Host } from "./host.ts";

/**
 * For a long-running agent: its calls share stores, turns, sockets and decoded values. Two agent hosts share nothing.
 * `report`: tells of problems that are no call's own.
 */
export function agentHost(report?: (problem: string) => void): Host {
  const [ipam, links, netfilter] = [shareIpamHost(report), shareLinks(), shareNetfilter()];
  return {
    ipam: async () => ipam,
    links: async () => links,
    netfilter: async () => netfilter,
    openKubeClient: shareKubeClientsWhenUsed(),
    noticeLostCaller: () => Bun.sleep(0),
  };
}

/** Most agents never need them. */
function shareKubeClientsWhenUsed(): OpenKubeClient {
  let sharing: Promise<OpenKubeClient> | undefined;
  return async (access, means) => {
    sharing ??= import("../kube/shared-clients.ts").then(({ shareKubeClients }) => shareKubeClients());
    return (await sharing)(access, means);
  };
}
