/**
 * Exclusive locks on files, shared with every program that uses flock(2). The
 * kernel gives a lock back when its holder dies.
 *
 * A lock that is taken is tried again at short intervals: a blocking flock
 * would stop the whole thread, signals and deadlines included.
 */
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PluginError } from "../errors.ts";
import { errnoOf } from "./errno.ts";
import { KernelError } from "./kernel-error.ts";
import { flock } from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 16;

export interface FileLock {
  readonly path: string;
  readonly fd: number;
}

/** Takes the lock now, or answers `undefined` where somebody holds it. Creates the file and its folder. */
export function tryLockFile(path: string): FileLock | undefined {
  const fd = openLockFile(path);
  const errno = flock(fd, LOCK_EX | LOCK_NB);
  if (errno === 0) return { path, fd };
  closeSync(fd);
  if (errno === errnoOf("EAGAIN")) return undefined;
  throw new KernelError(`lock "${path}"`, errno);
}

/** Waits for the lock up to the limit; then "try-again-later". */
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
      throw new PluginError("try-again-later", `Cannot lock "${path}": still held after ${wait.limitMilliseconds} ms`);
    }
    await sleep(pause, undefined, wait.signal === undefined ? {} : { signal: wait.signal });
  }
}

export function unlockFile(lock: FileLock): void {
  closeSync(lock.fd);
}

function openLockFile(path: string): number {
  try {
    return openSync(path, "a+", 0o600);
  } catch {
    try {
      mkdirSync(dirname(path), { recursive: true });
      return openSync(path, "a+", 0o600);
    } catch (error) {
      throw new PluginError("io-failure", `Cannot open lock file "${path}"`, { cause: error });
    }
  }
}
