import { describe, expect, test } from "bun:test";
import type { Datastore } from "./datastore.ts";
import { openMemory } from "./memory/memory.ts";
import { pagesBelow, readAllEntries } from "./pages.ts";

const KEYS = Array.from({ length: 1_001 }, (_, index) => `/k/${String(index).padStart(4, "0")}`);

async function fullStore(): Promise<Datastore> {
  const store = openMemory();
  for (const key of [...KEYS, "/elsewhere"]) await store.commit([{ kind: "put", key, value: key }]);
  return store;
}

describe("pagesBelow()", () => {
  test.each([
    [1_001, [1_001, 0]],
    [1_002, [1_001]],
    [500, [500, 500, 1]],
  ])("yields pages of %d entries", async (size, expected) => {
    const sizes: number[] = [];
    for await (const { entries } of pagesBelow(await fullStore(), "/k/", { size })) sizes.push(entries.length);

    expect(sizes).toEqual(expected);
  });

  test.each([
    [350, [100, 200, 350, 350, 1]],
    [50, [100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 1]],
  ])("yields pages of twice the size up to the largest of %d entries", async (largest, expected) => {
    const sizes: number[] = [];
    const paging = { size: 100, largest };
    for await (const { entries } of pagesBelow(await fullStore(), "/k/", paging)) sizes.push(entries.length);

    expect(sizes).toEqual(expected);
  });

  test("yields one empty page with its revision if there are no entries", async () => {
    const store = openMemory();
    const pages = await Array.fromAsync(pagesBelow(store, "/k/"));

    expect(pages).toEqual([{ entries: [], revision: (await store.read([])).revision }]);
  });

  test.each([
    [undefined, [undefined, undefined, undefined]],
    ["first page", [undefined, "first", "first"]],
    ["17", ["17", "17", "17"]],
  ] as const)("asks for the moment of each page (%p)", async (at, expected) => {
    const asked: (string | undefined)[] = [];
    const store = await fullStore();
    const first = (await store.read([])).revision;
    const spy: Datastore = Object.assign(Object.create(store), {
      read: async (...args: Parameters<Datastore["read"]>) => {
        asked.push(args[1]);
        return store.read(...args);
      },
    });
    const paging = at === undefined ? {} : { at };
    for await (const _ of pagesBelow(spy, "/k/", paging)) await store.commit([{ kind: "put", key: "/x", value: "" }]);

    expect(asked).toEqual(expected.map((each) => (each === "first" ? first : each)));
  });
});

describe("readAllEntries()", () => {
  test("returns every entry below the prefix in the order of keys", async () => {
    expect((await readAllEntries(await fullStore(), "/k/")).map(({ key }) => key)).toEqual(KEYS);
  });
});
