/**
 * The part of the node agent that keeps the records and the shared tables of its host up to date: at its
 * start, then every few minutes.
 *
 *   node register   records the identity of this machine. So two machines that claim one node name are noticed,
 *                   whichever of them came first: the plugins of the machine that is not registered refuse ADD
 *                   and GC, and its agent logs the reason and the remedy
 *   ipam gc         releases addresses of containers that are gone; only after the registration succeeded
 *   node restore    writes the shared nftables tables again if another program flushed them, or a pool has changed;
 *                   also if the others failed: pods need their guard, whoever the node belongs to
 */

import type { Say } from "../agent-process.ts";
import type { AgentPart } from "../supervise.ts";

export const UPKEEP_MILLISECONDS = 5 * 60 * 1000;
/** After a failure: the datastore may have started later than this host. */
const RETRY_MILLISECONDS = 30 * 1000;
const RECORDS = [
  ["node", "register", "--for-agent"],
  ["ipam", "gc", "--for-agent"],
] as const;
const TABLES = [["node", "restore", "--for-agent"]] as const;
export const UPKEEP_COMMANDS = [...RECORDS, ...TABLES];

export interface CommandOutput {
  readonly exitCode: number;
  /** One line: what the command printed, or its errors if it failed. */
  readonly output: string;
}

/** Runs a command of the admin tool. */
export type RunCommand = (command: readonly string[], signal: AbortSignal) => Promise<CommandOutput>;

interface Means {
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
  readonly run: RunCommand;
  readonly log: Say;
}

export function upkeepPart({ wait, run, log }: Means): AgentPart {
  return {
    name: "the upkeep of the node's records",
    async run(signal) {
      let failure = "";
      while (!signal.aborted) {
        const { exitCode, output } = await runAll((command) => run(command, signal), log, signal);
        if (signal.aborted) return;
        // The same failure is logged once.
        if (exitCode !== 0 && output !== failure) log(output, {}, "ERROR");
        failure = exitCode === 0 ? "" : output;
        await wait(exitCode === 0 ? UPKEEP_MILLISECONDS : RETRY_MILLISECONDS, signal);
      }
    },
  };
}

/** Returns the output of the first that fails. */
async function runAll(
  run: (command: readonly string[]) => Promise<CommandOutput>,
  log: Say,
  signal: AbortSignal,
): Promise<CommandOutput> {
  const records = await runInOrder(RECORDS, run, log);
  // The agent ends only after its children.
  if (signal.aborted) return records;
  const tables = await runInOrder(TABLES, run, log);
  return records.exitCode === 0 ? tables : records;
}

/** Stops at the first that fails. */
async function runInOrder(
  commands: readonly (readonly string[])[],
  run: (command: readonly string[]) => Promise<CommandOutput>,
  log: Say,
): Promise<CommandOutput> {
  for (const command of commands) {
    const result = await run(command);
    if (result.exitCode !== 0) return result;
    if (result.output !== "") log(result.output);
  }
  return { exitCode: 0, output: "" };
}
