/**
 * The processes of one host, one after another.
 *
 * They all draw from the same block: without turns every commit but one is lost
 * and tried again (figures: docs/decisions/ipam-contention.md). A courtesy, not
 * a guard: who cannot have the lock in time, or at all, goes on without it, and
 * the preconditions of the commit keep the truth.
 */
import { type FileLock, tryLockFile, unlockFile } from "../linux/flock.ts";

/** Longer than a healthy holder takes even when a hundred stand in line; shorter than a runtime's patience. */
const PATIENCE_MILLISECONDS = 10_000;

/** Never growing: who waits long must not fall behind who has just come. */
const LONGEST_PAUSE = 8;

export interface TurnMeans {
  readonly now: () => Date;
  readonly random: () => number;
  readonly wait: (milliseconds: number) => Promise<void>;
}

export function openHostTurn(path: string, means: TurnMeans): <T>(work: () => Promise<T>) => Promise<T> {
  return async (work) => {
    const lock = await takeTurn(path, means);
    try {
      return await work();
    } finally {
      if (lock) unlockFile(lock);
    }
  };
}

async function takeTurn(path: string, { now, random, wait }: TurnMeans): Promise<FileLock | undefined> {
  const end = now().getTime() + PATIENCE_MILLISECONDS;
  try {
    let lock = tryLockFile(path);
    while (!lock && now().getTime() < end) {
      await wait(random() * LONGEST_PAUSE);
      lock = tryLockFile(path);
    }
    return lock;
  } catch {
    return undefined;
  }
}
