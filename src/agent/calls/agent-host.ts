import type { Environment } from "../../cni/environment.ts";
import { natLockPath } from "../../config/run-directory.ts";
import { shareIpamHost } from "../../ipam/shared-ipam-host.ts";
import type { OpenKubeClient } from "../../kube/client.ts";
import { isLocked } from "../../linux/flock.ts";
import { ownKernel } from "../../linux/host-kernel.ts";
import { OWN_REMOVAL } from "../../linux/rtnetlink/link-access.ts";
import { shareLinks } from "../../linux/rtnetlink/shared-links.ts";
import { shareNetfilter } from "../../linux/shared-netfilter.ts";
import type { Host } from "../../plugin/host.ts";

/**
 * For a long-running agent: its calls share stores, turns, sockets and decoded values. Two agent hosts share nothing.
 * `report`: tells of problems that are no call's own.
 */
export function agentHost(environment: Environment, report?: (problem: string) => void): Host {
  const [ipam, links, netfilter] = [
    shareIpamHost(ownKernel, report),
    shareLinks(OWN_REMOVAL),
    shareNetfilter(ownKernel),
  ];
  return {
    ipam: async () => ipam,
    kernel: async () => ownKernel,
    links: async () => links,
    netfilter: async () => netfilter,
    openKubeClient: shareKubeClientsWhenUsed(),
    noticeLostCaller: () => Bun.sleep(0),
    isNatFollowed: () => isNatLocked(environment),
  };
}

/** Most agents never need them. */
function shareKubeClientsWhenUsed(): OpenKubeClient {
  let sharing: Promise<OpenKubeClient> | undefined;
  return async (access, means) => {
    sharing ??= import("../../kube/shared-clients.ts").then(({ shareKubeClients }) => shareKubeClients());
    return (await sharing)(access, means);
  };
}

/** If it cannot be told, ADDs write NAT themselves. */
function isNatLocked(environment: Environment): boolean {
  try {
    return isLocked(natLockPath(environment));
  } catch {
    return false;
  }
}
