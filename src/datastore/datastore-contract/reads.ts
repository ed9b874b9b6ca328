/** The contract of `read()`, and of what keys and values may be. */
import { expect, test } from "bun:test";
import type { Datastore } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { failureOf, put, readKey } from "./subject.ts";

export function testReading(store: () => Datastore): void {
  test("returns keys and prefixes of one revision, in the order requested", async () => {
    await store().commit([
      { kind: "put", key: "/a/1", value: "one" },
      { kind: "put", key: "/a/2", value: "two" },
      { kind: "put", key: "/ab", value: "beside" },
      { kind: "put", key: "/c", value: "three" },
    ]);
    const { answers } = await store().read([
      { kind: "key", key: "/c" },
      { kind: "prefix", prefix: "/a/" },
      { kind: "key", key: "/absent" },
      { kind: "prefix", prefix: "/absent/" },
    ]);

    const texts = answers.map((found) => found.map(({ key, value }) => `${key} ${value}`));
    expect(texts).toEqual([["/c three"], ["/a/1 one", "/a/2 two"], [], []]);
  });

  test("returns more than 128 keys of one revision", async () => {
    const keys = Array.from({ length: 300 }, (_, index) => `/many/${index}`);
    for (const start of [0, 100, 200]) {
      await store().commit(keys.slice(start, start + 100).map((key) => ({ kind: "put", key, value: key })));
    }
    const { answers } = await store().read(keys.map((key) => ({ kind: "key", key })));

    expect(answers.map((answer) => answer[0]?.value)).toEqual(keys);
  });

  test("returns a past revision if it keeps old values, otherwise the present state, and says which", async () => {
    await put(store(), "/past/a", "old");
    await put(store(), "/past/b", "old");
    const wanted = [{ kind: "prefix", prefix: "/past/" }] as const;
    const past = await store().read(wanted);
    await put(store(), "/past/a", "new");
    const present = await store().read(wanted);
    const asked = await store().read(wanted, past.revision);

    expect(asked).toEqual(asked.revision === past.revision ? past : present);
  });

  test("returns every key of a prefix exactly once, page by page", async () => {
    const keys = Array.from({ length: 25 }, (_, index) => `/p/${String(index).padStart(2, "0")}`);
    await store().commit(keys.map((key) => ({ kind: "put", key, value: key })));
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const wanted = { kind: "prefix", prefix: "/p/", limit: 10, ...(after ? { after } : {}) } as const;
      const page = (await store().read([wanted])).answers[0] ?? [];
      seen.push(...page.map(({ key }) => key));
      if (page.length < 10) break;
      after = page.at(-1)?.key;
    }

    expect(seen).toEqual(keys);
  });

  test("starts after `after` even if that key does not exist, and never before the prefix", async () => {
    for (const key of ["/o", "/p/a", "/p/c", "/q"]) await put(store(), key, "");
    const keysAfter = async (after: string) =>
      (await store().read([{ kind: "prefix", prefix: "/p/", after }])).answers[0]?.map(({ key }) => key);

    expect(await keysAfter("/p/b")).toEqual(["/p/c"]);
    expect(await keysAfter("/a")).toEqual(["/p/a", "/p/c"]);
    expect(await keysAfter("/z")).toEqual([]);
  });

  test("reads everything below the empty prefix", async () => {
    await put(store(), "\u{0001}", "first");
    await put(store(), "\u{10ffff}", "last");

    const everything = (await store().read([{ kind: "prefix", prefix: "" }])).answers[0];
    expect(everything?.map(({ value }) => value)).toEqual(["first", "last"]);
  });
}

/** Of a store that commits all changes at once. */
export function testHalfCommits(store: () => Datastore): void {
  test("never shows half a commit", async () => {
    const writing = (async () => {
      for (let round = 0; round < 50; round++) {
        await store().commit([
          { kind: "put", key: "/left", value: String(round) },
          { kind: "put", key: "/right/x", value: String(round) },
        ]);
      }
    })();
    for (let round = 0; round < 50; round++) {
      const { answers } = await store().read([
        { kind: "key", key: "/left" },
        { kind: "prefix", prefix: "/right/" },
      ]);
      expect(answers[0]?.[0]?.value).toBe(answers[1]?.[0]?.value);
    }
    await writing;
  });
}

export function testOddities(store: () => Datastore): void {
  const ODD_KEYS = [
    "/with space",
    "/100%/%2F/%zz",
    "/äöü/日本語/🦊",
    "/\u{ffee}/before the fox",
    "/quote'\"\\back`tick",
    "/line\nbreak\ttab",
    "/wild*card_?%",
    `/long/${"x".repeat(4000)}`,
    "//",
    "no slash",
  ];

  test("keeps unusual keys distinct, unchanged, and in the order of their bytes", async () => {
    await store().commit(ODD_KEYS.map((key) => ({ kind: "create", key, value: `value of ${key}` })));

    const everything = (await store().read([{ kind: "prefix", prefix: "" }])).answers[0] ?? [];
    expect(everything.map(({ key }) => key)).toEqual(ODD_KEYS.toSorted(compareKeys));
    for (const { key, value } of everything) expect(value).toBe(`value of ${key}`);
    for (const key of ODD_KEYS) expect((await readKey(store(), key))?.key).toBe(key);
  });

  test("treats a prefix literally", async () => {
    for (const key of ["/a%b/1", "/aXb/1", "/a_b/1", "/🦊/1"]) await put(store(), key, "");
    const keysBelow = async (prefix: string) =>
      (await store().read([{ kind: "prefix", prefix }])).answers[0]?.map(({ key }) => key);

    expect(await keysBelow("/a%b/")).toEqual(["/a%b/1"]);
    expect(await keysBelow("/a_b/")).toEqual(["/a_b/1"]);
    expect(await keysBelow("/🦊")).toEqual(["/🦊/1"]);
  });

  test.each([
    ["empty", ""],
    ["of 1 MB", "ü".repeat(512 * 1024)],
    ["with a zero character", "a\u{0000}b"],
    ["that looks like JSON", '{"sequence":9223372036854775807,"text":"\\u0000"}'],
  ])("keeps a value %s as it is", async (_, value) => {
    await put(store(), "/k", value);

    expect((await readKey(store(), "/k"))?.value === value).toBe(true);
  });

  test("refuses an empty key and malformed Unicode", async () => {
    expect(await failureOf(put(store(), "", "x"))).toMatchObject({ kind: "internal" });
    expect(await failureOf(put(store(), "/\u{d800}", "x"))).toMatchObject({ kind: "internal" });
    expect(await failureOf(put(store(), "/k", "\u{dfff}"))).toMatchObject({ kind: "internal" });
  });
}
