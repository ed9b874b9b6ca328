/** Messages use the words of the documentation, so that a user who searches it for the text of an error finds something. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";

const SOURCES = join(import.meta.dir, "../../src");
const COMMENT = /^\s*(\*|\/\/|\/\*)/;

test("messages say Kubernetes API, as all pages do", () => {
  const files = [...new Glob("**/*.ts").scanSync(SOURCES)].filter((file) => !file.endsWith(".test.ts"));
  const found = files.flatMap((file) =>
    readFileSync(join(SOURCES, file), "utf8")
      .split("\n")
      .filter((line) => !COMMENT.test(line) && /["`].*orchestrator's API/i.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );

  expect(files.length).toBeGreaterThan(100);
  expect(found).toEqual([]);
});
