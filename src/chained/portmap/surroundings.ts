import type { NetfilterAccess } from "../../linux/netfilter-access.ts";

/** What the plugin needs of the process it runs in. */
export interface Surroundings {
  warn(message: string): void;
  /** Called only by a command that asks the kernel. */
  loadNetfilter(): Promise<NetfilterAccess>;
}
