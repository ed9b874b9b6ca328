import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { freePorts } from "../../test/support/etcd.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { listenForPages, type PageListener } from "./page-listener.ts";

const LARGE = "metric 1\n".repeat(500_000);
const MOST = 2_048;

let port: number;
let listener: PageListener;
let calls: string[];
const clients = new Set<Socket>();
beforeEach(async () => {
  calls = [];
  [port = 0] = await freePorts(1);
  listener = listenForPages({ hostname: "::", port, isExclusive: false }, (path) => {
    calls.push(path);
    if (path === "/large") return { status: 200, text: LARGE };
    return path === "/page" ? { status: 200, text: "here" } : undefined;
  });
});
afterEach(() => {
  for (const client of clients) client.destroy();
  clients.clear();
  listener.stop();
});

interface Client {
  readonly socket: Socket;
  /** What the server has sent until it closes the connection. */
  readonly received: Promise<string>;
}

function open(...texts: readonly string[]): Client {
  const socket = connect({ host: "127.0.0.1", port });
  clients.add(socket);
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = "";
  socket.on("data", (bytes) => (text += bytes.toString()));
  socket.on("error", () => {});
  socket.on("close", () => resolve(text));
  for (const each of texts) socket.write(each);
  return { socket, received: promise };
}

const PAGE = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
const page = async () => (await fetch(`http://127.0.0.1:${port}/page`)).text();
const descriptors = () => readdirSync("/proc/self/fd").length;

describe("listenForPages()", () => {
  test("answers one request on each connection, and reads no further ones", async () => {
    const reply = await open(PAGE.repeat(50)).received;

    expect(reply).toBe(
      "HTTP/1.1 200 OK\r\ncontent-type: text/plain;charset=utf-8\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhere\n",
    );
    expect(calls).toEqual(["/page"]);
  });

  test("answers a request that arrives in pieces, and sends a large page whole", async () => {
    const { socket, received } = open();
    for (const each of PAGE) {
      socket.write(each);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await received).toEndWith("here\n");
    expect(await (await fetch(`http://127.0.0.1:${port}/large`)).text()).toBe(LARGE);
  });

  test.each([
    ["a request that is too large", `GET /page HTTP/1.1\r\nx: ${"y".repeat(9_000)}`, "HTTP/1.1 431 "],
    ["what is not a request", "hello\r\n\r\n", "HTTP/1.1 400 "],
    ["a request to write", "POST /page HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "],
    ["a page that does not exist", "GET /other HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "],
  ])("refuses %s", async (_, text, expected) => {
    expect(await open(text).received).toStartWith(expected);
  });

  test("answers beside any number of clients that say nothing, and keeps few of them", async () => {
    const before = descriptors();
    const idle: Client[] = [];
    while (idle.length < 3_000) {
      const some = Array.from({ length: 100 }, () => open("GET /pa"));
      await Promise.all(some.map(({ socket }) => connected(socket)));
      idle.push(...some);
    }
    expect(await page()).toBe("here\n");
    await pollUntil(() => idle.filter(({ socket }) => !socket.destroyed).length <= MOST, "the others to be closed");

    // One for each of them in this process, and one for each of the server's.
    await pollUntil(() => descriptors() <= before + 2 * MOST, "their descriptors to be closed");
    expect(await page()).toBe("here\n");
  });

  test("answers beside clients that do not read their replies", async () => {
    const readers = Array.from({ length: 100 }, () => open("GET /large HTTP/1.1\r\n\r\n"));
    for (const { socket } of readers) socket.pause();

    expect(await page()).toBe("here\n");
  });

  test("lets the rest of the program have its turn beside clients that connect as fast as it accepts", async () => {
    let left = 12_000;
    using _ = afterEachAccept(() => void (left-- > 0 && open()));
    listener.stop();
    listener = listenForPages({ hostname: "::", port, isExclusive: false }, () => undefined);
    open();

    const turns = new Set<number>();
    while (turns.size < 5 && left > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      turns.add(left);
    }

    expect(left).toBeGreaterThan(0);
    left = 0;
  });
});

/** For listeners that begin until it is disposed of: without a return to the event loop, so the next client waits already. */
function afterEachAccept(run: () => void): Disposable {
  const listen = Bun.listen;
  const observed = (options: Bun.TCPSocketListenOptions<unknown>) => {
    const open = (socket: Bun.Socket<unknown>) => {
      options.socket.open?.(socket);
      run();
    };
    return listen({ ...options, socket: { ...options.socket, open } });
  };
  return spyOn(Bun, "listen").mockImplementation(observed as typeof listen);
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ["connect", "close"] as const) socket.once(event, () => resolve());
  });
}
