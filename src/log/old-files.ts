/**
 * What is done to the log's folder now and then: making it, and removing old
 * files. Loads `node:fs` when called, never before: most
 * processes write their lines and never come here.
 */
import { folderOf, namesToRemove, type Retention } from "./rotated-names.ts";

export function makeFolder(path: string): void {
  fileSystem().mkdirSync(folderOf(path), { recursive: true, mode: 0o755 });
}

/** Another process may do the same at the same time: both remove the same files. */
export function removeOld(path: string, keep: Retention, now: Date): void {
  const { readdirSync, rmSync } = fileSystem();
  const folder = folderOf(path);
  for (const name of namesToRemove(path, readdirSync(folder), keep, now)) rmSync(`${folder}/${name}`, { force: true });
}

function fileSystem(): typeof import("node:fs") {
  return require("node:fs");
}
