/** The gate fails: each mistake below is planted in a folder with the project's own settings. */
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const ROOT = join(import.meta.dir, "../..");
const SETTINGS = ["biome.json", ".dependency-cruiser.cjs", "tsconfig.json", ".gitignore"];

const folder = temporaryDirectory("gate");
afterAll(() => folder.remove());
for (const name of SETTINGS) copyFileSync(join(ROOT, name), join(folder.path, name));

function plant(path: string, text: string): void {
  mkdirSync(dirname(join(folder.path, path)), { recursive: true });
  writeFileSync(join(folder.path, path), text);
}

async function outputOf(tool: string, ...words: readonly string[]): Promise<string> {
  const command = [process.execPath, "--bun", join(ROOT, "node_modules/.bin", tool), ...words];
  const child = Bun.spawn(command, { cwd: folder.path, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  return (await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])).join("");
}

describe("layers", () => {
  interface Rules {
    readonly forbidden: readonly { readonly name: string; readonly from: { readonly pathNot: readonly string[] } }[];
  }

  interface Violations {
    readonly summary: { readonly violations: readonly { readonly from: string; readonly rule: { name: string } }[] };
  }

  test("every file of src/ is in the table", () => {
    const { forbidden }: Rules = createRequire(import.meta.url)("../../.dependency-cruiser.cjs");
    const rows = forbidden.find(({ name }) => name === "no-unknown-module")?.from.pathNot.map((row) => new RegExp(row));
    const { stdout } = Bun.spawnSync(["git", "ls-files", "src/*.ts"], { cwd: ROOT });
    const paths = stdout.toString().trim().split("\n");

    expect(paths.length).toBeGreaterThan(1_000);
    expect(paths.filter((path) => !rows?.some((row) => row.test(path)))).toEqual([]);
  });

  test("a file outside of the table fails, whether it imports or is imported or neither", async () => {
    plant("src/errors.ts", "export const errors = 1;\n");
    plant("src/alone.ts", "export const alone = 1;\n");
    plant("src/tested.ts", "export const tested = 1;\n");
    plant("test/tested.test.ts", 'import "../src/tested.ts";\n');
    plant("src/importing.ts", 'import "./errors.ts";\n');
    plant("src/other/alone.ts", "export const alone = 1;\n");
    plant("src/other/more/importing.ts", 'import "../../errors.ts";\n');
    plant("src/alp/inner/known.ts", "export const known = 1;\n");

    const output = await outputOf("depcruise", "--config", ".dependency-cruiser.cjs", "-T", "json", "src", "test");
    const { violations } = (JSON.parse(output) as Violations).summary;

    expect(violations.map(({ from, rule }) => `${from}: ${rule.name}`).toSorted()).toEqual([
      "src/alone.ts: no-unknown-module-alone",
      "src/importing.ts: no-unknown-module",
      "src/other/alone.ts: no-unknown-module-alone",
      "src/other/more/importing.ts: no-unknown-module",
      "test/tested.test.ts: no-unknown-module-imported",
    ]);
  }, 60_000);

  test("a folder that is a module in another one has its own layer, and a feature is registered in one place", async () => {
    plant("src/alp/command/above.ts", "export const above = 1;\n");
    plant("src/alp/feed/importing.ts", 'import "../command/above.ts";\n');
    plant("src/agent/registering.ts", 'import "../alp/feed/importing.ts";\n');
    plant("src/agent/features.ts", 'import "../alp/feed/importing.ts";\n');

    const output = await outputOf(
      "depcruise",
      "--config",
      ".dependency-cruiser.cjs",
      "-T",
      "json",
      "src/alp",
      "src/agent",
    );
    const { violations } = (JSON.parse(output) as Violations).summary;

    expect(violations.map(({ from, rule }) => `${from}: ${rule.name}`).toSorted()).toEqual([
      "src/agent/registering.ts: alp-registered-once",
      "src/alp/feed/importing.ts: layer-8-alp",
    ]);
  }, 60_000);

  test("the page of the console is for browsers, also by way of others, and nothing else draws or imports it", async () => {
    plant("node_modules/preact/package.json", '{"name": "preact", "main": "index.js"}');
    plant("node_modules/preact/index.js", "export const h = 1;\n");
    plant("package.json", '{"dependencies": {"preact": "1.0.0"}}');
    plant("src/policy/reading.ts", 'import { readFileSync } from "node:fs";\nexport { readFileSync };\n');
    plant("src/flows/query.ts", 'import "../policy/reading.ts";\n');
    plant("src/console/page/part.tsx", 'import "preact";\nimport "../../flows/query.ts";\n');
    plant("src/console/drawing.ts", 'import "preact";\nimport "./page/part.tsx";\n');

    const words = ["--config", ".dependency-cruiser.cjs", "-T", "json", "src/console"];
    const { violations } = (JSON.parse(await outputOf("depcruise", ...words)) as Violations).summary;

    expect([...new Set(violations.map(({ from, rule }) => `${from}: ${rule.name}`))].toSorted()).toEqual([
      "src/console/drawing.ts: page-is-bundled",
      "src/console/drawing.ts: page-packages-in-the-page-only",
      "src/console/page/part.tsx: page-is-for-browsers",
    ]);
  }, 60_000);
});

describe("lint", () => {
  const lines = (count: number) => Array.from({ length: count }, (_, index) => `  call(${index});\n`).join("");
  const calls = "declare function call(value: number): void;\n";

  async function lint(path: string, text: string): Promise<readonly string[]> {
    plant(path, text);
    const output = await outputOf("biome", "lint", "--error-on-warnings", "--reporter=json", path);
    const { diagnostics } = JSON.parse(output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1)) as {
      readonly diagnostics: readonly { readonly category: string }[];
    };
    return diagnostics.map(({ category }) => category);
  }

  test("a promise that nobody awaits fails", async () => {
    const text = "async function write(): Promise<void> {}\n\nexport function run(): void {\n  write();\n}\n";

    expect(await lint("src/ip/floating.ts", text)).toEqual(["lint/nursery/noFloatingPromises"]);
    expect(await lint("src/ip/floating.ts", text.replace("  write()", "  void write()"))).toEqual([]);
  }, 60_000);

  test.each(["src/ip", "scripts", "sim", "bench", "test/support"])(
    "a function of 81 lines in %s fails",
    async (path) => {
      const text = (count: number) => `${calls}\nexport function run(): void {\n${lines(count)}}\n`;

      expect(await lint(`${path}/long.ts`, text(81))).toEqual(["lint/complexity/noExcessiveLinesPerFunction"]);
      expect(await lint(`${path}/long.ts`, text(80))).toEqual([]);
    },
    60_000,
  );

  test("the tests of one describe() may be longer", async () => {
    expect(await lint("src/ip/long.test.ts", `${calls}\n(() => {\n${lines(300)}})();\n`)).toEqual([]);
  }, 60_000);
});
