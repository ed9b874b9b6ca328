/** Delegates seen from outside the process that runs them; with a real one if Debian's plugins are installed. */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { ATTACHMENT_ENV, cniErrorOfRun, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const SPY = [process.execPath, join(import.meta.dir, "spy.process.ts")];
const CONFIG = { cniVersion: "1.0.0", name: "net", type: "spy" };
const folder = temporaryDirectory("delegation");
afterAll(() => folder.remove());

function script(name: string, body: string): void {
  const path = join(folder.path, name);
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
}

function env(type: string, path: string = folder.path) {
  const own = { CNI_COMMAND: "ADD", CNI_PATH: path, SPY: "delegates", SPY_TYPE: type, PATH: "/usr/bin:/bin" };
  return { ...ATTACHMENT_ENV, ...own };
}

describe("a delegate", () => {
  test("writes to our stderr, and its result is returned as ours", async () => {
    script("talking", `echo "a word from the delegate" >&2; echo '{"ips":[{"address":"10.0.0.2/24"}]}'`);
    const run = await runPlugin(SPY, { env: env("talking"), stdin: CONFIG });

    expect(run.exitCode).toBe(0);
    expect(run.stderr).toContain("a word from the delegate");
    expect(JSON.parse(run.stdout)).toEqual({ cniVersion: "1.0.0", ips: [{ address: "10.0.0.2/24" }] });
  });

  test("that fails makes the call fail with its code", async () => {
    script("failing", `echo '{"code":742,"msg":"no address","details":"pool full"}'; exit 1`);
    const run = await runPlugin(SPY, { env: env("failing"), stdin: CONFIG });

    expect(cniErrorOfRun(run)).toMatchObject({ code: 742, msg: "no address", details: "pool full" });
  });

  test.each([
    ["../failing", 7],
    ["absent", 108],
  ])("with type %p is refused with code %p", async (type, code) => {
    expect(cniErrorOfRun(await runPlugin(SPY, { env: env(type), stdin: CONFIG })).code).toBe(code);
  });

  test("is stopped together with us", async () => {
    const note = join(folder.path, "pid");
    script("endless", `echo $$ > ${note}.new; mv ${note}.new ${note}; exec sleep 60`);
    const child = Bun.spawn([...SPY], {
      env: env("endless"),
      stdin: Buffer.from(JSON.stringify(CONFIG)),
      stdout: "pipe",
      stderr: "pipe",
    });
    await pollUntil(() => existsSync(note), "the delegate to run");
    child.kill("SIGTERM");
    const [stdout, stderr, exitCode] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);

    expect(cniErrorOfRun({ stdout, stderr, exitCode }).code).toBe(111);
    await pollUntil(() => !existsSync(`/proc/${Number(readFileSync(note, "utf8"))}`), "the delegate to end");
  });

  for (const cniVersion of ["0.1.0", "0.2.0", "0.3.1", "0.4.0", "1.0.0"]) {
    testNeeding(program("/usr/lib/cni/host-local"))(`may be Debian's host-local at ${cniVersion}`, async () => {
      const dataDir = join(folder.path, `data-${cniVersion}`);
      const ipam = { type: "host-local", dataDir, subnet: "10.9.0.0/24", routes: [{ dst: "0.0.0.0/0" }] };
      const run = await runPlugin(SPY, {
        env: env("host-local", "/usr/lib/cni"),
        stdin: { ...CONFIG, cniVersion, ipam },
      });
      const result = JSON.parse(run.stdout);

      expect(result.cniVersion).toBe(cniVersion);
      expect(cniVersion < "0.3.0" ? result.ip4.ip : result.ips[0].address).toBe("10.9.0.2/24");
      expect(cniVersion < "0.3.0" ? result.ip4.routes : result.routes).toEqual([{ dst: "0.0.0.0/0" }]);
    });
  }
});
