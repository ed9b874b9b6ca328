/**
 * Waits for SQLite's lock.
 *
 * SQLite waits inside the call, where no signal handler and no timer runs. So
 * it waits for a short slice only; between slices the program breathes.
 */
import type { Database } from "bun:sqlite";
import { codeOf, convertError } from "./failure.ts";

/** How long one SQLite call may block the process. */
export const SLICE_MILLISECONDS = 100;
/** Some locks are refused at once, without SQLite's own waiting. */
const PAUSE_MILLISECONDS = 5;
const LIMIT_MILLISECONDS = 15_000;

/** Runs the synchronous action, again while another process holds the lock it needs. */
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
