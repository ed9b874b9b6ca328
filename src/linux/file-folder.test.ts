import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { finishedNameOf, openFolder } from "./file-folder.ts";

describe("openFolder()", () => {
  let path: string;
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), "file-folder-"));
  });
  afterEach(() => rmSync(path, { recursive: true }));

  test("leaves nothing of a file that could not be written", () => {
    const folder = openFolder(path);
    mkdirSync(join(path, "taken"));

    expect(() => folder.write("taken", "text")).toThrow("EISDIR");
    expect(folder.list()).toEqual(["taken"]);
  });
});

describe("finishedNameOf()", () => {
  test.each([
    [".unfinished-one", "one"],
    ["one", undefined],
    ["", undefined],
  ])("of %p is %p", (name, expected) => {
    expect(finishedNameOf(name)).toBe(expected);
  });
});
