/**
 * The processes of one host, one after another.
 *
 * They all draw from the same block: without turns every commit but one is lost
 * and tried again (figures: docs/decisions/ipam-contention.md). A courtesy, not
 * a guard: who cannot have the lock in time, or at all, goes on without it, and
 * the preconditions of the commit keep the truth.
 */
import { type FileLock, lockFile, unlockFile } from "../linux/flock.ts";

/** Longer than a healthy holder takes even when a hundred stand in line; shorter than a runtime's patience. */
const PATIENCE_MILLISECONDS = 5_000;

export function openHostTurn(path: string): <T>(work: () => Promise<T>) => Promise<T> {
  return async (work) => {
    const lock = await takeTurn(path);
    try {
      return await work();
    } finally {
      if (lock) unlockFile(lock);
    }
  };
}

async function takeTurn(path: string): Promise<FileLock | undefined> {
  try {
    return await lockFile(path, { limitMilliseconds: PATIENCE_MILLISECONDS });
  } catch {
    return undefined;
  }
}
