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
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { lockFile, unlockFile } from "../../src/linux/flock.ts";
import type { InstalledStore } from "../../test/support/operator-install.ts";
import { checkFolder, type KnownProcess, makeFolder, recordedKeeper, STATE_FILE } from "./folder.ts";

/** Another folder is for another cluster. */
export const FOLDER = resolve(process.env["CLUSTER_FOLDER"] || join(import.meta.dir, "../../dist/cluster"));
export const BIN = join(FOLDER, "bin");
export const LOG = join(FOLDER, "log");
export const TEMPORARY = join(FOLDER, "tmp");
const STATE = join(FOLDER, STATE_FILE);
/** Of all clusters of this clone. */
const LOCK = resolve(import.meta.dir, "../../node_modules/.cluster.lock");
const LOCK_MILLISECONDS = 120_000;

export interface KeptCluster {
  readonly keeper: KnownProcess;
  /** False while it is being started: then it has neither image nor hosts. */
  readonly isReady: boolean;
  readonly store: InstalledStore;
  readonly nodeCount: number;
  /** The commands in bin/ that enter them. */
  readonly nodes: readonly string[];
  /** The archive of the image that the nodes have. */
  readonly image: string;
}

/** Whoever looks at the folder and then changes it does that alone, and only if the folder may be used. */
export async function whileLocked<Result>(run: () => Promise<Result>): Promise<Result> {
  const lock = await lockFile(LOCK, { limitMilliseconds: LOCK_MILLISECONDS });
  try {
    checkFolder(FOLDER);
    return await run();
  } finally {
    unlockFile(lock);
  }
}

/** The kept cluster, if it runs. */
export function runningCluster(): KeptCluster | undefined {
  if (!existsSync(STATE)) return undefined;
  const cluster: KeptCluster = JSON.parse(readFileSync(STATE, "utf8"));
  return isRunning(cluster.keeper) ? cluster : undefined;
}

/** Marks the folder as ours before anything else is in it. */
export function recordNoCluster(): void {
  makeFolder(FOLDER);
  writeState({ keeper: { boot: "", pid: 0, started: "" } });
}

export function recordCluster(cluster: KeptCluster): void {
  writeState(cluster);
}

function writeState(state: Pick<KeptCluster, "keeper">): void {
  writeFileSync(`${STATE}.new`, JSON.stringify(state, undefined, 2), { mode: 0o600 });
  renameSync(`${STATE}.new`, STATE);
}

/** Whether this cluster is the recorded one: not after somebody has removed dist. */
export function isRecorded({ keeper }: Pick<KeptCluster, "keeper">): boolean {
  return Bun.deepEquals(lastKeeper(), keeper);
}

/** Of the recorded cluster, also if it has ended. */
export function lastKeeper(): KnownProcess | undefined {
  return existsSync(STATE) ? recordedKeeper(readFileSync(STATE, "utf8")) : undefined;
}

export function knownProcess(pid: number): KnownProcess {
  return { boot: thisBoot(), pid, started: startOf(pid) };
}

export function thisBoot(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
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
