import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { placeOf } from "./files.ts";
import { netnsCookie, runInNewNetns } from "./netns.ts";
import { areOfDifferentNetns, isNetnsGone, isNetnsPathVisible, markNetns, markOwnNetns } from "./netns-mark.ts";
import { isFirstProcessOfMachine } from "./pid-namespace.ts";

const HERE = "/proc/self/ns/net";
const PLACE = placeOf(HERE);
const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot)(`isNetnsGone()${isRoot ? "" : " (skipped: needs root)"}`, () => {
  test("is false of a namespace that is at its path", () => {
    expect(isNetnsGone(markNetns(HERE))).toBe(false);
  });

  test("is false of a namespace that a process is in, although its path is gone", () => {
    expect(isNetnsGone(`netns ${PLACE} ${netnsCookie(HERE)} /none`)).toBe(false);
    expect(isNetnsGone(`netns ${PLACE} - /none`)).toBe(false);
  });

  test("is true where path and inode are those of another namespace by now", () => {
    expect(isNetnsGone(`netns ${PLACE} ${(netnsCookie(HERE) ?? 0n) + 1000n} ${HERE}`)).toBe(true);
  });

  test("is true where neither path nor process leads to it", () => {
    expect(isNetnsGone("netns 1/1 7 /none")).toBe(true);
  });

  test.each([undefined, "", "netns none - /none", `netns 1/1 7 /${"n".repeat(120)}`])(
    "is false of %p, which proves nothing",
    (mark) => {
      expect(isNetnsGone(mark)).toBe(false);
    },
  );
});

describe("isNetnsPathVisible()", () => {
  const MARKS = [`netns 1/1 7 /proc/${process.pid}/ns/net`, "netns 1/1 7 /proc/1/ns/net", "netns 1/1 7 /proc/0/ns/net"];

  test.each(MARKS)("is true of %p only where all processes are seen", (mark) => {
    expect(isNetnsPathVisible(mark)).toBe(isFirstProcessOfMachine());
  });

  test.skipIf(!isRoot)("is false of the path of a process, in a PID namespace that does not show it", () => {
    const script = `
      const { isNetnsPathVisible } = await import(${JSON.stringify(join(import.meta.dir, "netns-mark.ts"))});
      console.log(JSON.stringify(${JSON.stringify(MARKS)}.map(isNetnsPathVisible)));`;
    const unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    const { stdout } = Bun.spawnSync([...unshare, process.execPath, "-e", script]);

    expect(JSON.parse(stdout.toString())).toEqual([false, false, false]);
  });

  test.each([
    ["netns 1/1 7 /run/none-such", true],
    ["netns 1/1 7 /run/none-such/one", false],
    ["netns none - /run/none-such", false],
  ])("of %p: %p", (mark, expected) => {
    expect(isNetnsPathVisible(mark)).toBe(expected);
  });
});

describe("areOfDifferentNetns()", () => {
  test.skipIf(!isRoot)("tells the own namespace from others, by whichever path", () => {
    const own = markOwnNetns();

    expect(areOfDifferentNetns(own, markNetns(HERE))).toBe(false);
    expect(areOfDifferentNetns(own, runInNewNetns(markOwnNetns))).toBe(true);
  });

  test.each([
    ["netns 1/1 7 /a", "netns 1/1 7 /b", false],
    ["netns 1/1 7 /a", "netns 1/1 - /a", false],
    ["netns 1/1 7 /a", "netns 1/1 8 /a", true],
    ["netns 1/1 - /a", "netns 1/2 7 /a", true],
    ["netns none - /a", "netns 1/2 7 /a", false],
    [undefined, "netns 1/2 7 /a", false],
  ])("%p and %p: %p", (left, right, expected) => {
    expect(areOfDifferentNetns(left, right)).toBe(expected);
    expect(areOfDifferentNetns(right, left)).toBe(expected);
  });
});
