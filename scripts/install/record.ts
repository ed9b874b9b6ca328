/**
 * The record of an installation: what was written, so that the next installation
 * replaces exactly that, and `make uninstall` removes exactly that. Pure.
 */
import { dirname, join } from "node:path";
import type { Identity } from "../../src/identity.ts";
import { type FileState, isSameState } from "../../src/linux/file-state.ts";
import type { Entry } from "./layout.ts";

export interface Installed {
  readonly path: string;
  readonly state: FileState;
}

export interface InstallationRecord {
  readonly version: string;
  readonly entries: readonly Installed[];
  /** Folders that the installation made, parents first. */
  readonly directories: readonly string[];
}

export function recordPath({ product }: Identity, prefix: string): string {
  return join(prefix, "share", product, "installed.json");
}

/** Where a file of somebody else is kept while ours is in its place. */
export function backupPath(path: string, { product }: Identity): string {
  return `${path}.before-${product}`;
}

/** The state of an entry once it is installed. */
export function wantedState(entry: Entry, digestOf: (entry: Exclude<Entry, { kind: "link" }>) => string): FileState {
  return entry.kind === "link" ? { kind: "link", target: entry.target } : { kind: "file", digest: digestOf(entry) };
}

/** Paths that hold something which neither this installation nor the one before it wrote. */
export function foreignPaths(
  wanted: readonly Installed[],
  found: ReadonlyMap<string, FileState>,
  previous: InstallationRecord | undefined,
): readonly string[] {
  const recorded = new Map(previous?.entries.map(({ path, state }) => [path, state]));
  return wanted
    .filter(({ path, state }) => {
      const there = found.get(path) ?? { kind: "nothing" };
      const before = recorded.get(path);
      const isOurs = isSameState(there, state) || (before !== undefined && isSameState(there, before));
      return there.kind !== "nothing" && !isOurs;
    })
    .map(({ path }) => path);
}

/** Every folder above the paths, parents first. */
export function directoriesOf(paths: readonly string[]): readonly string[] {
  const directories = new Set<string>();
  for (const path of paths) {
    for (let directory = dirname(path); directory !== "/" && directory !== "."; directory = dirname(directory)) {
      directories.add(directory);
    }
  }
  return [...directories].sort();
}
