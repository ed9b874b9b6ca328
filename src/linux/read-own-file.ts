/**
 * Reads a file whose content is carried out, such as the plan of an upgrade: refuses one that somebody else could have
 * written. As OpenSSH does for its keys: the file, and every directory above it, belongs to one of the users or to root, and nobody
 * else may write there. A directory in which everybody may create files counts only if it is sticky (`/tmp`). What is not a file,
 * such as a pipe (`--plan /dev/stdin`, `<(…)` of a shell), has no place where others could replace it: whoever starts the command chose it.
 */
import { closeSync, fstatSync, openSync, readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";

const ROOT = 0;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;
/** A pipe with a name of its own (mkfifo) is judged like a file. */
const OPEN_DESCRIPTOR = /^\/(?:dev\/stdin|dev\/fd\/\d+|proc\/self\/fd\/\d+)$/;

/** This user; root also trusts the one that it acts for, by `sudo`. */
export function trustedUsers(own: number, sudoUser: string | undefined): readonly number[] {
  const behind = Number.parseInt(sudoUser ?? "", 10);
  return own === ROOT && !Number.isNaN(behind) ? [own, behind] : [own];
}

/** Throws as `readFileSync` does if the file cannot be read. */
export function readOwnFile(path: string, users: readonly number[]): string {
  const file = openSync(path, "r");
  try {
    const status = fstatSync(file);
    if (OPEN_DESCRIPTOR.test(path) && !status.isFile()) return readFileSync(file, "utf8");
    const place = realpathSync(path);
    const found = statSync(place);
    const isSame = found.ino === status.ino && found.dev === status.dev;
    const reason = isSame ? (ownerProblem(status, users, 0) ?? folderProblem(place, users)) : "it is being replaced";
    if (reason !== undefined) throw refused(path, reason);
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

function folderProblem(file: string, users: readonly number[]): string | undefined {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const problem = ownerProblem(statSync(folder), users, STICKY);
    if (problem !== undefined) return `directory ${quoted(folder)}: ${problem}`;
    if (folder === dirname(folder)) return undefined;
  }
}

/** `exempt`: mode bits that make up for write access of others. */
function ownerProblem({ uid, mode }: Stats, users: readonly number[], exempt: number): string | undefined {
  if (uid !== ROOT && !users.includes(uid)) return `it belongs to user ${uid}`;
  return (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & exempt) === 0 ? "other users may write to it" : undefined;
}

function refused(path: string, reason: string): PluginError {
  return new PluginError("config-invalid", `Cannot trust the file ${quoted(path)}: ${reason}`, {
    details:
      "somebody else may have changed it: copy it, if you trust it, to a directory that only you may write to (/tmp will do)",
  });
}
