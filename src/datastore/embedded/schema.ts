/**
 * The tables of the embedded datastore, and how they are created.
 *
 *   counter   one row: the revision of the last commit, and up to which revision the log was trimmed
 *   entry     the current content of the store
 *   change    the log that watches read: every write since `counter.forgotten`
 */
import type { Database } from "bun:sqlite";
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";

const SCHEMA_VERSION = 1n;

const SCHEMA = `
  CREATE TABLE counter (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    revision INTEGER NOT NULL,
    forgotten INTEGER NOT NULL
  );
  INSERT INTO counter VALUES (1, 1, 1);
  CREATE TABLE entry (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    revision INTEGER NOT NULL
  );
  CREATE TABLE change (
    revision INTEGER NOT NULL,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT, -- NULL: the key was deleted
    PRIMARY KEY (revision, position)
  ) WITHOUT ROWID;
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** Creates the tables in an empty file. Any number of processes may do this concurrently, and be killed meanwhile. */
export async function prepareSchema(database: Database): Promise<void> {
  const version = await retryWhileLocked(database, () => schemaVersion(database));
  if (version === SCHEMA_VERSION) return;
  if (version !== 0n) {
    throw new PluginError(
      "datastore-unavailable",
      `Cannot open datastore ${quoted(database.filename)}: its schema has version ${version}, this program supports version ${SCHEMA_VERSION}`,
      { details: "The file was written by another version of the product" },
    );
  }
  // The journal mode is stored in the file, so later processes need not set it.
  await retryWhileLocked(database, () => database.run("PRAGMA journal_mode = WAL"));
  await retryWhileLocked(database, () => {
    const create = database.transaction(() => {
      if (schemaVersion(database) === 0n) database.run(SCHEMA);
    });
    create.immediate();
  });
}

function schemaVersion(database: Database): bigint {
  return database.query<{ user_version: bigint }, []>("PRAGMA user_version").get()?.user_version ?? 0n;
}
