import { describe, expect, test } from "bun:test";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { CountedStore, countsSince, NO_COUNTS } from "./counted-store.ts";

describe("CountedStore", () => {
  test("counts requests, records and bytes", async () => {
    const store = new CountedStore(new MemoryTable());
    await store.commit([
      { kind: "put", key: "/a", value: "12345" },
      { kind: "put", key: "/b", value: "1" },
      { kind: "expect", key: "/c", revision: undefined },
    ]);
    const written = store.counts;
    await store.read([{ kind: "prefix", prefix: "/" }]);

    expect(written).toEqual({ ...NO_COUNTS, commits: 1, records: 2, writtenBytes: 10 });
    expect(countsSince(written, store.counts)).toEqual({ ...NO_COUNTS, reads: 1, entries: 2, readBytes: 10 });
  });

  test("counts the events of a watch, but not those of other keys", async () => {
    const store = new CountedStore(new MemoryTable());
    const ending = new AbortController();
    await store.commit([{ kind: "put", key: "/watched/a", value: "123" }]);
    await store.commit([{ kind: "put", key: "/other", value: "123" }]);
    for await (const event of store.watch("/watched/", "1", ending.signal)) {
      if (event.kind === "bookmark") ending.abort();
    }

    expect(store.counts).toMatchObject({ events: 1, eventBytes: 13 });
  });

  test("does not count a refused commit as written", async () => {
    const store = new CountedStore(new MemoryTable());
    await store.commit([{ kind: "delete", key: "/a", revision: "1" }]);

    expect(store.counts).toEqual({ ...NO_COUNTS, commits: 1 });
  });
});
