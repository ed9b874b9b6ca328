import { describe, expect, test } from "bun:test";
import { brokenLinks } from "../../scripts/docs/broken-links.ts";

const exists = (path: string) => ["docs/a.md", "README.md"].includes(path);

describe("brokenLinks()", () => {
  test("resolves links relative to the directory of the page", () => {
    expect(brokenLinks("docs/b.md", "[a](a.md#part) [front](../README.md) [gone](gone.md)", exists)).toEqual([
      "gone.md",
    ]);
  });

  test("ignores web links and links within the page", () => {
    expect(brokenLinks("docs/b.md", "[x](https://example.org/x) [y](#here)", exists)).toEqual([]);
  });
});
