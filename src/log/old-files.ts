/**
 * Creates the log directory and removes old log files. Loads `node:fs` only when
 * called: most processes only write lines and never need it.
 */
import { folderOf, namesToRemove, type Retention } from "./rotated-names.ts";

export function makeFolder(path: string): void {
  fileSystem().mkdirSync(folderOf(path), { recursive: true, mode: 0o755 });
}

/** Another process may do the same concurrently: both remove the same files. */
export function removeOld(path: string, keep: Retention, now: Date): void {
  const { readdirSync, rmSync } = fileSystem();
  const folder = folderOf(path);
  for (const name of namesToRemove(path, readdirSync(folder), keep, now)) rmSync(`${folder}/${name}`, { force: true });
}

function fileSystem(): typeof import("node:fs") {
  return require("node:fs");
}
