/** Removes the kept cluster of this clone, or what is left of one. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pollUntil } from "../../test/support/poll.ts";
import { removeLeftovers } from "./leftovers.ts";
import { FOLDER, isRunning, runningCluster, TEMPORARY } from "./state.ts";

export type Stopped = "a running cluster" | "leftovers" | "nothing";

const LIMIT_MILLISECONDS = 10_000;

/** However the process that keeps the cluster ends, the kernel ends the private hosts with it. */
export async function stopCluster(): Promise<Stopped> {
  const cluster = runningCluster();
  const found = cluster !== undefined ? "a running cluster" : existsSync(FOLDER) ? "leftovers" : "nothing";
  if (found === "nothing") return found;
  if (cluster !== undefined) {
    const hasEnded = () => !isRunning(cluster.keeper);
    const end = "the end of the process that keeps the cluster";
    kill(cluster.keeper.pid, "SIGTERM");
    await pollUntil(hasEnded, end, LIMIT_MILLISECONDS).catch(() => kill(cluster.keeper.pid, "SIGKILL"));
    await pollUntil(hasEnded, end);
  }
  await pollUntil(() => {
    const left = processesOfCluster();
    for (const pid of left) kill(pid, "SIGKILL");
    return left.length === 0;
  }, "the end of the cluster's processes");
  await removeLeftovers();
  rmSync(FOLDER, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  return found;
}

/** Those with a path of its files in their command: servers of the control plane, kubelets. */
function processesOfCluster(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => commandOf(name).includes(join(TEMPORARY, "vt-")))
    .map(Number);
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It has ended.
    return "";
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}
