/** The lock on a network's files, which upstream's plugin takes too: one call at a time. */
import { lockFile, unlockFile } from "../../linux/flock.ts";

/** A call holds the lock for milliseconds; a longer wait means that something is broken. */
const LIMIT_MILLISECONDS = 30_000;

/** Runs `work` with the lock held. Creates the folder. */
export async function withNetworkLock<Outcome>(
  directory: string,
  signal: AbortSignal,
  work: () => Outcome,
): Promise<Outcome> {
  const lock = await lockFile(`${directory}/lock`, { limitMilliseconds: LIMIT_MILLISECONDS, signal });
  try {
    return work();
  } finally {
    unlockFile(lock);
  }
}
