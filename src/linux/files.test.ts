import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { createText, lastChangeOf, overwriteText, readText, removeFile, writeText } from "./files.ts";

const folder = temporaryDirectory("files");
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);

describe("readText()", () => {
  test("reads files of any length, and returns undefined if there is none", () => {
    for (const length of [0, 1, 4096, 4097, 70_000]) {
      const text = "ü".repeat(length);
      writeFileSync(at("read"), text);
      expect(readText(at("read"))).toBe(text);
    }
    expect(readText(at("absent"))).toBeUndefined();
    expect(readText(at("absent/deeper"))).toBeUndefined();
  });

  test("reports why a path cannot be read", () => {
    expect(thrownBy(() => readText(folder.path))).toMatchObject({ kind: "io-failure" });
    expect(thrownBy(() => readText("/proc/version/deeper")).message).toContain("ENOTDIR");
  });
});

describe("writeText()", () => {
  test("replaces the whole content, readable by the owner only", () => {
    writeText(at("write"), "a long text");
    writeText(at("write"), "short");
    expect(readFileSync(at("write"), "utf8")).toBe("short");
    expect(statSync(at("write")).mode & 0o777).toBe(0o600);
  });

  test("does not create a folder, and reports a full disk", () => {
    expect(thrownBy(() => writeText(at("absent/file"), "x")).message).toContain("ENOENT");
    expect(thrownBy(() => writeText("/dev/full", "x")).message).toContain("ENOSPC");
  });
});

describe("overwriteText()", () => {
  test("creates a file, and keeps the rest of a longer one", () => {
    overwriteText(at("over"), "0123456789");
    overwriteText(at("over"), "abc");
    expect(readFileSync(at("over"), "utf8")).toBe("abc3456789");
    expect(thrownBy(() => overwriteText(at("absent/file"), "x")).message).toContain("ENOENT");
  });
});

describe("createText()", () => {
  test("creates once", () => {
    expect([createText(at("new"), "first"), createText(at("new"), "second")]).toEqual([true, false]);
    expect(readFileSync(at("new"), "utf8")).toBe("first");
  });

  test("does not treat another failure as an existing file", () => {
    expect(thrownBy(() => createText(at("absent/file"), "x")).message).toContain("ENOENT");
  });
});

describe("removeFile()", () => {
  test("returns whether the file existed", () => {
    writeFileSync(at("gone"), "");
    expect([removeFile(at("gone")), removeFile(at("gone"))]).toEqual([true, false]);
  });

  test("does not remove a folder", () => {
    mkdirSync(at("folder"));
    expect(thrownBy(() => removeFile(at("folder"))).kind).toBe("io-failure");
  });
});

describe("lastChangeOf()", () => {
  test("changes when a name is added, not when the folder is read", () => {
    mkdirSync(at("watched"));
    const before = lastChangeOf(at("watched"));
    chmodSync(at("watched"), 0o700);
    expect(lastChangeOf(at("watched"))).toBe(before);
    const { mtimeNs } = statSync(at("watched"), { bigint: true });
    expect(before).toBe(`${mtimeNs / 1_000_000_000n}.${mtimeNs % 1_000_000_000n}`);
    expect(lastChangeOf(at("absent"))).toBeUndefined();
  });
});
