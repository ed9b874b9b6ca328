/**
 * Features of the agent that have a module of their own. Each is one row here: nothing else of the agent knows it, and without
 * its row the agent does everything else as before.
 */
import type { PolicyCompiler } from "../policy/compile/compiler.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { FollowedNetwork } from "./network/followed-network.ts";
import type { FlowRules } from "./policy/flow-rules.ts";
import type { TableKeeper } from "./policy/table-keeper.ts";
import type { AgentPart } from "./supervise.ts";

export async function agentFeatures(): Promise<readonly AgentFeature[]> {
  const { applicationLayerPolicy } = await import("../alp/agent-part.ts");
  return [applicationLayerPolicy];
}

type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

export interface AgentFeature {
  start(own: Pick<AgentProcess, "environment" | "say">, wait: Wait): StartedFeature;
  /** Removes what it has left on this node. No agent runs. */
  uninstall(own: Pick<AgentProcess, "environment" | "say">): void;
}

export interface StartedFeature {
  /** Supervised with those of the agent. */
  readonly parts: readonly AgentPart[];
  /** Each time that the enforcement of network policy begins. */
  follow(enforcement: Enforcement): EnforcementFollower;
}

export interface Enforcement extends Pick<FollowedNetwork, "means" | "network" | "store" | "log"> {
  readonly compiler: PolicyCompiler;
  readonly keeper: Pick<TableKeeper, "updateSidecars">;
  readonly flows: FlowRules;
}

export interface EnforcementFollower {
  /** The kernel has what the compiler knows now. */
  policyChanged(): void;
  /** In the text format of Prometheus. */
  metrics(): string;
  /** Resolves when the signal is aborted. Rejects if it cannot go on. */
  run(signal: AbortSignal): Promise<void>;
}
