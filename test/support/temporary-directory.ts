/**
 * Directories of tests: under a recognisable name, and what a killed run left
 * behind is swept away by the next one.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryDirectory {
  readonly path: string;
  remove(): void;
}

const PREFIX = "vt-";
/** No test runs this long: what is older belongs to nobody. */
const OLD_MILLISECONDS = 60 * 60 * 1000;

export function temporaryDirectory(area: string): TemporaryDirectory {
  sweep(`${PREFIX}${area}-`);
  const path = mkdtempSync(join(tmpdir(), `${PREFIX}${area}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function sweep(prefix: string): void {
  for (const name of readdirSync(tmpdir())) {
    const path = join(tmpdir(), name);
    if (
      name.startsWith(prefix) &&
      Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > OLD_MILLISECONDS
    ) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}
