import type { FileFolder } from "../../linux/file-folder.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import type { CallLog, CallLogSurroundings } from "../../log/call-log.ts";

/** What the commands need of the process they run in. */
export interface PortHost {
  /** Called only by a command that asks the kernel. */
  loadNetfilter(): Promise<NetfilterAccess>;
  /** What the programs of this host keep until it is switched off. */
  readonly runDirectory: string;
  /** Loads `node:fs`: called only if there are ports. */
  readonly openFolder: (path: string) => Promise<FileFolder>;
}

/** What the plugin needs of the process it runs in. */
export interface ProcessSurroundings extends CallLogSurroundings, PortHost {}

/** What a command needs. */
export interface Surroundings extends PortHost {
  readonly log: CallLog;
}
