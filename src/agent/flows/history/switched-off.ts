/**
 * Since when flows are switched off, beside their history: the agent notes it, and whoever opens the history again can tell that
 * time from one without an agent.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** Keeps an earlier time. Without a history there is nothing to note. */
export function noteSwitchedOff(directory: string, now: number): void {
  const path = pathIn(directory);
  if (existsSync(directory) && !existsSync(path)) writeFileSync(path, `${now}\n`, { mode: 0o600 });
}

/** `undefined`: they were not switched off since the history was written to. */
export function switchedOffSince(directory: string): number | undefined {
  try {
    const time = Number(readFileSync(pathIn(directory), "utf8"));
    return Number.isFinite(time) ? time : undefined;
  } catch {
    return undefined;
  }
}

export function forgetSwitchedOff(directory: string): void {
  rmSync(pathIn(directory), { force: true });
}

function pathIn(directory: string): string {
  return `${directory}/switched-off`;
}
