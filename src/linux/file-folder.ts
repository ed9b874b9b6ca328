/** A folder of small files, each replaced as a whole. Imports node:fs: a plugin loads it only when it needs it. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Every method throws if it is refused. */
export interface FileFolder {
  readonly path: string;
  /** The names of its files. It is created if it does not exist. */
  list(): readonly string[];
  read(name: string): string;
  /** No reader sees half of it. */
  write(name: string, text: string): void;
  /** A file that does not exist is not an error. */
  remove(name: string): void;
  /** When a file was last written or removed; `undefined` if the folder does not exist. */
  changedAt(): bigint | undefined;
}

/** Before the name: several programs may write different files of the folder at the same time. */
const UNFINISHED = ".unfinished-";

/** What a writer that was killed has left would have been the file of this name; `undefined` for a whole file. */
export function finishedNameOf(name: string): string | undefined {
  return name.startsWith(UNFINISHED) ? name.slice(UNFINISHED.length) : undefined;
}

export function openFolder(path: string): FileFolder {
  const create = () => mkdirSync(path, { recursive: true, mode: 0o755 });
  return {
    path,
    list() {
      create();
      return readdirSync(path);
    },
    read: (name) => readFileSync(join(path, name), "utf8"),
    write(name, text) {
      create();
      const unfinished = join(path, `${UNFINISHED}${name}`);
      try {
        // Whatever the umask is: nobody else may write what root believes.
        writeFileSync(unfinished, text, { mode: 0o644 });
        renameSync(unfinished, join(path, name));
      } catch (failure) {
        removeIfPossible(unfinished);
        throw failure;
      }
    },
    remove: (name) => rmSync(join(path, name), { force: true }),
    changedAt: () => statSync(path, { bigint: true, throwIfNoEntry: false })?.mtimeNs,
  };
}

/** The failure before is the one to report. */
function removeIfPossible(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}
