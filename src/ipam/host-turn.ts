/**
 * Serializes the processes of one host with a lock file.
 *
 * They all assign from the same block: without the lock every commit but one is
 * lost and retried (figures: docs/decisions/ipam-contention.md). It is only an
 * optimization: a process that cannot get the lock in time, or at all, continues
 * without it, and the preconditions of the commit protect the data.
 */
import { tryLockFile, unlockFile } from "../linux/flock.ts";

/** Longer than a hundred waiting processes need; shorter than the timeout of a runtime. */
export const LOCK_TIMEOUT_MILLISECONDS = 10_000;

/**
 * The pause before the next attempt, by the time waited so far (milliseconds):
 * short at first, since usually the lock is free; longer while others wait too;
 * then shorter again, so that long waiters come before new ones.
 */
const BRIEFLY = { until: 30, pause: 4 } as const;
const WHILE_OTHERS_WAIT = { pause: 10, shortest: 3, oldAfter: 3_000 } as const;

export interface TurnMeans {
  /** Lock files if absent. */
  readonly locks?: HostLocks;
  readonly now: () => Date;
  readonly random: () => number;
  readonly wait: (milliseconds: number) => Promise<void>;
}

/** The locks that the processes of a host share. Both may throw. */
export interface HostLocks {
  /** Returns the function that unlocks it, or `undefined` if another process has the lock. */
  tryLock(path: string): (() => void) | undefined;
}

const FILE_LOCKS: HostLocks = {
  tryLock(path) {
    const lock = tryLockFile(path);
    return lock && (() => unlockFile(lock));
  },
};

/** Does the work while it has the lock. The work may release the lock early and continue without it. */
export type Turn = <T>(work: (leave: () => void) => Promise<T>) => Promise<T>;

/** For a process that serves one call. */
export function openHostTurn(path: string, means: TurnMeans): Turn {
  return (work) => workWithLock(path, { ...means, start: means.now().getTime() }, work);
}

/** `start`: when the caller started to wait, in milliseconds. */
export async function workWithLock<T>(
  path: string,
  means: TurnMeans & { readonly start: number },
  work: (leave: () => void) => Promise<T>,
): Promise<T> {
  let unlock = await takeLock(path, means);
  const leave = () => {
    unlock?.();
    unlock = undefined;
  };
  try {
    return await work(leave);
  } finally {
    leave();
  }
}

async function takeLock(
  path: string,
  { locks = FILE_LOCKS, now, random, wait, start }: TurnMeans & { readonly start: number },
): Promise<(() => void) | undefined> {
  try {
    for (;;) {
      const lock = locks.tryLock(path);
      const waited = now().getTime() - start;
      if (lock || waited >= LOCK_TIMEOUT_MILLISECONDS) return lock;
      await wait(2 * random() * meanPause(waited));
    }
  } catch {
    return undefined;
  }
}

function meanPause(waited: number): number {
  if (waited < BRIEFLY.until) return BRIEFLY.pause;
  return Math.max(WHILE_OTHERS_WAIT.shortest, WHILE_OTHERS_WAIT.pause * (1 - waited / WHILE_OTHERS_WAIT.oldAfter));
}
