import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Reply } from "../../cni/reply.ts";
import { PluginError } from "../../errors.ts";
import { type CallServer, serveCalls } from "./call-server.ts";
import { decodeFrame, encodeFrame } from "./frame.ts";
import { encodeCall, type HandedCall } from "./handed-call.ts";

const GREETING = "1.2.3 here\n";
const CALL: CallText = { program: "plugin", environment: { CNI_COMMAND: "ADD" }, stdin: "{}" };
const folder = mkdtempSync(join(tmpdir(), "vt-calls-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface CallText {
  readonly program: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly stdin: string;
}

type Service = (call: HandedCall, signal: AbortSignal) => Promise<Reply>;

/** Echoes the call. */
const echo: Service = async ({ program, environment, stdin }) => ({
  exitCode: 7,
  stdout: `${program} ${JSON.stringify(environment)} ${new TextDecoder().decode(stdin)}`,
  stderr: "a log\n",
});

/** Replies when it is aborted, and records the reason. */
function stoppable() {
  const begun = Promise.withResolvers<void>();
  const reason = Promise.withResolvers<unknown>();
  const serve: Service = async (_, signal) => {
    begun.resolve();
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    reason.resolve(signal.reason);
    return { exitCode: 1, stdout: "undone", stderr: "" };
  };
  return { serve, begun: begun.promise, reason: reason.promise };
}

/** Replies when the test says so. */
function gated() {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const serve: Service = async () => {
    begun.resolve();
    await gate.promise;
    return { exitCode: 0, stdout: "done", stderr: "" };
  };
  return { serve, begun: begun.promise, open: () => gate.resolve() };
}

class Caller {
  readonly #socket: Socket;
  readonly #ended = Promise.withResolvers<void>();
  #received: Buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.#socket = connect({ path, allowHalfOpen: true });
    this.#socket.on("data", (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => this.#ended.resolve());
    this.#socket.on("end", () => this.#ended.resolve());
  }

  async greeted(): Promise<string> {
    while (!this.#received.includes("\n")) await Bun.sleep(1);
    return this.#received.toString("utf8", 0, this.#received.indexOf("\n") + 1);
  }

  hand({ program, environment, stdin }: CallText = CALL): void {
    this.send(encodeCall({ program, environment, stdin: new TextEncoder().encode(stdin) }));
  }

  send(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  endSending(): void {
    this.#socket.end();
  }

  goAway(): void {
    this.#socket.destroy();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** `undefined` if the server closed the connection without one. */
  async reply(): Promise<Reply | undefined> {
    await this.#ended.promise;
    this.#socket.destroy();
    const frame = decodeFrame(this.#received.subarray(GREETING.length));
    if (frame === undefined) return undefined;
    const [stderr = "", stdout = ""] = [frame.head, frame.body].map((bytes) => new TextDecoder().decode(bytes));
    return { exitCode: frame.number, stderr, stdout };
  }
}

describe("serveCalls()", () => {
  let path: string;
  let server: CallServer;
  let service: Service;
  let afterwards: () => void;
  let sockets = 0;
  const call = () => new Caller(path);

  beforeEach(() => {
    sockets += 1;
    path = join(folder, `${sockets}.sock`);
    service = echo;
    afterwards = () => {};
    server = serveCalls({
      path,
      greeting: Buffer.from(GREETING),
      mostConnections: 100,
      accepts: ({ environment }) => environment["CNI_COMMAND"] !== "REFUSED",
      serve: async (handed, signal) => ({ reply: await service(handed, signal), afterwards: () => afterwards() }),
    });
  });
  afterEach(() => server.stop());

  test("greets, and replies to the call with its program, environment and config", async () => {
    const caller = call();
    expect(await caller.greeted()).toBe(GREETING);
    caller.hand({ program: "ipam", environment: { CNI_ARGS: "K=ü", EMPTY: "" }, stdin: '{"name":"ñ"}' });

    expect(await caller.reply()).toEqual({
      exitCode: 7,
      stdout: 'ipam {"CNI_ARGS":"K=ü","EMPTY":""} {"name":"ñ"}',
      stderr: "a log\n",
    });
  });

  test("runs the work after a reply once", async () => {
    let times = 0;
    afterwards = () => {
      times += 1;
    };
    const caller = call();
    caller.hand({ program: "ipam", environment: {}, stdin: "{}" });

    expect((await caller.reply())?.exitCode).toBe(7);
    expect(times).toBe(1);
  });

  test("closes the connection of a call that it does not accept, without a reply", async () => {
    const caller = call();
    await caller.greeted();
    caller.hand({ ...CALL, environment: { CNI_COMMAND: "REFUSED" } });

    expect(await caller.reply()).toBeUndefined();
  });

  test("accepts a call that arrives byte by byte", async () => {
    const caller = call();
    await caller.greeted();
    for (const byte of encodeCall({ program: "plugin", environment: {}, stdin: Uint8Array.of(65, 66) })) {
      caller.send(Uint8Array.of(byte));
      await Bun.sleep(0);
    }

    expect((await caller.reply())?.stdout).toBe("plugin {} AB");
  });

  test("serves many calls at once, each with its own reply", async () => {
    const callers = Array.from({ length: 60 }, call);
    for (const [index, caller] of callers.entries()) caller.hand({ ...CALL, stdin: String(index) });
    const replies = await Promise.all(callers.map((caller) => caller.reply()));

    expect(replies.map((reply) => reply?.stdout.split(" ").at(-1))).toEqual(callers.map((_, index) => String(index)));
  });

  test("sends a reply of several megabytes to a slow reader, while others are served", async () => {
    const large = "x".repeat(6_000_000);
    service = async (handed, signal) =>
      handed.program === "ipam" ? echo(handed, signal) : { exitCode: 0, stdout: large, stderr: "" };
    const slow = call();
    await slow.greeted();
    slow.pause();
    slow.hand();
    const quick = call();
    quick.hand({ ...CALL, program: "ipam" });

    expect((await quick.reply())?.exitCode).toBe(7);
    slow.resume();
    expect((await slow.reply())?.stdout).toBe(large);
  });

  test("aborts the work of a caller that shuts down sending, and still sends it the reply", async () => {
    const { serve, begun, reason } = stoppable();
    service = serve;
    const caller = call();
    caller.hand();
    await begun;
    caller.endSending();

    expect(await reason).toMatchObject({ kind: "interrupted" });
    expect(await reason).toBeInstanceOf(PluginError);
    expect(await caller.reply()).toMatchObject({ exitCode: 1, stdout: "undone" });
  });

  test("aborts the work of a caller that disconnects, and continues serving", async () => {
    const { serve, begun, reason } = stoppable();
    service = serve;
    const caller = call();
    caller.hand();
    await begun;
    caller.goAway();

    expect(await reason).toMatchObject({ kind: "interrupted" });
    service = echo;
    const next = call();
    next.hand();
    expect((await next.reply())?.exitCode).toBe(7);
  });

  test("serves callers beside any number of others that hand nothing over", async () => {
    const silent = Array.from({ length: 150 }, call);
    await Promise.all(silent.slice(100).map((each) => each.greeted()));
    const next = call();
    next.hand();

    expect((await next.reply())?.exitCode).toBe(7);
    expect(await silent[0]?.reply()).toBeUndefined();
  });

  test("drops a caller that disconnects without a call", async () => {
    const silent = call();
    await silent.greeted();
    silent.endSending();

    expect(await silent.reply()).toBeUndefined();
  });

  test.each([
    ["a head that is not JSON", "{{"],
    ["a head that is not an object", "null"],
  ])("closes the connection of a caller that sends %s, and continues serving", async (_, head) => {
    const confused = call();
    await confused.greeted();
    confused.send(encodeFrame({ number: 0, head: Buffer.from(head), body: new Uint8Array(0) }));
    expect(await confused.reply()).toBeUndefined();

    const next = call();
    next.hand();
    expect((await next.reply())?.exitCode).toBe(7);
  });

  describe("stop()", () => {
    test("waits for the calls in progress, which get their replies", async () => {
      const { serve, begun, open } = gated();
      service = serve;
      const caller = call();
      caller.hand();
      await begun;
      let hasStopped = false;
      const stopped = server.stop().then(() => {
        hasStopped = true;
      });
      await Bun.sleep(20);

      expect(hasStopped).toBe(false);
      open();
      expect((await caller.reply())?.stdout).toBe("done");
      await stopped;
    });

    test("waits until a slow reader has its reply", async () => {
      const large = "x".repeat(6_000_000);
      const { serve, begun, open } = gated();
      service = async (handed, signal) => ({ ...(await serve(handed, signal)), stdout: large });
      const slow = call();
      await slow.greeted();
      slow.hand();
      await begun;
      slow.pause();
      let hasStopped = false;
      const stopped = server.stop().then(() => {
        hasStopped = true;
      });
      open();
      await Bun.sleep(20);

      expect(hasStopped).toBe(false);
      slow.resume();
      expect((await slow.reply())?.stdout).toBe(large);
      await stopped;
    });

    test("does not wait for a caller that never reads its reply", async () => {
      service = async () => ({ exitCode: 0, stdout: "x".repeat(6_000_000), stderr: "" });
      const deaf = call();
      await deaf.greeted();
      deaf.pause();
      deaf.hand();
      const begun = performance.now();
      await Bun.sleep(20);
      await server.stop();

      expect(performance.now() - begun).toBeLessThan(10_000);
      deaf.goAway();
    });

    test("accepts no new calls: neither on a new connection nor on one that was greeted before", async () => {
      let served = 0;
      service = async () => {
        served += 1;
        return { exitCode: 0, stdout: "", stderr: "" };
      };
      const greeted = call();
      await greeted.greeted();
      await server.stop();
      greeted.hand();
      const newcomer = call();
      newcomer.hand();

      expect([await greeted.reply(), await newcomer.reply()]).toEqual([undefined, undefined]);
      expect(served).toBe(0);
    });
  });
});
