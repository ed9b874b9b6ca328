import { loadOnce } from "../load-once.ts";
import type { Host } from "../plugin/host.ts";

const loadKubeClients = loadOnce(async () => (await import("../kube/one-connection.ts")).openOnOneConnection());

/** For a process that ends with its call: it opens what it needs, and the kernel closes what is still open at exit. */
export const processHost: Host = {
  ipam: async () => (await import("../ipam/ipam-host.ts")).directIpamHost,
  kernel: async () => (await import("../linux/host-kernel.ts")).ownKernel,
  links: async () => (await import("../linux/rtnetlink/link-access.ts")).directLinks,
  netfilter: async () => (await import("../linux/netfilter-access.ts")).directNetfilter,
  openKubeClient: async (access, means) => (await loadKubeClients())(access, means),
  /** Not needed: the caller stops this process by a signal. */
  noticeLostCaller: async () => {},
  isNatFollowed: () => false,
};
