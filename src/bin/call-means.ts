import type { Environment } from "../cni/environment.ts";
import type { Lifetime } from "../lifetime.ts";
import type { EnterPhase } from "../plugin/phase.ts";

/** What a call brings along, whoever does it: the process that was called, or the node agent. */
export interface CallMeans {
  readonly environment: Environment;
  readonly stderr: (text: string) => void;
  readonly lifetime: Lifetime;
  readonly enterPhase: EnterPhase;
}
