/** The built admin tool, interrupted by a signal while it waits for a datastore or for standard input. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const TOOL = builtProgram(identity.adminTool);
const LIMIT_MILLISECONDS = 1_000;
/** For tests that measure time: on an overloaded machine the first attempts may take longer. */
const ATTEMPTS = { retry: 3 };

const directory = temporaryDirectory("admin-stop");
afterAll(() => directory.remove());

function start(words: string, env: Readonly<Record<string, string>>) {
  return Bun.spawn([TOOL, ...words.split(" ")], { env, stdin: "pipe", stdout: "pipe", stderr: "pipe" });
}

type Running = ReturnType<typeof start>;

/** How it ended, and how long after this signal. */
async function stopBy(signal: NodeJS.Signals, running: Running) {
  const begin = performance.now();
  running.kill(signal);
  const code = await running.exited;
  const milliseconds = performance.now() - begin;
  const [stdout, stderr] = await Promise.all([running.stdout.text(), running.stderr.text()]);
  return { code, stdout, stderr, milliseconds };
}

/** Stops it while its write cannot be finished: after the first signal it says so and waits, after the second it ends. */
async function stopTwice(running: Running) {
  running.kill("SIGINT");
  const said = await running.stderr.getReader().read();
  const begin = performance.now();
  running.kill("SIGTERM");
  const code = await running.exited;
  return { code, said: new TextDecoder().decode(said.value), milliseconds: performance.now() - begin };
}

/** Until the process has its own handlers: before that, a signal simply ends it. */
async function untilCatching(running: Running): Promise<void> {
  const SIGINT_BIT = 1n << 1n;
  await pollUntil(() => {
    const [, caught = "0"] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${running.pid}/status`, "utf8")) ?? [];
    return (BigInt(`0x${caught}`) & SIGINT_BIT) !== 0n;
  }, "the handlers of signals");
}

/** A server that accepts connections and never replies; `asked` resolves at the first request. */
function listenSilently() {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => resolve() } });
  return { endpoint: `http://127.0.0.1:${server.port}`, asked, stop: () => server.stop(true) };
}

/** etcd's gateway with nothing in it: it replies to reads, and keeps writes waiting until `release()`. */
function serveReadsOnly() {
  const { promise: writing, resolve: begin } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const header = { revision: "5" };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.text();
      if (!body.includes("request_put")) {
        return Response.json({ header, succeeded: true, responses: [{ response_range: { header } }] });
      }
      begin();
      await released;
      return Response.json({ header, succeeded: true, responses: [{ response_put: { header } }] });
    },
  });
  return { endpoint: `http://127.0.0.1:${server.port}`, writing, release, stop: () => server.stop(true) };
}

const stoppedBy = (signal: string) => `error: Cannot finish: interrupted by ${signal}\n`;

describe("the interrupted admin tool", () => {
  test.each([
    ["get ippools", "SIGINT", 130],
    ["ipam check", "SIGINT", 130],
    ["datastore check -o json", "SIGTERM", 143],
    ["datastore init", "SIGTERM", 143],
  ] as const)(
    "while etcd is silent, ends within a second: %s, %s",
    async (words, signal, code) => {
      const etcd = listenSilently();
      try {
        const running = start(words, { ETCD_ENDPOINTS: etcd.endpoint });
        await etcd.asked;
        const { milliseconds, ...ended } = await stopBy(signal, running);

        expect(ended).toEqual({ code, stdout: "", stderr: stoppedBy(signal) });
        expect(milliseconds).toBeLessThan(LIMIT_MILLISECONDS);
      } finally {
        etcd.stop();
      }
    },
    ATTEMPTS,
  );

  test(
    "while it reads standard input, ends within a second",
    async () => {
      const running = start("apply -f -", { DATASTORE_TYPE: "embedded", DATASTORE_PATH: join(directory.path, "none") });
      await untilCatching(running);
      const { milliseconds, ...ended } = await stopBy("SIGINT", running);

      expect(ended).toEqual({ code: 130, stdout: "", stderr: stoppedBy("SIGINT") });
      expect(milliseconds).toBeLessThan(LIMIT_MILLISECONDS);
    },
    ATTEMPTS,
  );

  test("while it writes, finishes the write first", async () => {
    const etcd = serveReadsOnly();
    try {
      const running = start("datastore init", { ETCD_ENDPOINTS: etcd.endpoint });
      await etcd.writing;
      running.kill("SIGINT");
      etcd.release();
      const code = await running.exited;

      expect(await running.stdout.text()).toStartWith("Initialized the datastore");
      expect(code).toBe(0);
    } finally {
      etcd.stop();
    }
  });

  test(
    "while etcd does not respond to its write, says so, and ends at once on a second signal",
    async () => {
      const etcd = serveReadsOnly();
      try {
        const running = start("datastore init", { ETCD_ENDPOINTS: etcd.endpoint });
        await etcd.writing;
        const { code, said, milliseconds } = await stopTwice(running);

        expect(code).toBe(143);
        expect(said).toStartWith("note: a write is in progress");
        expect(milliseconds).toBeLessThan(LIMIT_MILLISECONDS);
      } finally {
        etcd.release();
        etcd.stop();
      }
    },
    ATTEMPTS,
  );
});
