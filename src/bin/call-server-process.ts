/**
 * The call server as a process of its own: the part of the node agent that
 * starts it, and the first steps of the new process.
 *
 *   node agent ── starts ──> call server ── [joins the host's namespaces, restarts in them] ──> serves
 *
 * The two share nothing: no call waits for what the agent computes. The kernel
 * kills the call server when the agent dies, so that no orphaned server is left.
 * Its callers then do their calls themselves.
 */
import { type AgentPart, StartRefused } from "../agent/supervise.ts";
import { identity } from "../identity.ts";
import { joinNamespaces } from "../linux/namespaces.ts";
import { endWithParent, nameProcess, OWN_PROGRAM, replaceProcess } from "../linux/own-process.ts";
import { HOST_NAMESPACES, PARENT, SERVE_CALLS } from "./node-arguments.ts";
import { sayRefused } from "./node-log.ts";

/** Exit code of a call server that cannot serve this host, and must not be started again. */
export const EXIT_REFUSED = 3;

export interface Joining {
  /** The directory of the host's namespaces; absent: the agent is in them. */
  readonly hostNamespaces?: string | undefined;
}

/** Command-line options of the call server. */
export interface CallServerOptions extends Joining {
  readonly parent?: number | undefined;
}

/**
 * The allocator does not return free memory to the kernel: this saves a quarter of a millisecond per call, and takes
 * some 5 MB. The other process of the agent does return it: loading the policies of a cluster frees tens of megabytes.
 */
const KEEP_FREE_MEMORY = { MIMALLOC_PURGE_DELAY: "-1" } as const;

export function callServerPart({ hostNamespaces }: Joining): AgentPart {
  return {
    name: "the call server",
    async run(signal) {
      const child = Bun.spawn([OWN_PROGRAM, ...argumentsOf({ parent: process.pid, hostNamespaces })], {
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

/** The first step of a call server. Returns `false` if it cannot serve; does not return if it restarts in other namespaces. */
export function beginCallServer({ parent, hostNamespaces }: CallServerOptions): boolean {
  if (parent !== undefined && !endWithParent(parent)) return false;
  if (hostNamespaces === undefined) {
    nameProcess(identity.nodeAgent);
    return true;
  }
  try {
    joinNamespaces(hostNamespaces);
    replaceProcess(OWN_PROGRAM, [identity.nodeAgent, ...argumentsOf({ parent })], process.env);
  } catch (failure) {
    sayRefused(`${failure instanceof Error ? failure.message : failure}`);
    return false;
  }
}

function argumentsOf({ parent, hostNamespaces }: CallServerOptions): readonly string[] {
  return [
    SERVE_CALLS,
    ...(parent === undefined ? [] : [PARENT, String(parent)]),
    ...(hostNamespaces === undefined ? [] : [HOST_NAMESPACES, hostNamespaces]),
  ];
}
