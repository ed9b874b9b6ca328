/**
 * The part of the node agent that registers this host as a node, with the identity of
 * its machine: at its start, then every few minutes. So two machines that claim one
 * node name are noticed, whichever of them came first: the plugins of the machine
 * that is not registered refuse ADD and GC, and its agent logs the reason and the remedy.
 */
import type { AgentPart } from "../agent/supervise.ts";
import { say } from "./node-log.ts";
import { runAdminTool } from "./run-admin-tool.ts";

const INTERVAL_MILLISECONDS = 5 * 60 * 1000;

type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

export function registrationPart(wait: Wait): AgentPart {
  return {
    name: "the registration of the node",
    async run(signal) {
      let reported = "";
      while (!signal.aborted) {
        const { exitCode, output } = await runAdminTool(["node", "register", "--for-agent"], signal);
        if (signal.aborted) return;
        // The same failure is logged once.
        if (output !== "" && output !== reported) say(output, {}, exitCode === 0 ? "INFO" : "ERROR");
        reported = exitCode === 0 ? "" : output;
        await wait(INTERVAL_MILLISECONDS, signal);
      }
    },
  };
}
