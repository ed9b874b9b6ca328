/** What the agent knows of the process that it runs in: `src/bin` reads it, and nothing else of the agent does. */
import type { Environment } from "../cni/environment.ts";
import type { LogLevel } from "../log/line.ts";

/** Writes to the log of both processes of the agent. */
export type Say = (message: string, fields?: Readonly<Record<string, string>>, level?: LogLevel) => void;

export interface AgentProcess {
  readonly environment: Environment;
  readonly pid: number;
  readonly isRoot: boolean;
  readonly say: Say;
  readonly signalProcess: (pid: number, signal: "SIGHUP") => void;
  /** The names of the programs in the directory of plugins. */
  readonly programNames: readonly string[];
}
