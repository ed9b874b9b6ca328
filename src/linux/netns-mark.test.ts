import { describe, expect, test } from "bun:test";
import { placeOf } from "./files.ts";
import { netnsCookie } from "./netns.ts";
import { isNetnsGone, markNetns } from "./netns-mark.ts";

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
