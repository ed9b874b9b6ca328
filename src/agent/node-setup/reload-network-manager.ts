import type { AgentProcess } from "../agent-process.ts";
import { processesNamed } from "./processes-named.ts";

/** NetworkManager reads its configuration again at SIGHUP; one that cannot be found reads it at its start. */
export function reloadNetworkManager({ signalProcess }: Pick<AgentProcess, "signalProcess">): void {
  for (const pid of processesNamed("NetworkManager")) signalProcess(pid, "SIGHUP");
}
