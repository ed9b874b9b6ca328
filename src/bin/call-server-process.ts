/**
 * The call server as a process of its own: the part of the node agent that
 * starts it, and what the new process does before anything else.
 *
 *   node agent ── starts ──> call server ── [joins the host's namespaces, starts again in them] ──> serves
 *
 * The two share nothing: whatever the agent computes, no call waits for it. The
 * kernel ends the call server together with the agent, so that no server is left
 * that belongs to nobody. Its callers then do their calls themselves.
 */
import { type AgentPart, StartRefused } from "../agent/supervise.ts";
import { identity } from "../identity.ts";
import { joinNamespaces } from "../linux/namespaces.ts";
import { endWithParent, nameProcess, OWN_PROGRAM, replaceProcess } from "../linux/own-process.ts";
import { HOST_NAMESPACES, PARENT, SERVE_CALLS } from "./node-arguments.ts";
import { sayRefused } from "./node-log.ts";

/** Exit code of a call server that cannot serve this host, now or later. */
export const EXIT_REFUSED = 3;

export interface Joining {
  /** The folder of the host's namespaces; absent: the agent is in them. */
  readonly hostNamespaces?: string | undefined;
}

/** What the call server is started with. */
export interface CallServerOptions extends Joining {
  readonly parent?: number | undefined;
}

export function callServerPart({ hostNamespaces }: Joining): AgentPart {
  return {
    name: "the call server",
    async run(signal) {
      const child = Bun.spawn([OWN_PROGRAM, ...argumentsOf({ parent: process.pid, hostNamespaces })], {
        argv0: identity.nodeAgent,
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

/** Begins the life of a call server. Returns `false` if there is no use in serving; does not return if it starts again elsewhere. */
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
