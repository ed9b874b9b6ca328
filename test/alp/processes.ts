/** Kills programs of containers on a node, as the kernel or an administrator does it. */
import { readdirSync, readFileSync } from "node:fs";
import type { Host } from "../support/host.ts";
import { pollUntil } from "../support/poll.ts";

/** The processes of this name in the host's own process namespace, which contains those of its containers. */
function processesOf(host: Host, name: string): readonly number[] {
  return readdirSync(host.view("/proc"))
    .filter((each) => /^\d+$/.test(each))
    .map(Number)
    .filter((pid) => nameOf(host, pid) === name);
}

/** In milliseconds of `performance.now()`. */
export interface Kill {
  readonly killed: number;
  /** When the kubelet had started it again. */
  readonly started: number;
}

/** Kills it at once, and waits until the kubelet has started another. */
export async function killProcess(host: Host, name: string): Promise<Kill> {
  const before = processesOf(host, name);
  if (before.length === 0) throw new Error(`no process ${name}`);
  const killed = performance.now();
  // One of them may end because another has.
  await host.run(["kill", "-9", ...before.map(String)]);
  const isStarted = () => processesOf(host, name).some((pid) => !before.includes(pid));
  await pollUntil(isStarted, `another ${name}`, START_LIMIT_MILLISECONDS);
  return { killed, started: performance.now() };
}

/** The kubelet waits longer before it starts a container that has ended again and again. */
const START_LIMIT_MILLISECONDS = 60_000;

/** The name that it was started with: all programs of the product are one file. */
function nameOf(host: Host, pid: number): string {
  try {
    const [command = ""] = readFileSync(host.view(`/proc/${pid}/cmdline`), "utf8").split("\0");
    return command.slice(command.lastIndexOf("/") + 1);
  } catch {
    return "";
  }
}
