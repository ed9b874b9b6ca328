import { expect, test } from "bun:test";
import { chooseTests } from "../../scripts/choose-tests.ts";

const TEXTS: Readonly<Record<string, string>> = {
  "src/ipam/pools.test.ts": 'test("chooses a pool (of two)", …',
  "src/policy/pools.test.ts": 'test("denies", …',
  "test/ipam/storm.test.ts": 'test("a pool of one address", …',
};
const choose = (word: string) => chooseTests(word, Object.keys(TEXTS), async (file) => TEXTS[file] ?? "");

test.each([
  ["a file", "src/ipam/pools.test.ts", ["src/ipam/pools.test.ts"]],
  ["a file as shells complete it", "./src/ipam/pools.test.ts", ["src/ipam/pools.test.ts"]],
  ["a folder", "src/ipam/", ["src/ipam/pools.test.ts"]],
  ["a word of paths", "pools", ["src/ipam/pools.test.ts", "src/policy/pools.test.ts"]],
])("%s", async (_, word, files) => {
  expect(await choose(word)).toEqual({ files });
});

test("a title, with the characters that mean something in a pattern", async () => {
  expect(await choose("pool (of two)")).toEqual({
    files: ["src/ipam/pools.test.ts"],
    title: "pool \\(of two\\)",
  });
});

test("nothing", async () => {
  expect((await choose("nobody")).files).toEqual([]);
});
