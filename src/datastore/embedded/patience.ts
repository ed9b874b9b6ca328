/**
 * The border to SQLite: waits for its lock, and turns its errors into ours.
 *
 * SQLite waits inside the call, where no signal handler and no timer runs. So
 * it waits for a short slice only; between slices the program breathes.
 */
import type { Database } from "bun:sqlite";
import { PluginError } from "../../errors.ts";

/** How long one SQLite call may block the process. */
export const SLICE_MILLISECONDS = 100;
/** Some locks are refused at once, without SQLite's own waiting. */
const PAUSE_MILLISECONDS = 5;
const LIMIT_MILLISECONDS = 15_000;

/** What to check, by the first words of SQLite's error code. */
const ADVICE = {
  SQLITE_BUSY: "Look for a stopped process that has the file open",
  SQLITE_FULL: "The filesystem is full: make room",
  SQLITE_READONLY: "Check the permissions of the file and that the filesystem is writable",
  SQLITE_NOTADB: "The file is no SQLite database: name another, or move it away",
  SQLITE_CORRUPT: "The file is damaged: restore a copy of it, or move it away to begin anew",
  SQLITE_IOERR: "The disk failed: look at the kernel's log",
} as const;

/** Runs the synchronous action, again while another process holds the lock it needs. */
export async function whenUnlocked<Result>(database: Database, action: () => Result): Promise<Result> {
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

/** The failure as the rest of the program knows it. */
export function convertError(path: string, cause: unknown): PluginError {
  if (cause instanceof PluginError) return cause;
  const code = codeOf(cause);
  const reason = cause instanceof Error ? cause.message : String(cause);
  const [, details = "Check that the path lies on a writable local filesystem"] =
    Object.entries(ADVICE).find(([beginning]) => code.startsWith(beginning)) ?? [];
  return new PluginError("datastore-unavailable", `Cannot use datastore "${path}": ${reason}`, { cause, details });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
