import type { Host } from "./host.ts";

/** For a process that ends with its call: it opens what it needs, and the kernel closes what is still open at exit. */
export const processHost: Host = {
  ipam: async () => (await import("../ipam/ipam-host.ts")).directIpamHost,
  links: async () => (await import("../linux/rtnetlink/link-access.ts")).directLinks,
  netfilter: async () => (await import("../linux/netfilter-access.ts")).directNetfilter,
  openKubeClient: async (access, means) => (await import("../kube/client.ts")).openKubeClient(access, means),
  /** Not needed: the caller stops this process by a signal. */
  noticeLostCaller: async () => {},
};
