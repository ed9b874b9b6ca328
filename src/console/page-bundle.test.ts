import { beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { identity } from "../identity.ts";
import { loadPage } from "./page-bundle.ts";
import type { PageFiles } from "./server/page-files.ts";

const MOST_BYTES = 300_000;
/** Names of what a document consists of, which nothing fetches. */
const NAMESPACES =
  /^http:\/\/www\.w3\.org\/(1999\/xhtml|1999\/xlink|2000\/svg|2000\/xmlns\/|1998\/Math\/MathML|XML\/1998\/namespace)$/;

describe("the page of the console", () => {
  let page: PageFiles;
  beforeAll(async () => {
    page = await loadPage();
  });
  const texts = () => [page.html, ...Array.from(page.assets.values(), ({ body }) => String(body))];

  test("has fewer than 300 kB compressed", () => {
    const sizes = texts().map((text) => gzipSync(text).length);

    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(MOST_BYTES);
  });

  test("names no other origin", () => {
    const addresses = texts().flatMap((text) => text.match(/\b(?:https?|wss?):\/\/[^\s"'`)<>\\]*/g) ?? []);
    const elsewhere = texts().flatMap((text) => text.match(/(?:src|href|url)\s*[=(]\s*["']?\/\/[^\s"')]*/g) ?? []);

    // The identity is in the script as it is; nothing asks the place of releases.
    expect(addresses.filter((address) => !NAMESPACES.test(address) && address !== identity.releaseBase)).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  test("refers to its parts, which have hashes in their names, and has no script or style inside", () => {
    const referred = Array.from(page.html.matchAll(/(?:src|href)="([^"]*)"/g), ([, path]) => path);

    expect(referred.toSorted()).toEqual([...page.assets.keys()].map((name) => `/assets/${name}`).toSorted());
    expect([...page.assets.keys()].every((name) => /^[a-z]+-[0-9a-f]{16}\.(js|css|svg)$/.test(name))).toBe(true);
    expect(page.html).not.toMatch(/<style|<script[^>]*>[^<]|\son\w+=|\sstyle=/);
  });

  test("is the same each time, so that browsers keep it", async () => {
    expect(await loadPage()).toEqual(page);
  });
});
