/** The page about the architecture is true: its layers are those of the linter, its files exist, and nobody else writes. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Glob } from "bun";
import { writerProblems } from "../../scripts/docs/writer-problems.ts";

const ROOT = join(import.meta.dir, "../..");
const PAGE = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");

interface Rules {
  readonly forbidden: readonly { readonly name: string }[];
}

function sources(): ReadonlyMap<string, string> {
  const paths = [...new Glob("**/*.ts").scanSync(join(ROOT, "src"))].filter((path) => !path.endsWith(".test.ts"));
  return new Map(paths.map((path) => [path, readFileSync(join(ROOT, "src", path), "utf8")]));
}

describe("docs/architecture.md", () => {
  test("only the writers of its table import the code that writes", () => {
    expect(writerProblems(PAGE, sources())).toEqual([]);
  });

  test("has the layers of the linter", () => {
    const { forbidden }: Rules = createRequire(import.meta.url)("../../.dependency-cruiser.cjs");
    const layers = forbidden.flatMap(({ name }) => {
      const [, level, module] = /^layer-(\d+)-(.+)$/.exec(name) ?? [];
      return level === undefined ? [] : [`${level} ${module}`];
    });

    expect(layers.length).toBeGreaterThan(30);
    expect(layers.filter((layer) => !layersOf(PAGE).has(layer))).toEqual([]);
  });

  test("names files that exist", () => {
    const named = new Set(PAGE.match(/(?<![\w/.-])[a-z][\w-]*(?:\/[\w-]+)+\.ts\b/g));

    expect(named.size).toBeGreaterThan(80);
    expect([...named].filter((path) => !existsSync(join(ROOT, path)) && !existsSync(join(ROOT, "src", path)))).toEqual(
      [],
    );
  });
});

/** Each word of the table of layers, with its layer. */
function layersOf(page: string): ReadonlySet<string> {
  const table = page.slice(page.indexOf("## Layers"), page.indexOf("Next to `src/`"));
  let level = "";
  return new Set(
    table.split("\n").flatMap((line) => {
      level = /^\d+/.exec(line)?.[0] ?? level;
      return (line.match(/[\w/-]+/g) ?? []).map((word) => `${level} ${word}`);
    }),
  );
}

describe("writerProblems()", () => {
  const page = "## One writer\n| what | `write` | agent: `agent/a.ts`, `plugin/` | `admin/b.ts` |\n\n## Next";
  const files = {
    "firewall/write.ts": "export function write() {}",
    "agent/a.ts": 'import { read, write } from "../firewall/write.ts";',
    "plugin/c.ts": 'const { write: put } = await import("../firewall/write.ts");',
    "admin/b.ts": 'const done = (await import("../firewall/write.ts")).write();',
  };
  const problemsOf = (more: Readonly<Record<string, string>>) =>
    writerProblems(page, new Map(Object.entries({ ...files, ...more })));

  test("accepts the writers of the table, however they import", () => {
    expect(problemsOf({ "agent/d.ts": 'import { type write, other } from "./a.ts"; tables.write();' })).toEqual([]);
  });

  test.each([
    ["import { write } from '../firewall/write.ts'", "may not import"],
    ["import {\n  other,\n  write as put,\n} from '../firewall/write.ts'", "may not import"],
    ["const { write } = await import('../firewall/write.ts')", "may not import"],
    ["const written = (await import('../firewall/write.ts')).write(socket)", "may not import"],
  ])("finds another writer: %s", (text, problem) => {
    expect(problemsOf({ "controllers/d.ts": text })).toEqual([expect.stringContaining(problem)]);
  });

  test("finds a writer that does not write any more, code that nobody has, and a lost table", () => {
    expect(problemsOf({ "admin/b.ts": "" })).toEqual([expect.stringContaining('"admin/b.ts" does not import')]);
    expect(problemsOf({ "firewall/write.ts": "" })).toEqual([expect.stringContaining('nothing exports "write"')]);
    expect(writerProblems("## Other", new Map())).toEqual([expect.stringContaining("no table")]);
  });
});
