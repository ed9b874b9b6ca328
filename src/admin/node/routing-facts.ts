/** What the admin tool reads about routes between nodes on the host that it runs on. */
import type { KnownStatus } from "../../datastore/replica/status-file.ts";
import type { RefusedClaims } from "../../ipam/refused-claims.ts";
import type { BirdRoute } from "../../routing/bird/routes-status.ts";
import type { SessionStatus } from "../../routing/bird/sessions-status.ts";
import type { BirdState } from "../../routing/bird/state.ts";

export interface RoutingFacts {
  readonly isAgentRunning: boolean;
  /** What the node agent says about BIRD; `undefined` if it has never said anything since the host started. */
  readonly state: BirdState | undefined;
  /** What BIRD itself says; `undefined` if it does not run. */
  readonly bird: BirdFacts | undefined;
  /** Of the main table: those of BIRD and of the node agent. */
  readonly kernelRoutes: readonly KernelRoute[];
  /** What annotations of this node's pods say without effect; the node agent wrote it. */
  readonly refusedClaims: readonly RefusedClaims[];
  /** Why routes to other nodes are missing, and records of theirs that do not count; the node agent wrote it. */
  readonly routingProblems: readonly string[];
  /** Policies that deny because they cannot be carried out, and resources that cannot be read; the node agent wrote it. */
  readonly policyProblems: readonly string[];
  /** What the node agent knew of the datastore when it last wrote it; `undefined` if it has not. */
  readonly datastore: KnownStatus | undefined;
}

export interface BirdFacts {
  readonly version: string;
  readonly routerId: string;
  readonly startedAt: string;
  /** It was killed, and waits for its peers before it changes routes. */
  readonly isRecovering: boolean;
  readonly sessions: readonly SessionStatus[];
  readonly routes: readonly BirdRoute[];
}

export interface KernelRoute {
  readonly family: 4 | 6;
  readonly destination: string;
  readonly writer: "BIRD" | "node agent";
  readonly kind: string;
  readonly gateway?: string;
  readonly link?: string;
}
