/** The contract of `commit()` of several changes, at both levels of atomicity. */
import { expect, test } from "bun:test";
import type { Change, Datastore, OrderedChange, Written } from "../datastore.ts";
import { failureOf, put, readKey } from "./subject.ts";

const textOf = async (store: Datastore, key: string) => (await readKey(store, key))?.value;
const revisionOf = async (store: Datastore, key: string) => (await readKey(store, key))?.revision ?? "";

/** Promises of both levels. */
export function testSeveralChanges(store: () => Datastore): void {
  test("writes all of them, and returns the revision of the last", async () => {
    await put(store(), "/gone", "x");
    const written = await store().commit([
      { kind: "create", key: "/a", value: "1" },
      { kind: "delete", key: "/gone", revision: await revisionOf(store(), "/gone") },
      { kind: "put", key: "/b", value: "2" },
    ]);

    const { answers } = await store().read([{ kind: "prefix", prefix: "/" }]);
    expect(answers[0]?.map(({ key }) => key)).toEqual(["/a", "/b"]);
    expect(written).toEqual({ ok: true, revision: await revisionOf(store(), "/b") });
  });

  test("names the first refused change, and writes nothing from there on", async () => {
    await put(store(), "/z", "there");
    await put(store(), "/b", "there");
    const written = await store().commit([
      { kind: "create", key: "/z", value: "1" },
      { kind: "create", key: "/b", value: "1" },
      { kind: "create", key: "/a", value: "1" },
    ]);

    expect(written).toEqual({ ok: false, reason: "exists", key: "/z" });
    expect(await readKey(store(), "/a")).toBeUndefined();
  });

  test("rewrites what the same list created or updated", async () => {
    await put(store(), "/there", "old");
    const written = await store().commit([
      { kind: "create", key: "/new", value: "1" },
      { kind: "update", key: "/there", value: "1", revision: await revisionOf(store(), "/there") },
      { kind: "rewrite", key: "/new", value: "2" },
      { kind: "rewrite", key: "/there", value: "2" },
      { kind: "rewrite", key: "/new", value: "3" },
    ]);

    expect(written.ok).toBe(true);
    expect([await textOf(store(), "/new"), await textOf(store(), "/there")]).toEqual(["3", "2"]);
  });

  test("deletes what the same list created or updated", async () => {
    await put(store(), "/there", "old");
    const written = await store().commit([
      { kind: "create", key: "/new", value: "1" },
      { kind: "update", key: "/there", value: "1", revision: await revisionOf(store(), "/there") },
      { kind: "put", key: "/kept", value: "x" },
      { kind: "rewrite", key: "/new", value: undefined },
      { kind: "rewrite", key: "/there", value: undefined },
    ]);

    const { answers } = await store().read([{ kind: "prefix", prefix: "/" }]);
    expect(written.ok).toBe(true);
    expect(answers[0]?.map(({ key }) => key)).toEqual(["/kept"]);
  });

  test("refuses a rewrite if the first change of its key is refused", async () => {
    await put(store(), "/there", "old");
    const stale = await revisionOf(store(), "/there");
    await put(store(), "/there", "new");
    const written = await store().commit([
      { kind: "update", key: "/there", value: "1", revision: stale },
      { kind: "rewrite", key: "/there", value: "2" },
    ]);

    expect(written).toEqual({ ok: false, reason: "stale", key: "/there" });
    expect(await textOf(store(), "/there")).toBe("new");
  });

  const faults: readonly (readonly [string, readonly OrderedChange[]])[] = [
    ["a key named twice", [createOf("/a", "1"), createOf("/a", "2")]],
    ["a rewrite of a key that no earlier change writes", [{ kind: "rewrite", key: "/a", value: "1" }]],
    [
      "a rewrite after a deletion",
      [createOf("/a", "1"), deleteAgain("/a"), { kind: "rewrite", key: "/a", value: "1" }],
    ],
  ];
  test.each(faults)("reports %s as a programming error", async (_, changes) => {
    expect(await failureOf(store().commit(changes))).toMatchObject({ kind: "internal" });
  });

  test("accepts 128 changes at once, and reports more as a programming error", async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, index): Change => ({ kind: "create", key: `/many/${index}`, value: "" }));

    expect(await failureOf(store().commit(many(129)))).toMatchObject({ kind: "internal" });
    expect((await store().commit(many(128))).ok).toBe(true);
  });

  test("loses no increment among concurrent writers", async () => {
    await put(store(), "/counter", "0");
    const increment = async (): Promise<Written> => {
      const entry = await readKey(store(), "/counter");
      const { revision, value } = entry ?? { revision: "", value: "" };
      return store().commit([{ kind: "update", key: "/counter", value: String(Number(value) + 1), revision }]);
    };
    const incrementUntilWon = async () => {
      for (;;) if ((await increment()).ok) return;
    };
    await Promise.all(Array.from({ length: 8 }, incrementUntilWon));

    expect(await textOf(store(), "/counter")).toBe("8");
  });
}

