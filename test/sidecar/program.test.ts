/** The sidecar as a program: its command line, its user, its end. */
import { describe, expect, test } from "bun:test";
import { chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { firstUpdate, startFakeAgent, WELCOME } from "../support/fake-agent.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const PROGRAM = join(import.meta.dir, "../../dist/bin", identity.sidecar);
const USER = 65_532;

async function run(...args: readonly string[]) {
  const child = Bun.spawn([PROGRAM, ...args], { stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { output, errors, code };
}

describe("the program of the sidecar", () => {
  test("prints its version and its options, and refuses wrong arguments with status 2", async () => {
    expect(await run("--version")).toMatchObject({ output: `${identity.sidecar} ${VERSION}\n`, code: 0 });
    expect((await run("--help")).output).toContain("--trust-domain=NAME");
    const wrong = await run("--health-port=http");
    expect(wrong.code).toBe(2);
    const problem = 'Invalid value "http" of option "--health-port": expected a port, or 0 for none';
    expect(wrong.errors).toBe(`${identity.sidecar}: ${problem}\nTry "${identity.sidecar} --help".\n`);
  });

  test("ends with status 1 and the reason if it cannot listen", async () => {
    const directory = temporaryDirectory("sidecarprogram");
    const taken = Bun.serve({ hostname: "::", port: 0, development: false, fetch: () => new Response("other") });
    try {
      const [file, missing] = [join(directory.path, "file"), join(directory.path, "none")];
      writeFileSync(file, "");
      const outcomes = await Promise.all([
        run(`--listen=${file}`, "--health-port=0"),
        run(`--listen=${missing}/x.sock`, "--health-port=0"),
        run(`--listen=${missing}/x.sock`, `--health-port=${taken.port}`),
      ]);

      const atPort = `Cannot listen at :${taken.port}: the port is in use.`;
      expect(outcomes.map(({ code, errors }) => [code, errors])).toEqual(
        [
          `Cannot listen at "${file}": there is a file that is not a socket; remove it`,
          `Cannot listen at "${missing}/x.sock": the directory "${missing}" does not exist: is the volume mounted?`,
          `${atPort} Choose another port with --health-port=PORT; 0 for none`,
        ].map((reason) => [1, `${identity.sidecar}: ${reason}\n`]),
      );
    } finally {
      await taken.stop(true);
      directory.remove();
    }
  });

  testNeeding(root, program("setpriv"))("needs no privileges, and no other files than its socket", async () => {
    const directory = temporaryDirectory("sidecarprogram");
    const [path = "", listen = "", former = ""] = ["agent", "authorization", "former"].map((name) =>
      join(directory.path, `${name}.sock`),
    );
    chmodSync(directory.path, 0o777);
    using agent = startFakeAgent(path, [WELCOME, firstUpdate()]);
    chmodSync(path, 0o777);
    const privileges = ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--clear-groups"];
    const user = ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, ...privileges];
    const command = [
      ...user,
      PROGRAM,
      `--agent=${path}`,
      `--listen=${listen}`,
      `--also-listen=${former}`,
      "--health-port=0",
    ];
    const child = Bun.spawn(command, { env: {}, stderr: "pipe" });
    try {
      await agent.applied(1);
      for (const socket of [listen, former]) {
        expect(statSync(socket)).toMatchObject({ uid: USER });
        expect(statSync(socket).mode & 0o777).toBe(0o666);
      }
    } finally {
      child.kill("SIGKILL");
      await child.exited;
      directory.remove();
    }
  });
});
