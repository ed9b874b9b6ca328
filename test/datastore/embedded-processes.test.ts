import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openEmbedded } from "../../src/datastore/embedded/embedded.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";
import { INCREMENT_WORKER } from "./increment-worker.ts";

const PROCESSES = 50;

let directory: TemporaryDirectory;
beforeAll(() => {
  directory = temporaryDirectory("embedded");
});
afterAll(() => directory.remove());

function startWorkers(path: string, times: number) {
  return Array.from({ length: PROCESSES }, (_, index) =>
    Bun.spawn([process.execPath, INCREMENT_WORKER, path, `worker-${index}`, String(times)], { stderr: "pipe" }),
  );
}

/** The content of the store, read through the interface, and the result of SQLite's integrity check. */
async function judge(path: string) {
  const store = await openEmbedded(path);
  const { answers } = await store.read([
    { kind: "key", key: "/counter" },
    { kind: "prefix", prefix: "/rows/" },
  ]);
  await store.close();
  const database = new Database(path);
  const integrity = database.query<{ integrity_check: string }, []>("PRAGMA integrity_check").get()?.integrity_check;
  database.close();
  const values = (answers[1] ?? []).map(({ value }) => Number(value));
  return {
    integrity,
    counter: Number(answers[0]?.[0]?.value ?? 0),
    rows: values.length,
    distinct: new Set(values).size,
  };
}

describe("the embedded datastore with several processes", () => {
  test("loses no increment of 50 processes that also create the file concurrently", async () => {
    const path = join(directory.path, "created", "store.db");
    const workers = startWorkers(path, 10);
    const complaints = await Promise.all(workers.map((worker) => new Response(worker.stderr).text()));
    const exitCodes = await Promise.all(workers.map((worker) => worker.exited));

    expect({ failed: exitCodes.filter((code) => code !== 0).length, complaints: complaints.join("") }).toEqual({
      failed: 0,
      complaints: "",
    });
    expect(await judge(path)).toEqual({ integrity: "ok", counter: 500, rows: 500, distinct: 500 });
    expect(readdirSync(join(directory.path, "created"))).toEqual(["store.db"]);
  }, 60_000);

  test("stays intact when its writers are killed at random moments", async () => {
    const path = join(directory.path, "killed", "store.db");
    const workers = startWorkers(path, 1_000_000);
    await untilRows(path, 300);
    for (const worker of workers) {
      await Bun.sleep(Math.random() * 20);
      worker.kill("SIGKILL");
    }
    await Promise.all(workers.map((worker) => worker.exited));

    const verdict = await judge(path);
    expect(verdict).toEqual({ integrity: "ok", counter: verdict.rows, rows: verdict.rows, distinct: verdict.rows });
    expect(verdict.rows).toBeGreaterThanOrEqual(300);
  }, 60_000);

  test("lets others read, and waits to write, while a process holds the lock", async () => {
    const path = join(directory.path, "held", "store.db");
    const store = await openEmbedded(path);
    await store.commit([{ kind: "put", key: "/k", value: "before" }]);
    const holder = Bun.spawn([process.execPath, "-e", HOLD_LOCK, path], { stdin: "pipe", stdout: "pipe" });
    await holder.stdout.getReader().read();
    let isWritten = false;
    const writing = store.commit([{ kind: "put", key: "/k", value: "after" }]).then(() => {
      isWritten = true;
    });

    const { answers } = await store.read([{ kind: "key", key: "/k" }]);
    expect({ value: answers[0]?.[0]?.value, isWritten }).toEqual({ value: "before", isWritten: false });
    holder.stdin.end();
    await writing;
    expect((await store.read([{ kind: "key", key: "/k" }])).answers[0]?.[0]?.value).toBe("after");
    await store.close();
    await holder.exited;
  });

  test("delivers the commits of other processes to a watch, each once and in order", async () => {
    const path = join(directory.path, "watched", "store.db");
    const store = await openEmbedded(path);
    const { revision } = await store.read([]);
    const workers = startWorkers(path, 2);
    const values: number[] = [];
    for await (const event of store.watch("/rows/", revision, AbortSignal.timeout(50_000))) {
      if (event.kind === "put") values.push(Number(event.entry.value));
      if (values.length === PROCESSES * 2) break;
    }
    await Promise.all(workers.map((worker) => worker.exited));
    await store.close();

    expect(values).toEqual(Array.from({ length: PROCESSES * 2 }, (_, index) => index + 1));
  }, 60_000);
});

/** Takes the write lock, says so, and keeps it until its input ends. */
const HOLD_LOCK = `
  const { Database } = await import("bun:sqlite");
  const database = new Database(process.argv[1]);
  database.run("BEGIN IMMEDIATE");
  console.log("held");
  await Bun.stdin.text();
  database.run("ROLLBACK");
`;

/** Waits until the writers are working, so that they are killed while they write. */
async function untilRows(path: string, count: number): Promise<void> {
  const store = await openEmbedded(path);
  const { revision } = await store.read([]);
  let seen = Number(revision);
  for await (const event of store.watch("/counter", revision, AbortSignal.timeout(50_000))) {
    if (event.kind === "put") seen = Number(event.entry.value);
    if (seen >= count) break;
  }
  await store.close();
}
