import { beforeEach, describe, expect, test } from "bun:test";
import { openVerifyingMemory } from "../../../test/support/verifying-memory.ts";
import type { ServerTime } from "../../server-clock.ts";
import type { Change, Wanted } from "../datastore.ts";
import { put } from "../datastore-contract/subject.ts";
import { datastoreContract } from "../datastore-contract.ts";
import { openMemory } from "../memory/memory.ts";
import { MemoryTable } from "../memory/table.ts";
import { type CachingDatastore, cachingDatastore } from "./caching-datastore.ts";
import type { AssumedRead, VerifyingDatastore } from "./verified-commit.ts";
import { verifiedCommitContract } from "./verified-commit-contract.ts";

datastoreContract("a caching store", async () => {
  const table = new MemoryTable();
  return {
    store: cachingDatastore(openVerifyingMemory(table), () => 0),
    another: async () => openMemory(table),
    forgetHistory: async () => table.forgetHistory(),
    dispose: async () => {},
  };
});
verifiedCommitContract("memory", async () => openVerifyingMemory());
verifiedCommitContract("a caching store", async () => cachingDatastore(openVerifyingMemory(), () => 0));

const KEY: Wanted = { kind: "key", key: "/k" };
const LISTING: Wanted = { kind: "prefix", prefix: "/l/" };

let table: MemoryTable;
let failures: number;
let store: CachingDatastore;

beforeEach(() => {
  table = new MemoryTable();
  failures = 0;
  store = cachingDatastore(openVerifyingMemory(table), () => failures);
});

const truth = async (...wanted: readonly Wanted[]) => (await openMemory(table).read(wanted)).answers;
const cached = (...wanted: readonly Wanted[]) => store.lookUp(wanted)?.answers;
const commitVerified = async (wanted: readonly Wanted[], changes: readonly Change[]) =>
  store.commitIfUnchanged({ wanted, answers: await truth(...wanted) }, changes);

