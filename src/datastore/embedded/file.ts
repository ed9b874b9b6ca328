/**
 * Opening the file of the embedded datastore. It holds who has which address:
 * only its owner may read it, so file and directory are made before SQLite
 * would make them readable for all. (SQLite gives its journal the same mode.)
 */
import type { Database } from "bun:sqlite";
import { convertError } from "./failure.ts";
import { retryWhileLocked, SLICE_MILLISECONDS } from "./retry-while-locked.ts";

/** Opens the file, which is made when it is not there; an empty file is an empty database. */
export async function openFile(path: string): Promise<Database> {
  // Imported here and not above: a bundle loads what stands above at every start, also of those who use etcd.
  const sqlite = await import("bun:sqlite");
  const open = async () => {
    const database = new sqlite.Database(path, { readwrite: true, create: false, safeIntegers: true });
    try {
      // Before anything else: every other statement may meet a lock.
      database.run(`PRAGMA busy_timeout = ${SLICE_MILLISECONDS}`);
      // A killed process loses nothing. A power loss may take the last commits, but never leaves the file broken;
      // the containers those commits were about are gone then, too.
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
