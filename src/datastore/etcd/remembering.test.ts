import { beforeEach, describe, expect, test } from "bun:test";
import { openProvingMemory } from "../../../test/support/proving-memory.ts";
import { put } from "../contract/subject.ts";
import { datastoreContract } from "../contract.ts";
import type { Change, Wanted } from "../datastore.ts";
import { openMemory } from "../memory/memory.ts";
import { MemoryTable } from "../memory/table.ts";
import type { Guess, ProvingDatastore } from "./proving.ts";
import { provingContract } from "./proving-contract.ts";
import { type RememberingDatastore, rememberingStore } from "./remembering.ts";

datastoreContract("a store that remembers", async () => {
  const table = new MemoryTable();
  return {
    store: rememberingStore(openProvingMemory(table), () => 0),
    another: async () => openMemory(table),
    forgetHistory: async () => table.forgetHistory(),
    dispose: async () => {},
  };
});
provingContract("memory", async () => openProvingMemory());
provingContract("a store that remembers", async () => rememberingStore(openProvingMemory(), () => 0));

const KEY: Wanted = { kind: "key", key: "/k" };
const LISTING: Wanted = { kind: "prefix", prefix: "/l/" };

let table: MemoryTable;
let failures: number;
let store: RememberingDatastore;

beforeEach(() => {
  table = new MemoryTable();
  failures = 0;
  store = rememberingStore(openProvingMemory(table), () => failures);
});

const truth = async (...wanted: readonly Wanted[]) => (await openMemory(table).read(wanted)).answers;
const recalled = (...wanted: readonly Wanted[]) => store.recall(wanted)?.answers;
const prove = async (wanted: readonly Wanted[], changes: readonly Change[]) =>
  store.commitIfUnchanged({ wanted, answers: await truth(...wanted) }, changes);

