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
import { type AgentPart, StartRefused } from "../agent/supervise.ts";
import { identity } from "../identity.ts";
import { endWithParent, nameProcess, OWN_PROGRAM } from "../linux/own-process.ts";
import { PARENT, SERVE_CALLS } from "./node-arguments.ts";

/** Exit code of a call server that cannot serve this host, and must not be started again. */
export const EXIT_REFUSED = 3;

/** Command-line options of the call server. */
export interface CallServerOptions {
  /** The agent that started it. */
  readonly parent?: number | undefined;
}

/**
 * The allocator does not return free memory to the kernel: this saves a quarter of a millisecond per call, and takes
 * some 5 MB. The other process of the agent does return it: loading the policies of a cluster frees tens of megabytes.
 */
const KEEP_FREE_MEMORY = { MIMALLOC_PURGE_DELAY: "-1" } as const;

export function callServerPart(): AgentPart {
  return {
    name: "the call server",
    async run(signal) {
      const child = Bun.spawn([OWN_PROGRAM, SERVE_CALLS, PARENT, String(process.pid)], {
        argv0: identity.nodeAgent,
        env: { ...process.env, ...KEEP_FREE_MEMORY },
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
