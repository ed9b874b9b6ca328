import type { IpamHost } from "../ipam/ipam-host.ts";
import type { LinkAccess } from "../linux/rtnetlink/link-access.ts";

/** What the plugin does differently in a process that ends with its call and in an agent that stays. */
export interface PluginHost extends IpamHost {
  readonly links: LinkAccess;
  /**
   * Lets the call hear, by its signal, that its caller is gone. An agent may have been frozen for a while, and the DEL
   * that follows was done elsewhere meanwhile: what goes on for nobody would stay.
   */
  noticeLostCaller(): Promise<void>;
}
