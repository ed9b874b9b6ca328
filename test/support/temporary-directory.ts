/**
 * Directories of tests, named after the process that made them:
 * `vt-<area>-<process>in<PID namespace>-…`. They are removed when that process ends;
 * what a killed one left is removed by the next process that creates a directory.
 */
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryDirectory {
  readonly path: string;
  remove(): void;
}

const PREFIX = "vt-";
/** No test runs this long: older directories are not in use. */
const OLD_MILLISECONDS = 60 * 60 * 1000;

/** Process IDs are only valid inside one PID namespace. */
export const pidNamespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";

/** `place`: the parent directory. */
export function temporaryDirectory(area: string, place = tmpdir()): TemporaryDirectory {
  sweepDirectories(place);
  const path = mkdtempSync(join(place, `${PREFIX}${area}-${process.pid}in${pidNamespace}-`));
  const remove = () => {
    process.off("exit", remove);
    removeTree(path);
  };
  process.on("exit", remove);
  return { path, remove };
}

/** Removes what killed processes left. */
export function sweepDirectories(place = tmpdir()): void {
  for (const name of readdirSync(place)) if (isLeftOver(name, place)) removeTree(join(place, name));
}

function isLeftOver(name: string, place: string): boolean {
  const [, owner, where] = /^vt-.*-(\d+)in(\d+)-\w+$/.exec(name) ?? [];
  if (owner === undefined) return false;
  if (where === pidNamespace) return !existsSync(`/proc/${owner}`);
  const { mtimeMs } = statSync(join(place, name), { throwIfNoEntry: false }) ?? {};
  return mtimeMs !== undefined && Date.now() - mtimeMs > OLD_MILLISECONDS;
}

/** A process that is exiting may still write there. */
function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  } catch {
    // The next sweep removes it.
  }
}
