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
export const PATIENCE_MILLISECONDS = 10_000;

/**
 * How long to wait before the next try, in milliseconds after so many waited:
 * short at first, since mostly nobody else is there; long while a line stands;
 * shorter again with age, so that who waits long comes before who has just come.
 */
const BRIEFLY = { until: 30, pause: 4 } as const;
const IN_LINE = { pause: 10, shortest: 3, oldAfter: 3_000 } as const;

export interface TurnMeans {
  readonly now: () => Date;
  readonly random: () => number;
  readonly wait: (milliseconds: number) => Promise<void>;
}

/** Does the work when its turn comes. The work may leave early, and goes on beside the others. */
export type Turn = <T>(work: (leave: () => void) => Promise<T>) => Promise<T>;

/** For a process that ends with its call. */
export function openHostTurn(path: string, means: TurnMeans): Turn {
  return (work) => workWithLock(path, { ...means, start: means.now().getTime() }, work);
}

/** `start`: when the caller began to wait, in milliseconds. */
export async function workWithLock<T>(
  path: string,
  means: TurnMeans & { readonly start: number },
  work: (leave: () => void) => Promise<T>,
): Promise<T> {
  let lock = await takeLock(path, means);
  const leave = () => {
    if (lock) unlockFile(lock);
    lock = undefined;
  };
  try {
    return await work(leave);
  } finally {
    leave();
  }
}

async function takeLock(
  path: string,
  { now, random, wait, start }: TurnMeans & { readonly start: number },
): Promise<FileLock | undefined> {
  try {
    for (;;) {
      const lock = tryLockFile(path);
      const waited = now().getTime() - start;
      if (lock || waited >= PATIENCE_MILLISECONDS) return lock;
      await wait(2 * random() * meanPause(waited));
    }
  } catch {
    return undefined;
  }
}

function meanPause(waited: number): number {
  if (waited < BRIEFLY.until) return BRIEFLY.pause;
  return Math.max(IN_LINE.shortest, IN_LINE.pause * (1 - waited / IN_LINE.oldAfter));
}
