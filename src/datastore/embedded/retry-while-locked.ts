/**
 * Waits for SQLite's lock.
 *
 * While SQLite itself waits, no signal handler and no timer runs. So it waits
 * only briefly at a time, and the event loop runs in between.
 */
import type { Database } from "bun:sqlite";
import { codeOf, convertError } from "./failure.ts";

/** How long one SQLite call may block the process. */
export const SLICE_MILLISECONDS = 100;
/** For some locks SQLite fails immediately instead of waiting. */
const PAUSE_MILLISECONDS = 5;
const LIMIT_MILLISECONDS = 15_000;

/** Runs the synchronous action, and repeats it while another process holds the lock. */
export async function retryWhileLocked<Result>(database: Database, action: () => Result): Promise<Result> {
  let deadline: AbortSignal | undefined;
  for (;;) {
    try {
      return action();
    } catch (error) {
      deadline ??= AbortSignal.timeout(LIMIT_MILLISECONDS);
      if (!isLocked(error) || deadline.aborted) throw convertError(database.filename, error);
      await Bun.sleep(PAUSE_MILLISECONDS);
    }
  }
}

function isLocked(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}
