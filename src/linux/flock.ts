/**
 * Exclusive locks on files, compatible with every program that uses flock(2). The
 * kernel releases a lock when its holder ends.
 *
 * If another process holds the lock, it is tried again at short intervals: a blocking
 * flock would stop the whole thread, including signals and time limits.
 */

import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import { errnoOf } from "./errno.ts";
import { closeFile, openLockFile } from "./files.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 16;

export interface FileLock {
  readonly path: string;
  readonly fd: number;
}

/** Takes the lock now, or returns `undefined` if another process holds it. Creates the file and its folder. */
export function tryLockFile(path: string): FileLock | undefined {
  const fd = openLockFile(path) ?? openInNewFolder(path);
  if (libc.flock(fd, LOCK_EX | LOCK_NB) === 0) return { path, fd };
  const errno = libc.lastErrno();
  closeFile(fd);
  if (errno === errnoOf("EAGAIN")) return undefined;
  throw new KernelError(`lock ${quoted(path)}`, errno);
}

/** Whether another process, or another lock of this one, holds it. */
export function isLocked(path: string): boolean {
  const lock = tryLockFile(path);
  if (lock !== undefined) unlockFile(lock);
  return lock === undefined;
}

/** Waits for the lock up to the limit; then throws "try-again-later". */
export async function lockFile(
  path: string,
  wait: { readonly limitMilliseconds: number; readonly signal?: AbortSignal },
): Promise<FileLock> {
  const started = performance.now();
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    wait.signal?.throwIfAborted();
    const lock = tryLockFile(path);
    if (lock !== undefined) return lock;
    if (performance.now() - started >= wait.limitMilliseconds) {
      throw new PluginError(
        "try-again-later",
        `Cannot lock ${quoted(path)}: another process still holds the lock after ${wait.limitMilliseconds} ms`,
      );
    }
    await Bun.sleep(pause);
  }
}

export function unlockFile(lock: FileLock): void {
  closeFile(lock.fd);
}

/** Rare, so `node:fs` is loaded only here. */
function openInNewFolder(path: string): number {
  const { mkdirSync }: typeof import("node:fs") = require("node:fs");
  try {
    mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true, mode: 0o755 });
  } catch (cause) {
    const details = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("io-failure", `Cannot create the folder of ${quoted(path)}`, { details, cause });
  }
  const fd = openLockFile(path);
  if (fd === undefined)
    throw new PluginError("io-failure", `Cannot open ${quoted(path)}: its folder was removed meanwhile`);
  return fd;
}
