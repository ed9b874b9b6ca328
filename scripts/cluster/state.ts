/**
 * What is written down about the kept cluster of this clone, in dist/cluster or $CLUSTER_FOLDER:
 *
 *   state.json    the process that keeps it, and the private hosts
 *   bin/          kubectl, vendorctl, node-1 … (commands.ts)
 *   log           what the process prints
 *   tmp/          its certificates, the data of etcd
 *
 * After a reboot or a kill the file is still there, but does not count: a process is known by boot, number and start.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstalledStore } from "../../test/support/operator-install.ts";

/** Another folder is for another cluster. */
export const FOLDER = process.env["CLUSTER_FOLDER"] || join(import.meta.dir, "../../dist/cluster");
export const BIN = join(FOLDER, "bin");
export const LOG = join(FOLDER, "log");
export const TEMPORARY = join(FOLDER, "tmp");
const STATE = join(FOLDER, "state.json");

export interface KnownProcess {
  readonly boot: string;
  readonly pid: number;
  /** In ticks since the boot. */
  readonly started: string;
}

export interface KeptHost {
  readonly name: string;
  /** Prefix of a command that runs in the host. */
  readonly enter: readonly string[];
}

export interface KeptCluster {
  readonly keeper: KnownProcess;
  /** False while it is being started: then it has neither image nor hosts. */
  readonly isReady: boolean;
  readonly store: InstalledStore;
  readonly nodeCount: number;
  readonly nodes: readonly KeptHost[];
  /** The archive of the image that the nodes have. */
  readonly image: string;
}

/** The kept cluster, if it runs. */
export function runningCluster(): KeptCluster | undefined {
  if (!existsSync(STATE)) return undefined;
  const cluster: KeptCluster = JSON.parse(readFileSync(STATE, "utf8"));
  return isRunning(cluster.keeper) ? cluster : undefined;
}

export function recordCluster(cluster: KeptCluster): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(`${STATE}.new`, JSON.stringify(cluster, undefined, 2));
  renameSync(`${STATE}.new`, STATE);
}

/** Whether this cluster is the recorded one: not after somebody has removed dist. */
export function isRecorded({ keeper }: Pick<KeptCluster, "keeper">): boolean {
  if (!existsSync(STATE)) return false;
  const recorded: KeptCluster = JSON.parse(readFileSync(STATE, "utf8"));
  return Bun.deepEquals(recorded.keeper, keeper);
}

export function knownProcess(pid: number): KnownProcess {
  return { boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(), pid, started: startOf(pid) };
}

export function isRunning(known: KnownProcess): boolean {
  return existsSync(`/proc/${known.pid}/stat`) && Bun.deepEquals(knownProcess(known.pid), known);
}

/** The name of the program, in parentheses, may contain anything. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...more] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie has ended.
    return state === "Z" ? "" : (more[18] ?? "");
  } catch {
    return "";
  }
}
