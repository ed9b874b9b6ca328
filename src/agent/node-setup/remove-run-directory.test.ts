import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { hostPortsFolder } from "../../chained/portmap/record-file.ts";
import { SEEN_REVISIONS_FILE } from "../network/seen-revisions.ts";
import { removeRunDirectory } from "./remove-run-directory.ts";

const opened: TemporaryDirectory[] = [];
afterEach(() => {
  for (const directory of opened.splice(0)) directory.remove();
});

function runDirectory(): string {
  const directory = temporaryDirectory("run-directory");
  opened.push(directory);
  const path = join(directory.path, "run");
  mkdirSync(hostPortsFolder(path), { recursive: true });
  writeFileSync(join(hostPortsFolder(path), "record"), "");
  writeFileSync(join(path, SEEN_REVISIONS_FILE), "");
  mkdirSync(join(path, ".flows.sock.new"));
  mkdirSync(join(path, "flows"));
  for (const name of ["flows.sock", "rule-numbers", "rule-numbers.unfinished", "flows/connection-accounting.json"])
    writeFileSync(join(path, name), "");
  writeFileSync(join(path, `.unfinished-${SEEN_REVISIONS_FILE}`), "");
  return path;
}

describe("removeRunDirectory()", () => {
  test("removes the directory with all that our programs have made", () => {
    const path = runDirectory();

    expect(removeRunDirectory(path)).toEqual([]);
    expect(existsSync(path)).toBe(false);
    expect(removeRunDirectory(path)).toEqual([]);
  });

  test("leaves what others have made, and names it", () => {
    const path = runDirectory();
    writeFileSync(join(path, "letter"), "precious");

    expect(removeRunDirectory(path)).toEqual([join(path, "letter")]);
    expect(readdirSync(path)).toEqual(["letter"]);
  });
});
