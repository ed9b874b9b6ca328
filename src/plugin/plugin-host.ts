import type { IpamHost } from "../ipam/ipam-host.ts";
import type { OpenKubeClient } from "../kube/client.ts";
import type { HostKernel } from "../linux/host-kernel.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import type { LinkAccess } from "../linux/rtnetlink/link-access.ts";

/** What differs for the plugin between a process that ends with its call and the long-running agent. */
export interface PluginHost extends IpamHost {
  readonly kernel: HostKernel;
  readonly links: LinkAccess;
  readonly netfilter: NetfilterAccess;
  /** Whether an agent keeps the NAT table equal to the pools: those that an ADD has read may be older. */
  isNatFollowed(): boolean;
  /** For the orchestrator's API; loaded when it is first used. */
  readonly openKubeClient: OpenKubeClient;
  /**
   * Aborts the call's signal if its caller has disconnected. An agent may have been frozen for a while, and the
   * following DEL may already have run elsewhere: then nothing would remove what this call makes.
   */
  noticeLostCaller(): Promise<void>;
}
