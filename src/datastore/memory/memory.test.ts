import { describe, expect, test } from "bun:test";
import { HistoryGone } from "../datastore.ts";
import { datastoreContract } from "../datastore-contract.ts";
import { type MemoryOptions, openMemory } from "./memory.ts";
import { MemoryTable } from "./table.ts";

const opening =
  (options: MemoryOptions = {}) =>
  async (firstRevision?: bigint) => {
    const table = new MemoryTable(firstRevision);
    return {
      store: openMemory(table, options),
      another: async () => openMemory(table, options),
      forgetHistory: async () => table.forgetHistory(),
      dispose: async () => {},
    };
  };

const open = opening();
datastoreContract("memory", () => open(), { openAt: open });
const openOneByOne = opening({ atomicity: "one object" });
datastoreContract("memory, one object at a time,", () => openOneByOne(), { atomicity: "one object" });

describe("openMemory()", () => {
  test("discards old history, and reports it", async () => {
    const store = openMemory(new MemoryTable(1n, 10));
    const { revision } = await store.read([]);
    for (let count = 0; count < 50; count++) await store.commit([{ kind: "put", key: "/k", value: String(count) }]);
    const late = async () => {
      for await (const event of store.watch("/", revision, AbortSignal.timeout(5_000))) return event;
      return undefined;
    };

    await expect(late()).rejects.toBeInstanceOf(HistoryGone);
  });

  test("counts a read of many keys and a commit as one round trip each", async () => {
    const store = openMemory();
    await store.read([
      { kind: "key", key: "/a" },
      { kind: "prefix", prefix: "/b/" },
    ]);
    await store.commit([
      { kind: "put", key: "/a", value: "1" },
      { kind: "put", key: "/b", value: "2" },
    ]);

    expect(store.roundTrips).toBe(2);
  });

  test("counts each change as a round trip if it commits one object at a time", async () => {
    const store = openMemory(new MemoryTable(), { atomicity: "one object" });
    await store.commit(["/a", "/b", "/c"].map((key) => ({ kind: "put", key, value: "" })));

    expect(store.roundTrips).toBe(3);
  });
});
