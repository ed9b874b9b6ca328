import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HistoryGone } from "../datastore.ts";
import type { Subject } from "../datastore-contract/subject.ts";
import { datastoreContract } from "../datastore-contract.ts";
import { openEmbedded } from "./embedded.ts";

function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), "vt-embedded-"));
}

async function open(firstRevision?: bigint): Promise<Subject> {
  const directory = temporaryDirectory();
  const path = join(directory, "state", "store.db");
  if (firstRevision !== undefined) await startAt(path, firstRevision);
  return {
    store: await openEmbedded(path),
    another: () => openEmbedded(path),
    forgetHistory: async () => alter(path, "DELETE FROM change; UPDATE counter SET forgotten = revision"),
    dispose: async () => rmSync(directory, { recursive: true }),
  };
}

async function startAt(path: string, revision: bigint): Promise<void> {
  await (await openEmbedded(path)).close();
  alter(path, `UPDATE counter SET revision = ${revision}, forgotten = ${revision}`);
}

function alter(path: string, sql: string): void {
  const database = new Database(path);
  database.run("PRAGMA busy_timeout = 5000");
  database.run(sql);
  database.close();
}

datastoreContract("embedded", () => open(), { openAt: open });

describe("openEmbedded()", () => {
  test("creates file and directory readable only by their owner", async () => {
    const directory = temporaryDirectory();
    const path = join(directory, "a", "b", "store.db");
    const store = await openEmbedded(path);
    await store.commit([{ kind: "put", key: "/k", value: "x" }]);
    const modeOf = (name: string) => statSync(name).mode & 0o777;

    expect([modeOf(join(directory, "a")), modeOf(join(directory, "a", "b"))]).toEqual([0o700, 0o700]);
    expect([modeOf(path), modeOf(`${path}-wal`), modeOf(`${path}-shm`)]).toEqual([0o600, 0o600, 0o600]);
    await store.close();
    rmSync(directory, { recursive: true });
  });

  test.each([
    [
      "is no database",
      (path: string) => writeFileSync(path, "certainly not SQLite, but long enough to be looked at".repeat(40)),
    ],
    ["has a schema of another version", (path: string) => alter(path, "PRAGMA user_version = 99")],
    [
      "is a directory",
      (path: string) => rmSync(path, { force: true, recursive: true }) ?? Bun.spawnSync(["mkdir", path]),
    ],
  ])("refuses a file that %s", async (_, make) => {
    const directory = temporaryDirectory();
    const path = join(directory, "store.db");
    make(path);

    await expect(openEmbedded(path)).rejects.toMatchObject({ kind: "datastore-unavailable" });
    rmSync(directory, { recursive: true });
  });

  test("waits for a process that has locked the new file", async () => {
    const directory = temporaryDirectory();
    const path = join(directory, "store.db");
    const other = new Database(path, { create: true });
    other.run("BEGIN EXCLUSIVE");
    setTimeout(() => other.run("ROLLBACK"), 300);

    const store = await openEmbedded(path);

    expect((await store.read([{ kind: "key", key: "/k" }])).answers).toEqual([[]]);
    await store.close();
    other.close();
    rmSync(directory, { recursive: true });
  });

  test("leaves a small journal to the next process, without losing its content", async () => {
    const directory = temporaryDirectory();
    const path = join(directory, "store.db");
    const store = await openEmbedded(path, { atClose: "leave a small journal" });
    await store.commit([{ kind: "put", key: "/k", value: "x" }]);
    await store.close();

    expect(existsSync(`${path}-wal`)).toBe(true);
    const next = await openEmbedded(path);
    const { answers } = await next.read([{ kind: "key", key: "/k" }]);
    expect(answers[0]).toMatchObject([{ value: "x" }]);
    await next.close();
    rmSync(directory, { recursive: true });
  });

  test("checkpoints a large journal", async () => {
    const directory = temporaryDirectory();
    const path = join(directory, "store.db");
    const store = await openEmbedded(path, { atClose: "leave a small journal" });
    await store.commit([{ kind: "put", key: "/k", value: "x".repeat(600_000) }]);
    await store.close();

    expect(existsSync(`${path}-wal`)).toBe(false);
    rmSync(directory, { recursive: true });
  });

  test.each([
    ["count", { revisions: 10n, bytes: 1_000_000n }],
    ["size", { revisions: 1_000_000n, bytes: 1_000n }],
  ])("keeps the history within its limit of %s, and says so to a watch that comes too late", async (_, limits) => {
    const directory = temporaryDirectory();
    const path = join(directory, "store.db");
    const store = await openEmbedded(path, { history: limits });
    const { revision } = await store.read([]);
    for (let count = 0; count < 130; count++) await store.commit([{ kind: "put", key: "/k", value: "x".repeat(100) }]);

    const late = async () => {
      for await (const event of store.watch("/", revision, AbortSignal.timeout(5000))) return event;
      return undefined;
    };
    await expect(late()).rejects.toBeInstanceOf(HistoryGone);
    const database = new Database(path);
    expect(database.query<{ count: number }, []>("SELECT count(*) AS count FROM change").get()?.count).toBeLessThan(80);
    database.close();
    await store.close();
    rmSync(directory, { recursive: true });
  });
});
