import type { Environment } from "../cni/environment.ts";
import type { EnterPhase } from "../cni/phase.ts";
import type { Host } from "./host.ts";

/** What a call brings along, whoever does it: the process that was called, or the node agent. */
export interface CallMeans {
  readonly environment: Environment;
  readonly stderr: (text: string) => void;
  /** Absent where a plugin that is executed may write to the stderr of this process. */
  readonly delegateStderr?: (text: string) => void;
  readonly host: Host;
  readonly enterPhase: EnterPhase;
}
