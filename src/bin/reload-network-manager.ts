import { readdirSync, readFileSync } from "node:fs";

const PROGRAM = "NetworkManager";

/** NetworkManager reads its configuration again at SIGHUP; one that cannot be found reads it at its start. */
export function reloadNetworkManager(): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    if (nameOf(pid) === PROGRAM) process.kill(Number(pid), "SIGHUP");
  }
}

/** "" if the process has ended. */
function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}
