import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { placeOf } from "../linux/files.ts";
import { failureOf, put, readKey, type Subject } from "./contract/subject.ts";
import { datastoreContract } from "./contract.ts";
import type { Datastore } from "./datastore.ts";
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

/** As somebody does who puts another datastore in place of this one. */
function moveAway(path: string): void {
  for (const end of ["", "-wal", "-shm"]) renameSync(path + end, `${path}.old${end}`);
}

function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

describe("a shared store that its user closes in the middle of transact()", () => {
  test("commits nothing any more, and tells the user at once", async () => {
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
  test("opens a file once for users one after another", async () => {
    const path = newPath();
    for (let count = 0; count < 5; count++) {
      const store = await share(path);
      await put(store, "/k", String(count));
      await store.close();
    }

    expect(opened.get(path)).toBe(1);
  });

  test("lets users at once see each other's changes, also those that opened it at the same time", async () => {
    const path = newPath();
    const stores = await Promise.all(Array.from({ length: 8 }, () => share(path)));
    for (const [index, store] of stores.entries()) await put(store, `/k/${index}`, "x");
    const seen = await Promise.all(stores.map((store) => store.read([{ kind: "prefix", prefix: "/k/" }])));
    await Promise.all(stores.map((store) => store.close()));

    expect(seen.map(({ answers }) => answers[0]?.length)).toEqual(stores.map(() => 8));
  });

  test("opens a file anew that was moved away and made anew; who has the old one keeps it", async () => {
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

  test("makes a file anew that was removed", async () => {
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

  test("opens anew what has become old, and what it was opened from has changed", async () => {
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

  test("lets nobody wait for what is under way who has closed it", async () => {
    const never = Object.assign(openMemory(), { read: () => new Promise<never>(() => {}) });
    const store = await stores.share({ name: "what never answers", sign: () => "" }, async () => never);
    const reading = store.read([]);
    await store.close();

    await expect(reading).rejects.toThrow("it was closed meanwhile");
  });

  test("counts a user that closes twice once", async () => {
    const path = newPath();
    const [twice, staying] = [await share(path), await share(path)];
    await put(staying, "/k", "old");
    await twice.close();
    await twice.close();
    // Here a file that nobody uses would be closed.
    moveAway(path);
    await share(path);

    expect((await readKey(staying, "/k"))?.value).toBe("old");
  });

  test("keeps no descriptors over 200 users, nor over 50 files put in place of one another", async () => {
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
