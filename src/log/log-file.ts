/**
 * The log file that many processes share.
 *
 * Every line is one appending write, so lines of different processes never mix.
 * No line is lost when processes rotate at the same time:
 *
 *   - Whoever wants to rotate locks the very file it is about to rename and
 *     looks again whether the path still leads to it: two processes never
 *     rename the same file, nor one another's new file.
 *   - Who does not get the lock does not wait: it appends, and the file grows a
 *     little past its size. A stopped process can hold the lock for ever and
 *     hinders nobody.
 *   - A line written into a file just renamed is kept under the new name. Should
 *     that file have been removed already (too many, too old), the line is
 *     written again.
 *
 * Old files are removed after a rotation, and with the first line of each day.
 * Opens nothing before the first line. Throws when a line cannot be kept or the
 * file cannot be rotated (the line is then kept in the file as it is); the
 * caller decides what that means.
 */
import { type FileStatus, statusAt, statusOf } from "../file-status.ts";
import { makeFolder, removeOld } from "./old-files.ts";
import { folderOf, type Retention, rotatedName } from "./rotated-names.ts";
import { closeFile, openToAppend, renameFile, tryLock, writeOnce } from "./system-calls.ts";

export interface LogFileSettings extends Retention {
  readonly path: string;
  readonly maxSizeBytes: number;
}

export interface LogFile {
  append(line: string): void;
  close(): void;
}

/** Each round means that other processes rotated between two of our system calls. */
const ROUNDS = 100;
const MILLISECONDS_PER_DAY = 86_400_000;

export function openLogFile(settings: LogFileSettings, clock: () => Date): LogFile {
  const { path } = settings;
  let file: number | undefined;
  let lastLineIsTorn = false;

  function close(): void {
    if (file !== undefined) closeFile(file);
    file = undefined;
  }

  /** The file that the path leads to now; another process may have put away the one we had. */
  function currentFile(): { readonly file: number; readonly status: FileStatus } {
    if (file !== undefined) {
      const status = statusOf(file);
      if (status !== undefined && statusAt(path)?.place === status.place) return { file, status };
      close();
    }
    file = openOrMake(path);
    const status = statusOf(file);
    if (status === undefined) throw new Error("it cannot be looked at");
    return { file, status };
  }

  /** False when the file was removed meanwhile, and the line with it. */
  function writeTo(target: number, bytes: Uint8Array): boolean {
    const written = writeOnce(target, bytes);
    lastLineIsTorn = written < bytes.length;
    if (lastLineIsTorn) throw new Error(`no room: only ${written} of ${bytes.length} bytes could be written`);
    return (statusOf(target)?.links ?? 0) > 0;
  }

  function append(line: string): void {
    const bytes = new TextEncoder().encode(lastLineIsTorn ? `\n${line}` : line);
    const now = clock();
    let removalIsDue = false;
    let trouble: unknown;
    for (let round = 0; ; round++) {
      if (round === ROUNDS) throw new Error("other processes rotate it faster than a line can be written");
      const target = currentFile();
      if (trouble === undefined && isFull(target.status, bytes.length, settings.maxSizeBytes)) {
        try {
          if (rotate(target.file, path, now)) continue;
        } catch (cause) {
          trouble = cause;
        }
      }
      removalIsDue ||= isFirstOfItsDay(target.status, now);
      if (writeTo(target.file, bytes)) break;
    }
    if (removalIsDue) removeOld(path, settings, now);
    if (trouble !== undefined) throw trouble;
  }

  return { append, close };
}

function openOrMake(path: string): number {
  const file = openToAppend(path);
  if (file !== undefined) return file;
  makeFolder(path);
  const made = openToAppend(path);
  if (made === undefined) throw new Error("its folder disappears again");
  return made;
}

function isFull(status: FileStatus, more: number, limit: number): boolean {
  return status.isRegular && status.size > 0 && status.size + more > limit;
}

/** True also for a file just begun: that is how removal follows every rotation. */
function isFirstOfItsDay(status: FileStatus, now: Date): boolean {
  const day = (milliseconds: number) => Math.floor(milliseconds / MILLISECONDS_PER_DAY);
  return status.isRegular && (status.size === 0 || day(status.changedSeconds * 1000) !== day(now.getTime()));
}

/** True when the path leads to another file now; false when somebody else is about to see to it. */
function rotate(file: number, path: string, now: Date): boolean {
  if (!tryLock(file)) return false;
  if (statusAt(path)?.place === statusOf(file)?.place) renameFile(path, freeName(path, now));
  return true;
}

/** Only the holder of the lock puts files away, so a name that is free now stays free. */
function freeName(path: string, now: Date): string {
  for (let time = now.getTime(); ; time++) {
    const name = `${folderOf(path)}/${rotatedName(path, new Date(time))}`;
    if (statusAt(name) === undefined) return name;
  }
}