describe("CachingDatastore", () => {
  test("returns what was read, and assumes that a key it never saw is absent", async () => {
    await put(openMemory(table), "/k", "x");
    await put(openMemory(table), "/l/1", "x");
    await store.read([KEY, LISTING]);

    expect(cached(KEY, LISTING)).toEqual(await truth(KEY, LISTING));
    expect(cached({ kind: "key", key: "/never" })).toEqual([[]]);
  });

  test("predicts nothing while the server's time is lost", async () => {
    let time: ServerTime = "lost";
    const inner = openVerifyingMemory(table);
    store = cachingDatastore(Object.assign(inner, { clock: () => time }), () => failures);
    await store.read([KEY]);

    expect(cached(KEY)).toBeUndefined();
    time = new Date(0);
    expect(cached(KEY)).toEqual([[]]);
  });

  test("does not predict a listing that was never read completely", async () => {
    await store.read([{ ...LISTING, limit: 10 }, KEY]);

    expect(cached(KEY, LISTING)).toBeUndefined();
    expect(cached({ ...LISTING, limit: 10 })).toBeUndefined();
  });

  test("returns what was written, and knows what was deleted", async () => {
    await put(store, "/k", "x");
    expect(cached(KEY)).toEqual(await truth(KEY));

    await store.commit([{ kind: "delete", key: "/k", revision: table.revision }]);
    expect(cached(KEY)).toEqual([[]]);
  });

  test("stores nothing of a refused commit", async () => {
    await put(openMemory(table), "/k", "x");
    await store.read([KEY]);
    await store.commit([{ kind: "create", key: "/k", value: "mine" }]);

    expect(cached(KEY)).toEqual(await truth(KEY));
  });

  test("drops a listing after an unverified commit into it, since others may have written there too", async () => {
    await store.read([LISTING]);
    await put(openMemory(table), "/l/theirs", "x");
    await put(store, "/l/own", "x");

    expect(cached(LISTING)).toBeUndefined();
  });

  test("keeps a listing after a verified commit into it", async () => {
    for (const key of ["/l/1", "/l/3", "/l/5"]) await put(openMemory(table), key, "x");
    const [[, third] = []] = await truth(LISTING);
    await commitVerified(
      [LISTING, KEY],
      [
        { kind: "delete", key: "/l/3", revision: third?.revision ?? "" },
        { kind: "create", key: "/l/2", value: "own" },
        { kind: "put", key: "/l/5", value: "own" },
        { kind: "put", key: "/k", value: "own" },
      ],
    );

    expect(cached(LISTING, KEY)).toEqual(await truth(LISTING, KEY));
    expect(cached(LISTING)?.[0]?.map(({ key }) => key)).toEqual(["/l/1", "/l/2", "/l/5"]);
  });

  test("stores the read that a refused commit returns", async () => {
    await put(openMemory(table), "/k", "x");
    await store.commitIfUnchanged({ wanted: [KEY, LISTING], answers: [[], []] }, [
      { kind: "put", key: "/x", value: "" },
    ]);

    expect(cached(KEY, LISTING)).toEqual(await truth(KEY, LISTING));
  });

  test("keeps the later revision when responses arrive out of order", async () => {
    const memory = openVerifyingMemory(table);
    const late = Promise.withResolvers<void>();
    const slow: VerifyingDatastore = Object.assign(openVerifyingMemory(table), {
      read: async (wanted: readonly Wanted[]) => {
        const snapshot = await memory.read(wanted);
        await late.promise;
        return snapshot;
      },
    });
    store = cachingDatastore(slow, () => failures);
    const reading = store.read([KEY, LISTING]);
    await commitVerified(
      [LISTING, KEY],
      [
        { kind: "put", key: "/k", value: "later" },
        { kind: "put", key: "/l/1", value: "later" },
      ],
    );
    late.resolve();
    await reading;

    expect(cached(KEY, LISTING)).toEqual(await truth(KEY, LISTING));
  });

  describe("clears its cache", () => {
    beforeEach(() => store.read([KEY, LISTING]));

    test("after a failed attempt, even if a retry succeeded", () => {
      expect(cached(LISTING)).toBeDefined();
      failures += 1;

      expect(cached(LISTING)).toBeUndefined();
    });

    test("but not for a response that arrives after a later one", async () => {
      const memory = openVerifyingMemory(table);
      const late = Promise.withResolvers<void>();
      const slow = async (wanted: readonly Wanted[]) => {
        const snapshot = await openMemory(table).read(wanted);
        await late.promise;
        return snapshot;
      };
      store = cachingDatastore(Object.assign(memory, { read: slow }), () => failures);
      const reading = store.read([LISTING]);
      await put(store, "/k", "later");
      late.resolve();
      await reading;

      expect(cached(LISTING, KEY)).toEqual(await truth(LISTING, KEY));
    });

    const requests: readonly (readonly [string, (failing: CachingDatastore) => Promise<unknown>])[] = [
      ["read", (failing) => failing.read([KEY])],
      ["commit", (failing) => failing.commit([])],
      ["verified commit", async (failing) => failing.commitIfUnchanged({ wanted: [], answers: [] }, [])],
    ];
    test.each(requests)("after a failed %s", async (_, request) => {
      const fail = () => Promise.reject(new Error("lost"));
      const memory = openVerifyingMemory(table);
      store = cachingDatastore(memory, () => failures);
      await store.read([LISTING]);
      Object.assign(memory, { read: fail, commit: fail, commitIfUnchanged: fail });

      await expect(request(store)).rejects.toThrow("lost");
      expect(cached(LISTING)).toBeUndefined();
    });

    const answered: readonly (readonly [string, (restored: CachingDatastore) => Promise<unknown>])[] = [
      ["read", (restored) => restored.read([KEY])],
      ["commit", (restored) => put(restored, "/k", "anew")],
      ["verified commit", async (restored) => restored.commitIfUnchanged({ wanted: [], answers: [] }, [])],
      ["refused commit", async (restored) => restored.commitIfUnchanged({ wanted: [LISTING], answers: [[]] }, [])],
    ];
    test.each(answered)(
      "after a %s with an earlier revision: the store was restored from an older copy",
      async (_, request) => {
        const memory = openVerifyingMemory(table);
        store = cachingDatastore(memory, () => failures);
        for (const value of ["1", "2", "3"]) await put(store, "/beside", value);
        await store.read([{ kind: "prefix", prefix: "/other/" }]);
        const copy = openVerifyingMemory();
        await put(copy, "/l/1", "x");
        Object.assign(memory, {
          read: (wanted: readonly Wanted[]) => copy.read(wanted),
          commit: (changes: readonly Change[]) => copy.commit(changes),
          commitIfUnchanged: (assumed: AssumedRead, changes: readonly Change[]) =>
            copy.commitIfUnchanged(assumed, changes),
        });
        await request(store);

        expect(cached({ kind: "prefix", prefix: "/other/" })).toBeUndefined();
        await store.read([LISTING]);
        expect(cached(LISTING)).toEqual((await copy.read([LISTING])).answers);
      },
    );

    test("when it is closed", async () => {
      await store.close();

      expect(cached(LISTING)).toBeUndefined();
    });
  });

  test("keeps a bounded number of records, the most recently used ones", async () => {
    const others = Array.from({ length: 3_000 }, (_, index): Wanted => ({ kind: "key", key: `/other/${index}` }));
    await put(store, "/k", "x");
    await put(store, "/unused", "x");
    for (const other of others) {
      cached(KEY);
      await put(store, other.kind === "key" ? other.key : "", "x");
    }

    expect(cached(KEY)?.[0]).toHaveLength(1);
    expect(cached({ kind: "key", key: "/unused" })).toEqual([[]]);
    expect(cached(...others)?.filter((found) => found.length > 0)).toHaveLength(1_999);
  });

  test("keeps a bounded amount of text", async () => {
    const value = "x".repeat(1_000_000);
    for (let index = 0; index < 8; index++) await put(store, `/big/${index}`, value);
    const keys = Array.from({ length: 8 }, (_, index): Wanted => ({ kind: "key", key: `/big/${index}` }));

    expect(cached(...keys)?.filter((found) => found.length > 0)).toHaveLength(3);
  });
});