describe("a store that remembers", () => {
  test("recalls what it showed, and takes a key that it never saw for absent", async () => {
    await put(openMemory(table), "/k", "x");
    await put(openMemory(table), "/l/1", "x");
    await store.read([KEY, LISTING]);

    expect(recalled(KEY, LISTING)).toEqual(await truth(KEY, LISTING));
    expect(recalled({ kind: "key", key: "/never" })).toEqual([[]]);
  });

  test("guesses no listing that it never saw as a whole", async () => {
    await store.read([{ ...LISTING, limit: 10 }, KEY]);

    expect(recalled(KEY, LISTING)).toBeUndefined();
    expect(recalled({ ...LISTING, limit: 10 })).toBeUndefined();
  });

  test("recalls what was written, and what was deleted", async () => {
    await put(store, "/k", "x");
    expect(recalled(KEY)).toEqual(await truth(KEY));

    await store.commit([{ kind: "delete", key: "/k", revision: table.revision }]);
    expect(recalled(KEY)).toEqual([[]]);
  });

  test("learns nothing from a commit that was refused", async () => {
    await put(openMemory(table), "/k", "x");
    await store.read([KEY]);
    await store.commit([{ kind: "create", key: "/k", value: "mine" }]);

    expect(recalled(KEY)).toEqual(await truth(KEY));
  });

  test("does not take a listing for complete that it wrote into without proof: others may have, too", async () => {
    await store.read([LISTING]);
    await put(openMemory(table), "/l/theirs", "x");
    await put(store, "/l/own", "x");

    expect(recalled(LISTING)).toBeUndefined();
  });

  test("knows a listing that a proven commit wrote into", async () => {
    for (const key of ["/l/1", "/l/3", "/l/5"]) await put(openMemory(table), key, "x");
    const [[, third] = []] = await truth(LISTING);
    await prove(
      [LISTING, KEY],
      [
        { kind: "delete", key: "/l/3", revision: third?.revision ?? "" },
        { kind: "create", key: "/l/2", value: "own" },
        { kind: "put", key: "/l/5", value: "own" },
        { kind: "put", key: "/k", value: "own" },
      ],
    );

    expect(recalled(LISTING, KEY)).toEqual(await truth(LISTING, KEY));
    expect(recalled(LISTING)?.[0]?.map(({ key }) => key)).toEqual(["/l/1", "/l/2", "/l/5"]);
  });

  test("learns from the read that a wrong guess is answered with", async () => {
    await put(openMemory(table), "/k", "x");
    await store.commitIfUnchanged({ wanted: [KEY, LISTING], answers: [[], []] }, [
      { kind: "put", key: "/x", value: "" },
    ]);

    expect(recalled(KEY, LISTING)).toEqual(await truth(KEY, LISTING));
  });

  test("lets no answer that arrives late take the place of a later one", async () => {
    const memory = openProvingMemory(table);
    const late = Promise.withResolvers<void>();
    const slow: ProvingDatastore = Object.assign(openProvingMemory(table), {
      read: async (wanted: readonly Wanted[]) => {
        const snapshot = await memory.read(wanted);
        await late.promise;
        return snapshot;
      },
    });
    store = rememberingStore(slow, () => failures);
    const reading = store.read([KEY, LISTING]);
    await prove(
      [LISTING, KEY],
      [
        { kind: "put", key: "/k", value: "later" },
        { kind: "put", key: "/l/1", value: "later" },
      ],
    );
    late.resolve();
    await reading;

    expect(recalled(KEY, LISTING)).toEqual(await truth(KEY, LISTING));
  });

  describe("forgets everything", () => {
    beforeEach(() => store.read([KEY, LISTING]));

    test("after an attempt that failed, though another one succeeded", () => {
      expect(recalled(LISTING)).toBeDefined();
      failures += 1;

      expect(recalled(LISTING)).toBeUndefined();
    });

    test("but not for an answer that another has overtaken", async () => {
      const memory = openProvingMemory(table);
      const late = Promise.withResolvers<void>();
      const slow = async (wanted: readonly Wanted[]) => {
        const snapshot = await openMemory(table).read(wanted);
        await late.promise;
        return snapshot;
      };
      store = rememberingStore(Object.assign(memory, { read: slow }), () => failures);
      const reading = store.read([LISTING]);
      await put(store, "/k", "later");
      late.resolve();
      await reading;

      expect(recalled(LISTING, KEY)).toEqual(await truth(LISTING, KEY));
    });

    const requests: readonly (readonly [string, (failing: RememberingDatastore) => Promise<unknown>])[] = [
      ["read", (failing) => failing.read([KEY])],
      ["commit", (failing) => failing.commit([])],
      ["guess", async (failing) => failing.commitIfUnchanged({ wanted: [], answers: [] }, [])],
    ];
    test.each(requests)("after a %s that failed", async (_, request) => {
      const fail = () => Promise.reject(new Error("lost"));
      const memory = openProvingMemory(table);
      store = rememberingStore(memory, () => failures);
      await store.read([LISTING]);
      Object.assign(memory, { read: fail, commit: fail, commitIfUnchanged: fail });

      await expect(request(store)).rejects.toThrow("lost");
      expect(recalled(LISTING)).toBeUndefined();
    });

    const answered: readonly (readonly [string, (restored: RememberingDatastore) => Promise<unknown>])[] = [
      ["read", (restored) => restored.read([KEY])],
      ["commit", (restored) => put(restored, "/k", "anew")],
      ["right guess", async (restored) => restored.commitIfUnchanged({ wanted: [], answers: [] }, [])],
      ["wrong guess", async (restored) => restored.commitIfUnchanged({ wanted: [LISTING], answers: [[]] }, [])],
    ];
    test.each(answered)("after a %s that is answered of an earlier time: by an older copy", async (_, request) => {
      const memory = openProvingMemory(table);
      store = rememberingStore(memory, () => failures);
      for (const value of ["1", "2", "3"]) await put(store, "/beside", value);
      await store.read([{ kind: "prefix", prefix: "/other/" }]);
      const copy = openProvingMemory();
      await put(copy, "/l/1", "x");
      Object.assign(memory, {
        read: (wanted: readonly Wanted[]) => copy.read(wanted),
        commit: (changes: readonly Change[]) => copy.commit(changes),
        commitIfUnchanged: (guess: Guess, changes: readonly Change[]) => copy.commitIfUnchanged(guess, changes),
      });
      await request(store);

      expect(recalled({ kind: "prefix", prefix: "/other/" })).toBeUndefined();
      await store.read([LISTING]);
      expect(recalled(LISTING)).toEqual((await copy.read([LISTING])).answers);
    });

    test("when it is closed", async () => {
      await store.close();

      expect(recalled(LISTING)).toBeUndefined();
    });
  });

  test("keeps a bounded number of records, those used last", async () => {
    const others = Array.from({ length: 3_000 }, (_, index): Wanted => ({ kind: "key", key: `/other/${index}` }));
    await put(store, "/k", "x");
    await put(store, "/unused", "x");
    for (const other of others) {
      recalled(KEY);
      await put(store, other.kind === "key" ? other.key : "", "x");
    }

    expect(recalled(KEY)?.[0]).toHaveLength(1);
    expect(recalled({ kind: "key", key: "/unused" })).toEqual([[]]);
    expect(recalled(...others)?.filter((found) => found.length > 0)).toHaveLength(1_999);
  });

  test("keeps a bounded amount of text", async () => {
    const value = "x".repeat(1_000_000);
    for (let index = 0; index < 8; index++) await put(store, `/big/${index}`, value);
    const keys = Array.from({ length: 8 }, (_, index): Wanted => ({ kind: "key", key: `/big/${index}` }));

    expect(recalled(...keys)?.filter((found) => found.length > 0)).toHaveLength(3);
  });
});
