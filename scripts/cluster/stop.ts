/** Removes the kept cluster of this clone, or what is left of one. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pollUntil } from "../../test/support/poll.ts";
import { type KnownProcess, removeFolder } from "./folder.ts";
import { removeLeftovers } from "./leftovers.ts";
import { FOLDER, isRunning, lastKeeper, runningCluster, TEMPORARY, thisBoot } from "./state.ts";

export type Stopped = "a running cluster" | "leftovers" | "nothing";

const LIMIT_MILLISECONDS = 10_000;

/** Inside `whileLocked`. However the process that keeps the cluster ends, the kernel ends the private hosts with it. */
export async function stopCluster(): Promise<Stopped> {
  const keeper = lastKeeper();
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
    const left = processesOfCluster(keeper);
    for (const pid of left) kill(pid, "SIGKILL");
    return left.length === 0;
  }, "the end of the cluster's processes");
  await removeLeftovers();
  removeFolder(FOLDER);
  return found;
}

/** Those with a path of its files in their command, in the session that the keeper began: servers of the control plane, kubelets. */
function processesOfCluster(keeper: KnownProcess | undefined): readonly number[] {
  if (keeper?.boot !== thisBoot()) return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => fileOf(name, "cmdline").includes(join(TEMPORARY, "vt-")) && sessionOf(name) === keeper.pid)
    .map(Number);
}

/** The name of the program, in parentheses, may contain anything. */
function sessionOf(pid: string): number {
  const stat = fileOf(pid, "stat");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3]);
}

function fileOf(pid: string, name: "cmdline" | "stat"): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
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
