/** Where the programs of this host keep what lasts until it is switched off; the node agent's socket, in a directory that only its owner may enter. */
import type { Environment } from "../cni/environment.ts";
import { identity } from "../identity.ts";

export function runDirectoryOf(environment: Environment): string {
  return environment[`${identity.environmentPrefix}RUN_DIRECTORY`] ?? identity.runDirectory;
}

export function agentDirectory(environment: Environment): string {
  return `${runDirectoryOf(environment)}/agent`;
}

/** Locked while an agent runs on this host; the file stays. */
export function agentLockPath(environment: Environment): string {
  return `${agentDirectory(environment)}/lock`;
}

/** Locked while the agent keeps the NAT table equal to the pools. */
export function natLockPath(environment: Environment): string {
  return `${agentDirectory(environment)}/nat`;
}

export function callSocketPath(environment: Environment): string {
  return `${agentDirectory(environment)}/calls.sock`;
}

/** Where root asks for the flows of this node. */
export function flowSocketPath(environment: Environment): string {
  return `${runDirectoryOf(environment)}/flows.sock`;
}

/** In the run directory: which rule has which number in connection labels. */
export const RULE_NUMBERS_FILE = "rule-numbers";
