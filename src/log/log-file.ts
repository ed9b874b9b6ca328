/**
 * The log file that many processes share.
 *
 * Every line is one appending write, so lines of different processes never mix.
 * No line is lost when processes rotate concurrently:
 *
 *   - A process that rotates locks the file it is about to rename and checks
 *     again that the path still refers to it: two processes never rename the
 *     same file, nor each other's new file.
 *   - A process that does not get the lock does not wait: it appends, and the
 *     file grows slightly beyond its maximum size. A suspended process that
 *     holds the lock does not block others.
 *   - A line written to a file that was just renamed stays in the renamed file.
 *     If that file has already been removed (too many, too old), the line is
 *     written again.
 *
 * Old files are removed after a rotation, and with the first line of each day.
 * Opens nothing before the first line. Throws if a line cannot be written or the
 * file cannot be rotated (the line is then written without rotation); the caller
 * decides what that means.
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

/** Each attempt means that other processes rotated between two of our system calls. */
const ATTEMPTS = 100;
const MILLISECONDS_PER_DAY = 86_400_000;

export function openLogFile(settings: LogFileSettings, clock: () => Date): LogFile {
  const { path } = settings;
  let file: number | undefined;
  let lastLineIsIncomplete = false;

  function close(): void {
    if (file !== undefined) closeFile(file);
    file = undefined;
  }

  /** The file that the path refers to now; another process may have renamed the one we had open. */
  function currentFile(): { readonly file: number; readonly status: FileStatus } {
    if (file !== undefined) {
      const status = statusOf(file);
      if (status !== undefined && statusAt(path)?.place === status.place) return { file, status };
      close();
    }
    file = openOrMake(path);
    const status = statusOf(file);
    if (status === undefined) throw new Error("fstat failed");
    return { file, status };
  }

  /** Returns false if the file, and the line with it, was removed in the meantime. */
  function writeTo(target: number, bytes: Uint8Array): boolean {
    const written = writeOnce(target, bytes);
    lastLineIsIncomplete = written < bytes.length;
    if (lastLineIsIncomplete) throw new Error(`no space left: only ${written} of ${bytes.length} bytes were written`);
    return (statusOf(target)?.links ?? 0) > 0;
  }

  function append(line: string): void {
    const bytes = new TextEncoder().encode(lastLineIsIncomplete ? `\n${line}` : line);
    const now = clock();
    let removalIsDue = false;
    let rotationError: unknown;
    for (let attempt = 0; ; attempt++) {
      if (attempt === ATTEMPTS) throw new Error("other processes rotate it faster than a line can be written");
      const target = currentFile();
      if (rotationError === undefined && isFull(target.status, bytes.length, settings.maxSizeBytes)) {
        try {
          if (rotate(target.file, path, now)) continue;
        } catch (cause) {
          rotationError = cause;
        }
      }
      removalIsDue ||= isFirstOfItsDay(target.status, now);
      if (writeTo(target.file, bytes)) break;
    }
    if (removalIsDue) removeOld(path, settings, now);
    if (rotationError !== undefined) throw rotationError;
  }

  return { append, close };
}

function openOrMake(path: string): number {
  const file = openToAppend(path);
  if (file !== undefined) return file;
  makeFolder(path);
  const made = openToAppend(path);
  if (made === undefined) throw new Error("its directory was removed");
  return made;
}

function isFull(status: FileStatus, more: number, limit: number): boolean {
  return status.isRegular && status.size > 0 && status.size + more > limit;
}

/** Also true for a new file, so that old files are removed after every rotation. */
function isFirstOfItsDay(status: FileStatus, now: Date): boolean {
  const day = (milliseconds: number) => Math.floor(milliseconds / MILLISECONDS_PER_DAY);
  return status.isRegular && (status.size === 0 || day(status.changedSeconds * 1000) !== day(now.getTime()));
}

/** Returns true if the path now refers to another file; false if another process is rotating. */
function rotate(file: number, path: string, now: Date): boolean {
  if (!tryLock(file)) return false;
  if (statusAt(path)?.place === statusOf(file)?.place) renameFile(path, freeName(path, now));
  return true;
}

/** Only the holder of the lock renames files, so a name that is free now stays free. */
function freeName(path: string, now: Date): string {
  for (let time = now.getTime(); ; time++) {
    const name = `${folderOf(path)}/${rotatedName(path, new Date(time))}`;
    if (statusAt(name) === undefined) return name;
  }
}
