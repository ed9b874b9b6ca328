import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeStream, connectUnix, fitsUnixAddress, sendAll } from "./unix-stream.ts";

const folder = mkdtempSync(join(tmpdir(), "vt-unix-stream-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** More than any listener's queue. */
const MANY = 10_000;
/** More than the kernel buffers for a reader. */
const LARGE = 8 * 1024 * 1024;

/** Listens, but accepts no connection as long as the test does not await anything: like a frozen process. */
function frozenListener(name: string): { readonly path: string; [Symbol.dispose](): void } {
  const path = join(folder, name);
  const listener = Bun.listen({ unix: path, socket: { data() {} } });
  return { path, [Symbol.dispose]: () => listener.stop(true) };
}

describe("fitsUnixAddress()", () => {
  test.each([
    ["of the maximum length", `/${"a".repeat(106)}`, true],
    ["of one character more", `/${"a".repeat(107)}`, false],
    ["with a letter outside ASCII", "/run/büro/calls.sock", false],
  ])("checks a path %s", (_, path, fits) => {
    expect(fitsUnixAddress(path)).toBe(fits);
    if (!fits) expect(connectUnix(path)).toBeUndefined();
  });
});

describe("connectUnix()", () => {
  test("does not wait if the listener's queue is full", () => {
    using frozen = frozenListener("line.sock");
    const streams: number[] = [];
    for (let stream = connectUnix(frozen.path); stream !== undefined; stream = connectUnix(frozen.path)) {
      streams.push(stream);
      if (streams.length === MANY) break;
    }
    for (const stream of streams) closeStream(stream);

    expect(streams.length).toBeGreaterThan(0);
    expect(streams.length).toBeLessThan(MANY);
  });

  test("returns undefined if there is no socket", () => {
    expect(connectUnix(join(folder, "absent.sock"))).toBeUndefined();
  });
});

describe("sendAll()", () => {
  test("stops if the reader reads nothing more", () => {
    using frozen = frozenListener("large.sock");
    const stream = connectUnix(frozen.path) ?? -1;

    expect(sendAll(stream, new Uint8Array(16), 16, 10)).toBe(true);
    expect(sendAll(stream, new Uint8Array(LARGE), LARGE, 10)).toBe(false);
    closeStream(stream);
  });

  test("stops at once if the reader has ended", async () => {
    const path = join(folder, "gone.sock");
    const closed = Promise.withResolvers<void>();
    const listener = Bun.listen({
      unix: path,
      socket: { data() {}, open: (socket) => void socket.terminate(), close: () => closed.resolve() },
    });
    const stream = connectUnix(path) ?? -1;
    await closed.promise;

    expect(sendAll(stream, new Uint8Array(16), 16, 60_000)).toBe(false);
    closeStream(stream);
    listener.stop(true);
  });

  test("continues when a slow reader has made room", async () => {
    const path = join(folder, "slow.sock");
    const child = Bun.spawn([process.execPath, "-e", SLOW_READER, path], { stdout: "pipe" });
    const said = child.stdout.getReader();
    await said.read();
    const stream = connectUnix(path) ?? -1;

    expect(sendAll(stream, new Uint8Array(LARGE), LARGE, 5_000)).toBe(true);
    closeStream(stream);
    const { value } = await said.read();
    expect(Number(new TextDecoder().decode(value))).toBe(LARGE);
    await child.exited;
  });
});

const SLOW_READER = `
const path = process.argv.at(-1);
let count = 0;
const open = () => Bun.sleepSync(100);
const close = () => (console.log(count), process.exit());
Bun.listen({ unix: path, socket: { open, close, data: (_, bytes) => void (count += bytes.length) } });
console.log("listens");
`;