export function testAtomicity(store: () => Datastore): void {
  test("declares that it commits all changes at once", () => {
    expect(store().atomicity).toBe("all changes");
  });

  test("writes all of them at one revision", async () => {
    const written = await store().commit([
      { kind: "create", key: "/a", value: "1" },
      { kind: "put", key: "/b", value: "2" },
      { kind: "rewrite", key: "/a", value: "3" },
    ]);

    const revisions = [await revisionOf(store(), "/a"), await revisionOf(store(), "/b")];
    expect(revisions.map((revision) => ({ ok: true, revision }) as Written)).toEqual([written, written]);
  });

  test("writes none of them if one is refused", async () => {
    await put(store(), "/there", "x");
    const refused = { kind: "create", key: "/there", value: "1" } as const;
    const written = await store().commit([{ kind: "create", key: "/a", value: "1" }, refused]);

    expect(written).toEqual({ ok: false, reason: "exists", key: "/there" });
    expect(await readKey(store(), "/a")).toBeUndefined();
  });
}

export function testOrder(store: () => Datastore): void {
  test("declares that it commits one object at a time", () => {
    expect(store().atomicity).toBe("one object");
  });

  test("writes them in the order given, each at its own revision", async () => {
    await store().commit(["/c", "/a", "/b"].map((key) => ({ kind: "put", key, value: "" })));

    const revisions = await Promise.all(["/c", "/a", "/b"].map((key) => revisionOf(store(), key)));
    expect(revisions).toEqual(revisions.toSorted((left, right) => Number(BigInt(left) - BigInt(right))));
    expect(new Set(revisions).size).toBe(3);
  });

  test("stops at the first refused change, keeps the earlier ones, and says so", async () => {
    await put(store(), "/there", "x");
    const written = await store().commit([
      { kind: "create", key: "/a", value: "1" },
      { kind: "create", key: "/there", value: "1" },
      { kind: "create", key: "/b", value: "1" },
    ]);

    expect(written).toEqual({ ok: false, reason: "exists", key: "/there", partly: true });
    expect([await textOf(store(), "/a"), await textOf(store(), "/b")]).toEqual(["1", undefined]);
  });

  test("checks an expectation when its turn comes; a refusal after a passed expectation has written nothing", async () => {
    await put(store(), "/there", "x");
    const absent = (key: string) => ({ kind: "expect", key, revision: undefined }) as const;
    const late = [absent("/absent"), { kind: "put", key: "/a", value: "1" }, absent("/there")] as const;

    expect(await store().commit([absent("/absent"), absent("/there")])).toEqual({
      ok: false,
      reason: "exists",
      key: "/there",
    });
    expect(await store().commit(late)).toEqual({ ok: false, reason: "exists", key: "/there", partly: true });
    expect(await textOf(store(), "/a")).toBe("1");
  });
}

function createOf(key: string, value: string): OrderedChange {
  return { kind: "create", key, value };
}

function deleteAgain(key: string): OrderedChange {
  return { kind: "rewrite", key, value: undefined };
}
