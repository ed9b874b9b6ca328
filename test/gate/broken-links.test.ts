import { describe, expect, test } from "bun:test";
import { brokenLinks } from "../../scripts/docs/broken-links.ts";

const exists = (path: string) => ["docs/a.md", "README.md"].includes(path);

describe("brokenLinks()", () => {
  test("follows links from the page's own folder", () => {
    expect(brokenLinks("docs/b.md", "[a](a.md#part) [front](../README.md) [gone](gone.md)", exists)).toEqual([
      "gone.md",
    ]);
  });

  test("leaves the web and places on the same page alone", () => {
    expect(brokenLinks("docs/b.md", "[x](https://example.org/x) [y](#here)", exists)).toEqual([]);
  });
});
