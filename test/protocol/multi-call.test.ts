/** One executable with several names: which program runs. */
import { afterAll, describe, expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { builtProgram, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const folder = temporaryDirectory("multi-call");
afterAll(() => folder.remove());

const MAIN = [process.execPath, join(import.meta.dir, "../../src/bin/main.ts")];
const OTHER_NAME = join(folder.path, "other-name");
symlinkSync(builtProgram(), OTHER_NAME);

describe("the executable", () => {
  test.each([
    ["by its name", [builtProgram(), "-v"]],
    ["by an unknown name, with the name as first argument", [OTHER_NAME, identity.product, "-v"]],
    ["by an unknown name alone", [OTHER_NAME, "-v"]],
    ["from source, with the name as first argument", [...MAIN, identity.product, "-v"]],
  ])("is the plugin when called %s", async (_, command) => {
    const run = await runPlugin(command);

    expect(run).toEqual({ exitCode: 0, stdout: `${identity.product} ${VERSION}\n`, stderr: "" });
  });

  test("ignores additional arguments", async () => {
    const run = await runPlugin(builtProgram(), { env: { CNI_COMMAND: "VERSION" }, args: ["stray", "--flag"] });

    expect(JSON.parse(run.stdout)).toHaveProperty("supportedVersions");
  });
});
