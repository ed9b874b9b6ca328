/** One call at a time on a network's files, upstream's plugin included: all take the same lock. */
import { lockFile, unlockFile } from "../../linux/flock.ts";

/** A holder needs milliseconds; who waits this long waits for something broken. */
const LIMIT_MILLISECONDS = 30_000;

/** Runs `work` with the lock held. Creates the folder. */
export async function inTurn<Outcome>(directory: string, signal: AbortSignal, work: () => Outcome): Promise<Outcome> {
  const lock = await lockFile(`${directory}/lock`, { limitMilliseconds: LIMIT_MILLISECONDS, signal });
  try {
    return work();
  } finally {
    unlockFile(lock);
  }
}
