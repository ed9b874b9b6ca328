import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { placeOf } from "../linux/files.ts";
import type { Datastore } from "./datastore.ts";
import { failureOf, put, readKey, type Subject } from "./datastore-contract/subject.ts";
import { datastoreContract } from "./datastore-contract.ts";
import { openEmbedded } from "./embedded/embedded.ts";
import { openMemory } from "./memory/memory.ts";
import { SharedStores } from "./shared.ts";

const folder = mkdtempSync(join(tmpdir(), "vt-shared-"));
afterAll(() => rmSync(folder, { recursive: true }));

const stores = new SharedStores();

let paths = 0;
function newPath(): string {
  paths += 1;
  return join(folder, String(paths), "store.db");
}

/** How often each path was opened. */
const opened = new Map<string, number>();

function share(path: string): Promise<Datastore> {
  return stores.share({ name: path, sign: () => placeOf(path) ?? "" }, () => {
    opened.set(path, (opened.get(path) ?? 0) + 1);
    return openEmbedded(path);
  });
}

async function open(): Promise<Subject> {
  const path = newPath();
  return {
    store: await share(path),
    another: () => share(path),
    forgetHistory: async () => {
      const database = new Database(path);
      database.run("DELETE FROM change; UPDATE counter SET forgotten = revision");
      database.close();
    },
    dispose: async () => {},
  };
}

datastoreContract("a shared file", open);

/** Replaces the datastore by another one. */
function moveAway(path: string): void {
  for (const end of ["", "-wal", "-shm"]) renameSync(path + end, `${path}.old${end}`);
}

function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

describe("a shared store that is closed in the middle of transact()", () => {
  test("commits nothing, and rejects immediately", async () => {
    const path = newPath();
    const store = await share(path);
    const other = await share(path);
    let decided = 0;
    const transacting = store.transact([{ kind: "key", key: "/k" }], () => {
      decided += 1;
      if (decided > 1) return { kind: "commit", changes: [{ kind: "put", key: "/k", value: "late" }], outcome: 0 };
      void store.close();
      return { kind: "read", wanted: [] };
    });

    expect(await failureOf(transacting)).toMatchObject({ kind: "datastore-unavailable" });
    await put(other, "/beside", "x");
    expect(await readKey(other, "/k")).toBeUndefined();
    await other.close();
  });
});

describe("SharedStores.share()", () => {
  test("opens a file once for consecutive users", async () => {
    const path = newPath();
    for (let count = 0; count < 5; count++) {
      const store = await share(path);
      await put(store, "/k", String(count));
      await store.close();
    }

    expect(opened.get(path)).toBe(1);
  });

  test("shows concurrent users each other's changes, also if they opened it at the same time", async () => {
    const path = newPath();
    const stores = await Promise.all(Array.from({ length: 8 }, () => share(path)));
    for (const [index, store] of stores.entries()) await put(store, `/k/${index}`, "x");
    const seen = await Promise.all(stores.map((store) => store.read([{ kind: "prefix", prefix: "/k/" }])));
    await Promise.all(stores.map((store) => store.close()));

    expect(seen.map(({ answers }) => answers[0]?.length)).toEqual(stores.map(() => 8));
  });

  test("opens a replaced file again; current users keep the old one", async () => {
    const path = newPath();
    const before = await share(path);
    await put(before, "/k", "old");
    moveAway(path);
    await (await openEmbedded(path)).close();
    const after = await share(path);

    expect(await readKey(after, "/k")).toBeUndefined();
    await put(after, "/k", "new");
    expect((await readKey(before, "/k"))?.value).toBe("old");
    expect((await readKey(await share(path), "/k"))?.value).toBe("new");
  });

  test("creates a removed file again", async () => {
    const path = newPath();
    const before = await share(path);
    await put(before, "/k", "old");
    await before.close();
    for (const end of ["", "-wal", "-shm"]) rmSync(path + end);
    const after = await share(path);
    await put(after, "/k", "new");

    expect(await (await openEmbedded(path)).read([{ kind: "key", key: "/k" }])).toMatchObject({
      answers: [[{ value: "new" }]],
    });
  });

  test("opens a store again when it is too old, or when its source has changed", async () => {
    let opens = 0;
    let sign = "first";
    const open = async () => {
      opens += 1;
      return openMemory();
    };
    const use = async (oldAfterMilliseconds: number) => {
      const source = { name: "what ages", sign: () => sign, oldAfterMilliseconds };
      await (await stores.share(source, open)).close();
      return opens;
    };

    expect([await use(60_000), await use(60_000)]).toEqual([1, 1]);
    sign = "second";
    expect(await use(0)).toBe(2);
    expect(await use(60_000)).toBe(3);
  });

  test("rejects pending requests when it is closed", async () => {
    const never = Object.assign(openMemory(), { read: () => new Promise<never>(() => {}) });
    const store = await stores.share({ name: "what never answers", sign: () => "" }, async () => never);
    const reading = store.read([]);
    await store.close();

    await expect(reading).rejects.toThrow("it was closed in the meantime");
  });

  test("counts a user that closes twice only once", async () => {
    const path = newPath();
    const [twice, staying] = [await share(path), await share(path)];
    await put(staying, "/k", "old");
    await twice.close();
    await twice.close();
    // An unused file would be closed here.
    moveAway(path);
    await share(path);

    expect((await readKey(staying, "/k"))?.value).toBe("old");
  });

  test("leaks no descriptors over 200 users, nor over 50 replaced files", async () => {
    const path = newPath();
    const use = async () => {
      const store = await share(path);
      await put(store, "/k", "x");
      await store.close();
    };
    await use();
    const before = descriptors();
    for (let count = 0; count < 200; count++) await use();
    for (let count = 0; count < 50; count++) {
      moveAway(path);
      await use();
    }

    expect(descriptors()).toBeLessThanOrEqual(before);
  });
});
