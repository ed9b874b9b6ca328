import { readdirSync, readFileSync } from "node:fs";

/** The IDs of processes that the kernel shows under this name. */
export function processesNamed(name: string): readonly number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && nameOf(entry) === name)
    .map(Number);
}

/** "" if the process has ended. */
function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}
