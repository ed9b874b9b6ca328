/** The admin tool as users run it: the built executable, real files, real shells. */
import { afterAll, describe, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { BAD_INPUTS } from "../support/bad-inputs.ts";
import { MINIMAL } from "../support/network-config.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const TOOL = `dist/bin/${identity.adminTool}`;
const directory = temporaryDirectory("admin");
const folder = directory.path;
afterAll(() => directory.remove());

function run(args: readonly string[], stdin = ""): { code: number; stdout: string; stderr: string } {
  // The plugins of this build are installed, whatever else the host has.
  const env = { CNI_PATH: resolve("dist/bin") };
  const { exitCode, stdout, stderr } = Bun.spawnSync([TOOL, ...args], { env, stdin: Buffer.from(stdin) });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await Bun.write(path, text);
  return path;
}

describe("the admin tool", () => {
  test("prints its version and its help", () => {
    expect(run(["--version"])).toEqual({ code: 0, stdout: `${identity.adminTool} ${VERSION}\n`, stderr: "" });
    const path = join(folder, "none.sqlite");
    const { code, stdout } = run(["version", "--datastore-type", "embedded", "--datastore-path", path]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`Client Version:     ${VERSION}\nCluster Version:    unknown (`),
    ]);
    expect(run(["--help"])).toMatchObject({ code: 0, stderr: "" });
    expect(run([])).toMatchObject({ code: 2, stdout: "" });
  });

  test("accepts a valid config: exit code 0", async () => {
    const file = await fileOf("right.conf", JSON.stringify(MINIMAL));

    expect(run(["config", "check", file])).toEqual({ code: 0, stdout: `${file}: ok\n`, stderr: "" });
    const logged = { ...MINIMAL, log_file_path: join(folder, "no/such/directory/cni.log") };
    expect(run(["config", "check", "-"], JSON.stringify(logged))).toEqual({
      code: 0,
      stdout: "stdin: ok\n",
      stderr: "",
    });
    expect(run(["config", "check", "-"], JSON.stringify({ ...MINIMAL, log_file_path: folder })).stdout).toContain(
      "a directory",
    );
  });

  test("reports every invalid input with its position: exit code 1", async () => {
    const files = await Promise.all(BAD_INPUTS.map(({ text }, index) => fileOf(`bad-${index}.conf`, text)));
    const { code, stdout, stderr } = run(["config", "check", ...files]);

    expect(code).toBe(1);
    expect(stderr).toBe("");
    expect(stdout).not.toContain("secret");
    for (const file of files) expect(stdout).toMatch(new RegExp(`${file}:\\d+:\\d+: error: `));
  });

  test("refuses what the runtimes and the plugin directories of this host do not have", async () => {
    const plugins = [{ ...MINIMAL, ipam: { type: "no-such-ipam" } }, { type: "no-such-plugin" }];
    const file = await fileOf("host.conflist", JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins }));
    const { code, stdout } = run(["config", "check", file]);

    expect(code).toBe(1);
    expect(stdout).toContain('error: plugins[0]: "no-such-ipam" is in no plugin directory (');
    expect(stdout).toContain('warning: plugins[1]: "no-such-plugin" is in no plugin directory (');
    expect(run(["config", "check", "--skip-files", file]).code).toBe(0);
  });

  test("names a file called passwd in its error, and the line of a mistake in YAML", async () => {
    const path = await fileOf("passwd", "root:x:0:0\n".repeat(100));
    const { stderr } = run(["get", "pools", "--datastore-type", "embedded", "--datastore-path", path]);
    expect(stderr).toContain(`${path}": it is not a SQLite database`);

    const pool = `apiVersion: ${API_VERSION}\nkind: IPPool\nmetadata: {name: a}\nspec:\n  cidr: 10.0.0.0/33\n`;
    expect(run(["validate", "-f", "-"], pool).stderr).toContain('stdin:5: spec.cidr: "10.0.0.0/33"');
  });

  test("reports wrong usage: exit code 2", () => {
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

  test.each([
    ["| :", 0],
    ["| head -1", 0],
    [">/dev/full", 1],
    ["2>&1 >/dev/null | :", 1],
    ["2>&-", 1],
    ["2>/dev/full", 1],
  ])("does all of its work when its output goes %p, and ends with exit code %p", async (redirection, code) => {
    const nodes = Array.from({ length: 200 }, (_, index) => ({
      apiVersion: API_VERSION,
      kind: "Node",
      metadata: { name: `n${index}` },
    }));
    const file = await fileOf("many.json", JSON.stringify({ kind: "List", items: nodes }));
    const env = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: join(folder, `${Bun.hash(redirection)}.db`) };
    const work = (script: string) => Bun.spawnSync(["bash", "-c", `set -o pipefail; ${script}`, TOOL, file], { env });
    // Creating an existing resource writes to stderr.
    if (redirection.includes("2>")) work(`echo '${JSON.stringify(nodes[0])}' | "$0" create -f -`);
    const { exitCode } = work(`"$0" create -f "$1" ${redirection}`);

    expect(exitCode).toBe(code);
    expect(work('"$0" get nodes -o name').stdout.toString().trim().split("\n")).toHaveLength(nodes.length);
  });

  test.each(["2>/dev/full", "2>&1 >/dev/null | :"])(
    "ends with its own exit code when a note goes %p",
    (redirection) => {
      const env = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: join(folder, "none.db") };
      const script = `set -o pipefail; "$0" datastore init >/dev/null; "$0" get pools ${redirection}`;

      expect(Bun.spawnSync(["bash", "-c", script, TOOL], { env }).exitCode).toBe(0);
    },
  );

  test("writes a long output completely into a pipe", async () => {
    const pools = Array.from({ length: 20_000 }, (_, index) => `pool-${index}`);
    const file = await fileOf(
      "long.conf",
      JSON.stringify({ ...MINIMAL, ipam: { type: identity.ipamType, ipv4_pools: pools } }),
    );
    const { stdout } = run(["config", "check", "--effective", "-o", "json", file]);

    expect(JSON.parse(stdout).files[0].effective.ipam.ipv4_pools).toEqual(pools);
  });
});
