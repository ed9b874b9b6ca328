import type { Environment } from "../cni/environment.ts";
import type { EnterPhase } from "../cni/phase.ts";
import type { CniPlugin } from "../cni/serve.ts";
import type { Host } from "./host.ts";

/** What a call needs from the process that runs it, which is the one that was called or the node agent. */
export interface CallContext {
  readonly environment: Environment;
  readonly stderr: (text: string) => void;
  /** Absent if an executed plugin may write to the stderr of this process. */
  readonly delegateStderr?: (text: string) => void;
  readonly host: Host;
  readonly enterPhase: EnterPhase;
  /** Since the call began. */
  readonly milliseconds: () => number;
}

/** One of the plugins whose calls are served. */
export interface ServedPlugin {
  /** Of its program. */
  readonly name: string;
  create(context: CallContext): Promise<CniPlugin>;
}
