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
 * Opens nothing before the first line. Throws the system's error when a line
 * cannot be kept or the file cannot be rotated (the line is then kept in the
 * file as it is); the caller decides what that means.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { tryLock } from "./file-lock.ts";
import { namesToRemove, type Retention, rotatedName } from "./rotated-names.ts";

export interface LogFileSettings extends Retention {
  readonly path: string;
  readonly maxSizeBytes: number;
}

export interface LogFile {
  append(line: string): void;
  close(): void;
}

/** Not blocking: a pipe that nobody reads must not hold up a command. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const MODE = 0o600;

/** Each round means that other processes rotated between two of our system calls. */
const ROUNDS = 100;

export function openLogFile(settings: LogFileSettings, clock: () => Date): LogFile {
  let file: number | undefined;
  let removalIsDue = true;
  let lastLineIsTorn = false;

  function close(): void {
    if (file !== undefined) closeSync(file);
    file = undefined;
  }

  function currentFile(): number {
    if (file !== undefined && isStillAt(settings.path, file)) return file;
    close();
    file = openForAppend(settings.path);
    return file;
  }

  /** False when the file was removed meanwhile, and the line with it. */
  function writeTo(target: number, bytes: Uint8Array): boolean {
    const written = writeSync(target, bytes);
    lastLineIsTorn = written < bytes.length;
    if (lastLineIsTorn) throw new Error(`no room: only ${written} of ${bytes.length} bytes could be written`);
    return fstatSync(target).nlink > 0;
  }

  function append(line: string): void {
    const bytes = Buffer.from(lastLineIsTorn ? `\n${line}` : line);
    let trouble: unknown;
    for (let round = 0; ; round++) {
      if (round === ROUNDS) throw new Error("other processes rotate it faster than a line can be written");
      const target = currentFile();
      if (trouble === undefined && isFull(fstatSync(target), bytes.length, settings.maxSizeBytes)) {
        try {
          if (rotate(target, settings.path, clock())) {
            removalIsDue = true;
            continue;
          }
        } catch (cause) {
          trouble = cause;
        }
      }
      if (writeTo(target, bytes)) break;
    }
    if (removalIsDue) {
      removalIsDue = false;
      removeOld(settings, clock());
    }
    if (trouble !== undefined) throw trouble;
  }

  return { append, close };
}

function openForAppend(path: string): number {
  try {
    return openSync(path, APPEND, MODE);
  } catch (error) {
    if (!isMissing(error)) throw error;
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    return openSync(path, APPEND, MODE);
  }
}

/** False when another process has put the file away and the path leads elsewhere. */
function isStillAt(path: string, file: number): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  const here = fstatSync(file);
  return there !== undefined && there.ino === here.ino && there.dev === here.dev;
}

function isFull(file: Stats, more: number, limit: number): boolean {
  return file.isFile() && file.size > 0 && file.size + more > limit;
}

/** True when the path leads to another file now; false when somebody else is about to see to it. */
function rotate(file: number, path: string, now: Date): boolean {
  if (!tryLock(file)) return false;
  if (isStillAt(path, file)) renameSync(path, freeName(path, now));
  return true;
}

/** Only the holder of the lock puts files here, so a name that is free now stays free. */
function freeName(path: string, now: Date): string {
  for (let time = now.getTime(); ; time++) {
    const name = join(dirname(path), rotatedName(path, new Date(time)));
    if (!existsSync(name)) return name;
  }
}

function removeOld(settings: LogFileSettings, now: Date): void {
  const folder = dirname(settings.path);
  for (const name of namesToRemove(settings.path, readdirSync(folder), settings, now)) {
    rmSync(join(folder, name), { force: true });
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
