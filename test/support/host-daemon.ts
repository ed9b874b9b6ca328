/** A daemon on a private host that a test kills and starts again. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "./host.ts";

export interface HostDaemon {
  /** Ends it at once, and waits until it has ended. */
  kill(): Promise<void>;
  /** Asks it to end (SIGTERM), and waits until it has ended. */
  stop(): Promise<void>;
  /** Starts it, perhaps with another command; it must have ended. */
  start(command?: readonly string[]): void;
  /** The end of what it has logged since it was started. */
  log(): string;
}

const LOG_END_CHARACTERS = 3_000;

export function startHostDaemon(host: Host, name: string, first: readonly string[]): HostDaemon {
  let starts = 0;
  let command = first;
  const logName = () => `${name}-${starts}.log`;
  const start = () => {
    starts += 1;
    return host.start(command, logName());
  };
  let child = start();
  const end = async (signal: "SIGKILL" | "SIGTERM") => {
    // The child has entered the host's process namespace and waits for the daemon, its own only child.
    const children = `/proc/${child.pid}/task/${child.pid}/children`;
    const pid = existsSync(children) ? Number(readFileSync(children, "utf8").trim()) : 0;
    if (pid > 0) process.kill(pid, signal);
    await child.exited;
  };
  return {
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    start(other = command) {
      command = other;
      child = start();
    },
    log: () => readFileSync(host.view(join(host.directory, logName())), "utf8").slice(-LOG_END_CHARACTERS),
  };
}
