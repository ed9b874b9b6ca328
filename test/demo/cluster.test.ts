/** `make demo CLUSTER=1` as users run it: to its end on each datastore, interrupted and killed, and without root permissions. */
import { describe, expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bareClusterProblem } from "../support/bare-cluster.ts";
import { leftCgroups } from "../support/cgroups.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";

const DEMO = [process.execPath, join(import.meta.dir, "../../scripts/demo.ts"), "--cluster"];
const problem = bareClusterProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testDemo = testNeeding(problem);
const LIMIT = 240_000;

const startDemo = (...args: readonly string[]) =>
  Bun.spawn([...DEMO, ...args], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });

describe("make demo CLUSTER=1", () => {
  for (const datastore of ["kubernetes", "etcd"]) {
    testDemo(
      `shows all its steps on the datastore ${datastore} within two minutes, and cleans everything up`,
      async () => {
        const started = performance.now();
        const demo = startDemo("--datastore", datastore);
        const { children, rest } = await runUntil(demo, "✓ An Installation");
        const [text, stderr, code] = await Promise.all([rest(), new Response(demo.stderr).text(), demo.exited]);

        expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
        expect(text.trimEnd().split("\n").at(-1)).toMatch(/^Everything was cleaned up: no host, .* is left/);
        expect(performance.now() - started).toBeLessThan(120_000);
        await expectNothingLeft(children);
      },
      LIMIT,
    );
  }

  testDemo(
    "ends on Ctrl-C, and removes the cluster",
    async () => {
      const demo = startDemo();
      const { children, rest } = await runUntil(demo, "✓ Node 1");
      demo.kill("SIGINT");
      const text = await rest();

      expect(await demo.exited).toBe(130);
      expect(text).toEndWith("Interrupted; the cluster and everything in it were removed\n");
      await expectNothingLeft(children);
    },
    LIMIT,
  );

  testDemo(
    "shows the console of a cluster with live traffic, until Ctrl-C",
    async () => {
      await using demo = startDemo("--console");
      const { children, shown, rest } = await runUntil(demo, "Ctrl-C ends");
      const [origin] = /https:\/\/localhost:\d+/.exec(shown) ?? [];
      const [token] = /^ {2}(ey\S+)$/m.exec(shown)?.slice(1) ?? [];
      const login = await fetch(`${origin}/api/login`, {
        ...{ method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token }) },
        tls: { rejectUnauthorized: false },
      });
      expect(await login.json()).toMatchObject({ mode: "cluster", writable: true });
      demo.kill("SIGINT");
      await rest();

      expect(await demo.exited).toBe(130);
      await expectNothingLeft(children);
    },
    LIMIT,
  );

  testDemo(
    "removes the cluster even if it is killed, and if only the part that does the work is",
    async () => {
      for (const victim of ["demo", "worker"]) {
        const demo = startDemo();
        const { children } = await runUntil(demo, "✓ Node 1");
        const [worker = ""] = childrenOf(demo.pid);
        process.kill(victim === "demo" ? demo.pid : Number(worker), "SIGKILL");
        await demo.exited;
        await expectNothingLeft(children);
      }
    },
    LIMIT,
  );

  testNeeding(root, program("setpriv"))("tells a user who is not root what is missing", () => {
    // May read everything: the clone may be in a directory that only root may enter.
    const reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"];
    const nobody = ["setpriv", "--reuid=65534", "--clear-groups", ...reads, "--"];
    const { exitCode, stderr } = Bun.spawnSync([...nobody, ...DEMO], { stdin: "ignore" });

    expect(exitCode).toBe(1);
    expect(stderr.toString()).toContain("root");
  });
});

interface Demo {
  readonly pid: number;
  readonly stdout: ReadableStream<Uint8Array>;
}

/** Waits until it has printed the text; returns its processes then, and how to read the rest of its output. */
async function runUntil(demo: Demo, text: string) {
  const reader = demo.stdout.getReader();
  const decoder = new TextDecoder();
  let printed = "";
  while (!printed.includes(text)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The demo has ended:\n${printed}`);
    printed += decoder.decode(value, { stream: true });
  }
  const rest = async () => {
    let more = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) more += decoder.decode(part.value);
    return more;
  };
  return { children: descendantsOf(demo.pid), shown: printed, rest };
}

function descendantsOf(pid: number): readonly string[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(Number(child))]);
}

function childrenOf(pid: number): readonly string[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, "utf8").split(" ").filter(Boolean) : [];
}

async function expectNothingLeft(processes: readonly string[]): Promise<void> {
  const [worker = ""] = processes;
  const left = () => [
    ...processes.filter((pid) => existsSync(`/proc/${pid}`)),
    ...leftCgroups().filter((name) => name.startsWith(`vt-${worker}in`)),
    ...readdirSync(tmpdir()).filter((name) => name.includes(`-${worker}in`)),
  ];
  await pollUntil(() => left().length === 0, "everything to be removed").catch(() => expect(left()).toEqual([]));
}
