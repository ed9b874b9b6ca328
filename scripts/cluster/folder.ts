/**
 * The folder of a kept cluster is used and removed by root: only one that is ours, and that nobody else can change. It counts as ours if it is
 * empty, or if its state.json is of `make cluster`. Only what `make cluster` made is removed from it.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** The process that keeps the cluster. */
export interface KnownProcess {
  readonly boot: string;
  readonly pid: number;
  /** In ticks since the boot. */
  readonly started: string;
}

export const STATE_FILE = "state.json";
const OTHERS_WRITE = 0o022;
const WORLD_WRITES = 0o002;
const STICKY = 0o1000;

export class RefusedFolder extends Error {
  override readonly name = "RefusedFolder";
}

/** Throws if there is something else, or if others can write there. */
export function checkFolder(folder: string): void {
  const problem = problemOfParents(folder) ?? problemOf(folder);
  if (problem === undefined) return;
  throw new RefusedFolder(
    `Cannot use CLUSTER_FOLDER "${folder}": ${problem}; name a folder that is empty or does not exist, where only root can write`,
  );
}

/** Readable by its owner alone: it has the keys of the cluster. */
export function makeFolder(folder: string): void {
  mkdirSync(dirname(folder), { recursive: true });
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (failure) {
    if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) throw failure;
  }
  checkFolder(folder);
}

/** Files of others stay, and the folder with them. The state is last: until then the folder is known as ours. */
export function removeFolder(folder: string): void {
  for (const name of ["bin", "log", "tmp", `${STATE_FILE}.new`, STATE_FILE]) {
    rmSync(join(folder, name), { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
  try {
    rmdirSync(folder);
  } catch (failure) {
    if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return;
    if (readdirSync(folder).length === 0) throw failure;
  }
}

/** Of the process in a state file; undefined if the file is of another program. */
export function recordedKeeper(text: string): KnownProcess | undefined {
  try {
    const { boot, pid, started } = JSON.parse(text).keeper;
    const isKnown = typeof boot === "string" && typeof started === "string" && Number.isSafeInteger(pid) && pid >= 0;
    return isKnown ? { boot, pid, started } : undefined;
  } catch {
    return undefined;
  }
}

/** Where somebody else could put another folder in its place. */
function problemOfParents(folder: string): string | undefined {
  for (let parent = dirname(folder); parent !== dirname(parent); parent = dirname(parent)) {
    const link = lstatSync(parent, { throwIfNoEntry: false });
    if (link?.isSymbolicLink() && !isTrusted(link.uid)) return `user ${link.uid} owns the link "${parent}"`;
    const mode = statSync(parent, { throwIfNoEntry: false })?.mode ?? 0;
    if ((mode & WORLD_WRITES) !== 0 && (mode & STICKY) === 0) return `everybody can write to "${parent}"`;
  }
  return undefined;
}

function problemOf(folder: string): string | undefined {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (!found.isDirectory()) return "it is not a folder";
  const names = readdirSync(folder);
  for (const path of [folder, ...[STATE_FILE, "bin", "log", "tmp"].map((name) => join(folder, name))]) {
    const problem = problemOfOwner(path);
    if (problem !== undefined) return problem;
  }
  if (names.length === 0) return undefined;
  if (!names.includes(STATE_FILE)) return `it is not empty and has no ${STATE_FILE} of make cluster`;
  const text = readFileSync(join(folder, STATE_FILE), "utf8");
  return recordedKeeper(text) === undefined ? `its ${STATE_FILE} is not of make cluster` : undefined;
}

function problemOfOwner(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (found.isSymbolicLink()) return `"${path}" is a link`;
  if (!isTrusted(found.uid)) return `user ${found.uid} owns "${path}"`;
  return (found.mode & OTHERS_WRITE) === 0 ? undefined : `others can write to "${path}"`;
}

function isTrusted(uid: number): boolean {
  return uid === 0 || uid === process.getuid?.();
}
