/**
 * Opens the file of the embedded datastore. Only its owner may read it, so file
 * and directory are created here: SQLite would make them world-readable.
 * (SQLite gives its journal the mode of the file.)
 */
import type { Database } from "bun:sqlite";
import { convertError } from "./failure.ts";
import { retryWhileLocked, SLICE_MILLISECONDS } from "./retry-while-locked.ts";

/** Opens the file, and creates it if it does not exist; an empty file is an empty database. */
export async function openFile(path: string): Promise<Database> {
  // Imported here: a static import would be loaded at every start, also with etcd.
  const sqlite = await import("bun:sqlite");
  const open = async () => {
    const database = new sqlite.Database(path, { readwrite: true, create: false, safeIntegers: true });
    try {
      // Before anything else, because every other statement may wait for a lock.
      database.run(`PRAGMA busy_timeout = ${SLICE_MILLISECONDS}`);
      // A killed process loses nothing. A power failure may lose the last commits, but never damages the file;
      // the containers of those commits are gone then, too.
      await retryWhileLocked(database, () => database.run("PRAGMA synchronous = NORMAL"));
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  };
  try {
    return await open();
  } catch (error) {
    if (!isAbsent(error)) throw convertError(path, error);
  }
  try {
    await createFile(path);
    return await open();
  } catch (error) {
    throw convertError(path, error);
  }
}

async function createFile(path: string): Promise<void> {
  const [{ closeSync, mkdirSync, openSync }, { dirname }] = await Promise.all([import("node:fs"), import("node:path")]);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, "a", 0o600));
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "SQLITE_CANTOPEN";
}
