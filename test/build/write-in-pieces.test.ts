import { expect, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeInPieces } from "../../scripts/write-in-pieces.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

test("a file that is written in pieces is the same file, may be executed, and leaves nothing beside it", () => {
  const directory = temporaryDirectory("pieces");
  const path = join(directory.path, "program");
  // Two pieces and a half.
  const bytes = Buffer.from(Array.from({ length: 160 * 1024 }, (_, at) => at % 251));
  writeFileSync(path, bytes);
  chmodSync(path, 0o755);
  const before = statSync(path).ino;
  writeInPieces(path);

  expect(readFileSync(path).equals(bytes)).toBe(true);
  expect(statSync(path).mode & 0o777).toBe(0o755);
  expect(statSync(path).ino).not.toBe(before);
  expect(readdirSync(directory.path)).toEqual(["program"]);
  directory.remove();
});
