/** `make demo` as users run it: to its end on each datastore, interrupted, and without root permissions. */
import { describe, expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { program, root, testNeeding } from "../support/needs.ts";

const DEMO = [process.execPath, join(import.meta.dir, "../../scripts/demo.ts")];
const testDemo = testNeeding(hostProblem(), program("ping"));

async function runDemo(args: readonly string[] = [], before: readonly string[] = []) {
  const demo = Bun.spawn([...before, ...DEMO, ...args], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([
    new Response(demo.stdout).text(),
    new Response(demo.stderr).text(),
    demo.exited,
  ]);
  return { code, stderr, lastLine: stdout.trimEnd().split("\n").at(-1) ?? "", steps: stdout.match(/^ {2}✓/gm)?.length };
}

const DONE = {
  code: 0,
  stderr: "",
  lastLine: expect.stringMatching(/^Everything was cleaned up: no link, .* is left/),
};

describe("make demo", () => {
  testDemo("shows all its steps and cleans everything up", async () => {
    expect(await runDemo()).toMatchObject({ ...DONE, steps: 22 });
  });

  testNeeding(hostProblem(), hasEtcd ? undefined : "needs the program etcd")("does the same on etcd", async () => {
    expect(await runDemo(["--datastore", "etcd"])).toMatchObject({ ...DONE, steps: 22 });
  });

  testNeeding(hostProblem(), program("podman"))(
    "does the same with network namespaces if podman is missing",
    async () => {
      const hide = `mount --bind /dev/null ${Bun.which("podman")} && exec "$@"`;
      expect(await runDemo([], ["unshare", "--mount", "sh", "-c", hide, "demo"])).toMatchObject({ ...DONE, steps: 22 });
    },
  );

  testDemo("ends on Ctrl-C, and removes its host", async () => {
    const demo = Bun.spawn(DEMO, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const reader = demo.stdout.getReader();
    const decoder = new TextDecoder();
    let text = "";
    while (!text.includes("✓ Private host")) text += decoder.decode((await reader.read()).value);
    const host = childrenOf(demo.pid);
    expect(host).not.toEqual([]);
    demo.kill("SIGINT");
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value);

    expect(await demo.exited).toBe(130);
    expect(text).toEndWith("Interrupted; the private host and everything in it were removed\n");
    expect(host.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
  });

  testDemo("shows the console of a host with live traffic, until Ctrl-C", async () => {
    // It would not end by itself.
    await using demo = Bun.spawn([...DEMO, "--console"], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const reader = demo.stdout.getReader();
    const decoder = new TextDecoder();
    let text = "";
    while (!text.includes("Ctrl-C ends")) text += decoder.decode((await reader.read()).value);
    const [, origin = "", token] = /(http:\/\/127\.0\.0\.1:\d+)\/#token=(\S+)/.exec(text) ?? [];
    const login = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) };
    const session = await fetch(`${origin}/api/login`, login);
    expect(await session.json()).toMatchObject({ mode: "host", writable: true });
    // The address logs in once; the next one is printed when that session has ended.
    expect((await fetch(`${origin}/api/login`, login)).status).toBe(401);
    demo.kill("SIGINT");
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value);

    expect(await demo.exited).toBe(130);
    expect(text).toEndWith("Interrupted; the private host and everything in it were removed\n");
  });

  testNeeding(root, program("setpriv"))("tells a user who is not root what is missing", async () => {
    // May read everything: the clone may be in a directory that only root may enter.
    const reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"];
    const nobody = ["setpriv", "--reuid=65534", "--clear-groups", ...reads, "--"];
    const { exitCode, stderr } = Bun.spawnSync([...nobody, ...DEMO], { stdin: "ignore" });

    expect(exitCode).toBe(1);
    expect(stderr.toString()).toContain("root");
  });

  testDemo("refuses an unknown datastore", async () => {
    expect(await runDemo(["--datastore", "consul"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("etcd"),
    });
  });
});

function childrenOf(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
}
