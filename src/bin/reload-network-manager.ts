import { processesNamed } from "./processes-named.ts";

/** NetworkManager reads its configuration again at SIGHUP; one that cannot be found reads it at its start. */
export function reloadNetworkManager(): void {
  for (const pid of processesNamed("NetworkManager")) process.kill(pid, "SIGHUP");
}
