/** The admin tool as its user meets it: the built executable, real files, real shells. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { BAD_INPUTS } from "../support/bad-inputs.ts";
import { MINIMAL } from "../support/network-config.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const TOOL = `dist/bin/${identity.adminTool}`;
const directory = temporaryDirectory("admin");
const folder = directory.path;
afterAll(() => directory.remove());

function run(args: readonly string[], stdin = ""): { code: number; stdout: string; stderr: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([TOOL, ...args], { env: {}, stdin: Buffer.from(stdin) });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await Bun.write(path, text);
  return path;
}

describe("the admin tool", () => {
  test("prints its version and its help", () => {
    expect(run(["version"])).toEqual({ code: 0, stdout: `${identity.adminTool} ${VERSION}\n`, stderr: "" });
    expect(run(["--help"])).toMatchObject({ code: 0, stderr: "" });
    expect(run([])).toMatchObject({ code: 2, stdout: "" });
  });

  test("checks a right config: exit code 0", async () => {
    const file = await fileOf("right.conf", JSON.stringify(MINIMAL));

    expect(run(["config", "check", file])).toEqual({ code: 0, stdout: `${file}: ok\n`, stderr: "" });
    expect(run(["config", "check", "-"], JSON.stringify(MINIMAL)).code).toBe(0);
  });

  test("checks every bad input: exit code 1, and the place of each", async () => {
    const files = await Promise.all(BAD_INPUTS.map(({ text }, index) => fileOf(`bad-${index}.conf`, text)));
    const { code, stdout, stderr } = run(["config", "check", ...files]);

    expect(code).toBe(1);
    expect(stderr).toBe("");
    expect(stdout).not.toContain("secret");
    for (const file of files) expect(stdout).toMatch(new RegExp(`${file}:\\d+:\\d+: error: `));
  });

  test("calls a wrong usage by exit code 2", () => {
    expect(run(["config", "check", "--efective", "x"])).toMatchObject({ code: 2, stdout: "" });
  });

  test.each([
    [">&-", 1],
    ["> /dev/full", 1],
    ["> /dev/null", 0],
    ["| :", 0],
  ])("whose stdout is %s ends with exit code %p", (redirection, code) => {
    const script = `set -o pipefail; "$0" completion bash ${redirection}`;

    expect(Bun.spawnSync(["bash", "-c", script, TOOL], { env: {} }).exitCode).toBe(code);
  });

  test("writes a long answer completely into a pipe", async () => {
    const pools = Array.from({ length: 20_000 }, (_, index) => `pool-${index}`);
    const file = await fileOf(
      "long.conf",
      JSON.stringify({ ...MINIMAL, ipam: { type: identity.ipamType, ipv4_pools: pools } }),
    );
    const { stdout } = run(["config", "check", "--effective", "-o", "json", file]);

    expect(JSON.parse(stdout).files[0].effective.ipam.ipv4_pools).toEqual(pools);
  });
});
