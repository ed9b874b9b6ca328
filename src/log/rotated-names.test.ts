import { describe, expect, test } from "bun:test";
import { folderOf, namesToRemove, rotatedName } from "./rotated-names.ts";

const PATH = "/var/log/product/cni.log";
const NOW = new Date("2026-11-15T00:00:00.000Z");
const daysAgo = (days: number) => rotatedName(PATH, new Date(NOW.getTime() - days * 86_400_000));

describe("rotatedName()", () => {
  test("puts the time of rotation between the name and its extension", () => {
    expect(rotatedName(PATH, NOW)).toBe("cni-2026-11-15T00-00-00.000.log");
  });

  test("accepts a log file without an extension", () => {
    expect(rotatedName("/x/plain", NOW)).toBe("plain-2026-11-15T00-00-00.000");
  });
});

describe("namesToRemove()", () => {
  const names = [daysAgo(1), daysAgo(40), daysAgo(2), daysAgo(31), daysAgo(29)];

  test("removes files older than the maximum age", () => {
    expect(namesToRemove(PATH, names, { maxAgeDays: 30, maxCount: 10 }, NOW)).toEqual([daysAgo(31), daysAgo(40)]);
  });

  test("removes the oldest files beyond the maximum number", () => {
    const removed = namesToRemove(PATH, names, { maxAgeDays: 365, maxCount: 2 }, NOW);

    expect(removed).toEqual([daysAgo(29), daysAgo(31), daysAgo(40)]);
  });

  test("keeps everything if neither age nor number is limited", () => {
    expect(namesToRemove(PATH, names, { maxAgeDays: 0, maxCount: 0 }, NOW)).toEqual([]);
  });

  test.each([
    "cni.log",
    "cni-old.log",
    "cni-ipam-2020-01-01T00-00-00.000.log",
    "other-2020-01-01T00-00-00.000.log",
    "cni-2020-99-01T00-00-00.000.log",
    "cni-2020-01-01T00-00-00.000.log.gz",
  ])("never touches a file that is not its own: %s", (name) => {
    expect(namesToRemove(PATH, [name, daysAgo(1)], { maxAgeDays: 1, maxCount: 1 }, NOW)).toEqual([]);
  });
});

describe("folderOf()", () => {
  test.each([
    ["/var/log/a.log", "/var/log"],
    ["/a.log", "/"],
    ["a.log", "."],
  ])("for %s is %s", (path, folder) => {
    expect(folderOf(path)).toBe(folder);
  });
});
