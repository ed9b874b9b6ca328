/** The commands for resources as users run them: the built executable on an embedded datastore. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const TOOL = `dist/bin/${identity.adminTool}`;
const directory = temporaryDirectory("admin-resources");
const folder = directory.path;
afterAll(() => directory.remove());

const ENVIRONMENT = {
  DATASTORE_TYPE: "embedded",
  DATASTORE_PATH: join(folder, "store.db"),
  PATH: process.env["PATH"] ?? "",
};

function run(args: readonly string[], stdin = "") {
  const { exitCode, stdout, stderr } = Bun.spawnSync([TOOL, ...args], { env: ENVIRONMENT, stdin: Buffer.from(stdin) });
  return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

function poolText(name: string, cidr: string, spec: object = {}): string {
  return JSON.stringify({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec: { cidr, ...spec } });
}

beforeAll(() => {
  const created = run(["apply", "-f", "-"], poolText("blue", "10.0.0.0/24"));
  expect(created).toEqual({ code: 0, stdout: "ippool/blue created\n", stderr: "" });
});

describe("get", () => {
  test("accepts global options before the command", () => {
    expect(JSON.parse(run(["-o", "json", "get", "pool", "blue"]).stdout)).toMatchObject({
      spec: { cidr: "10.0.0.0/24" },
    });
  });

  test("prints templates", () => {
    expect(run(["get", "pools", "-o", 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}']).stdout).toBe("blue\n");
  });
});

describe("get -w", () => {
  /** Reads from the process until its output contains the text. */
  async function untilPrinted(reader: { read(): Promise<{ value?: Uint8Array | undefined }> }, text: string) {
    let output = "";
    while (!output.includes(text)) output += new TextDecoder().decode((await reader.read()).value);
    return output;
  }

  test("prints changes of other processes, and ends with Ctrl-C", async () => {
    const watching = Bun.spawn([TOOL, "get", "pools", "-w", "-o", "name"], {
      env: ENVIRONMENT,
      stdout: "pipe",
      stderr: "pipe",
    });
    const reader = watching.stdout.getReader();
    await untilPrinted(reader, "ippool/blue");
    run(["apply", "-f", "-"], poolText("watched", "10.0.9.0/24"));
    await untilPrinted(reader, "ippool/watched");
    watching.kill("SIGINT");

    expect(await watching.exited).toBe(130);
    expect(await watching.stderr.text()).toBe("");
    run(["delete", "pool", "watched"]);
  });

  test("ends when nobody reads its output any more", () => {
    // As long as either of the two runs: it notices that nobody reads when it prints the next change.
    const change = `for i in {1..100}; do "$0" label pool blue n=$i --overwrite >/dev/null; [ -n "$(jobs -r)" ] || break; done`;
    const script = `set -o pipefail; "$0" get pools -w --no-headers | { read -r line; echo "$line"; } & ${change}; wait $!`;
    const { exitCode, stdout } = Bun.spawnSync(["bash", "-c", script, TOOL], { env: ENVIRONMENT });

    expect(stdout.toString()).toStartWith("blue");
    expect(exitCode).toBe(0);
  });
});

describe("apply", () => {
  test("writes nothing if one document cannot be applied, and nothing with --dry-run", () => {
    const documents = [poolText("green", "10.0.2.0/24"), poolText("overlapping", "10.0.0.128/25")].join("\n---\n");

    expect(run(["apply", "-f", "-"], documents)).toMatchObject({ code: 1, stdout: "ippool/green not applied\n" });
    expect(run(["apply", "-f", "-", "--dry-run"], poolText("green", "10.0.2.0/24")).stdout).toBe(
      "ippool/green created (dry run)\n",
    );
    expect(run(["get", "pools", "-o", "name"]).stdout).toBe("ippool/blue\n");
  });

  test("does not create a datastore in a dry run", () => {
    const missing = join(folder, "missing.db");
    const { code, stderr } = run(
      ["apply", "-f", "-", "--dry-run", "--datastore-path", missing],
      poolText("a", "10.0.0.0/8"),
    );

    expect(code).toBe(1);
    expect(stderr).toContain("does not exist");
    expect(existsSync(missing)).toBe(false);
  });
});

describe("diff", () => {
  test("ends with 1 if there are differences, and with 0 if not", () => {
    expect(run(["diff", "-f", "-"], poolText("blue", "10.0.0.0/24", { disabled: true }))).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("+  disabled: true\n"),
    });
    expect(run(["diff", "-f", "-"], poolText("blue", "10.0.0.0/24"))).toMatchObject({ code: 0, stdout: "" });
  });
});

describe("edit", () => {
  function edit(editor: string) {
    const env = { ...ENVIRONMENT, EDITOR: editor, TMPDIR: folder };
    const { exitCode, stdout, stderr } = Bun.spawnSync([TOOL, "edit", "pool", "blue"], { env });
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  }

  test("writes what the editor made of the text, and removes the file", () => {
    expect(edit("sed -i 's/natOutgoing: false/natOutgoing: true/'")).toEqual({
      code: 0,
      stdout: "ippool/blue edited\n",
      stderr: "",
    });
    expect(run(["get", "pool", "blue", "-o", "jsonpath={.spec.natOutgoing}"]).stdout).toBe("true");
    expect(readdirSync(folder).filter((name) => name.includes("-edit-"))).toEqual([]);
  });

  test("changes nothing if the editor fails, or is interrupted with Ctrl-C and goes on", () => {
    expect(edit("false")).toMatchObject({ code: 1, stderr: expect.stringContaining("exit code 1") });
    expect(edit("kill -INT $PPID; true")).toMatchObject({ code: 0, stdout: "ippool/blue unchanged\n" });
  });

  test("keeps the text if it cannot be written", () => {
    const { code, stderr } = edit("sed -i 's/blockSize: 26/blockSize: 27/'");
    const [, path = ""] = /the edited text is in ([^)]*)\)/.exec(stderr) ?? [];

    expect(code).toBe(1);
    expect(readFileSync(path, "utf8")).toContain("blockSize: 27");
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });
});
