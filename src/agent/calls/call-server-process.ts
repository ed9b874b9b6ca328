/**
 * The call server as a process of its own: the part of the node agent that
 * starts it, and the first steps of the new process.
 *
 *   node agent ── starts ──> call server
 *
 * The two share nothing: no call waits for what the agent computes. The kernel
 * kills the call server when the agent dies, so that no orphaned server is left.
 * Its callers then do their calls themselves.
 */

import { identity } from "../../identity.ts";
import { endWithParent, nameProcess, OWN_PROGRAM } from "../../linux/own-process.ts";
import type { AgentProcess } from "../agent-process.ts";
import { type AgentPart, StartRefused } from "../supervise.ts";

/** Exit code of a call server that cannot serve this host, and must not be started again. */
export const EXIT_REFUSED = 3;

/** Command-line options of the call server. */
export interface CallServerOptions {
  /** The agent that started it. */
  readonly parent?: number | undefined;
}

/**
 * For fast calls, at the cost of memory, which the other process of the agent does not spend: it loads the policies of a
 * whole cluster. The allocator does not return free memory to the kernel, which saves a quarter of a millisecond per
 * call; code is compiled after a tenth of the usual number of calls, which saves 0.1 to 0.2 ms.
 */
export const CALL_SERVER_TUNING = { MIMALLOC_PURGE_DELAY: "-1", BUN_JSC_jitPolicyScale: "0.1" } as const;

/** `command`: the arguments that start it. */
export function callServerPart(
  command: readonly string[],
  { environment }: Pick<AgentProcess, "environment">,
): AgentPart {
  return {
    name: "the call server",
    async run(signal) {
      const child = Bun.spawn([OWN_PROGRAM, ...command], {
        argv0: identity.nodeAgent,
        env: { ...environment, ...CALL_SERVER_TUNING },
        stdio: ["ignore", "inherit", "inherit"],
      });
      const stop = () => child.kill("SIGTERM");
      signal.addEventListener("abort", stop);
      const exitCode = await child.exited;
      signal.removeEventListener("abort", stop);
      if (signal.aborted) return;
      if (exitCode === EXIT_REFUSED) throw new StartRefused();
      throw new Error(child.signalCode === null ? `exit code ${exitCode}` : String(child.signalCode));
    },
  };
}

/** The first step of a call server. Returns `false` if its agent has ended. */
export function beginCallServer({ parent }: CallServerOptions): boolean {
  nameProcess(identity.nodeAgent);
  return parent === undefined || endWithParent(parent);
}
