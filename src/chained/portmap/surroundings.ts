import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import type { CallLog, CallLogSurroundings } from "../../log/call-log.ts";

/** What the plugin needs of the process it runs in. */
export interface ProcessSurroundings extends CallLogSurroundings {
  /** Called only by a command that asks the kernel. */
  loadNetfilter(): Promise<NetfilterAccess>;
}

/** What a command needs. */
export interface Surroundings {
  readonly log: CallLog;
  /** Called only by a command that asks the kernel. */
  loadNetfilter(): Promise<NetfilterAccess>;
}
