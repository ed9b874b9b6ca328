import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { encodeMessage, MessageReader } from "./message-frames.ts";
import { type GrpcHandlers, type GrpcServer, serveGrpc } from "./server.ts";
import { GrpcError } from "./status.ts";

let said = 0;
let release = Promise.withResolvers<void>();
const handlers: GrpcHandlers = {
  "/test.Echo/Say": (request) => request,
  "/test.Echo/Count": (request) => {
    said += 1;
    return request;
  },
  "/test.Echo/SayLater": async (request) => request,
  "/test.Echo/Refuse": () => {
    throw new GrpcError("not-found", "no größe, 100%\n");
  },
  "/test.Echo/Break": async () => {
    throw new TypeError("broken");
  },
  "/test.Echo/Wait": async (request) => {
    await release.promise;
    return request;
  },
};

let directory = "";
let path = "";
let server: GrpcServer;
let session: ClientHttp2Session;
beforeEach(async () => {
  release = Promise.withResolvers();
  directory = mkdtempSync("/tmp/grpc-server-");
  path = join(directory, "test.sock");
  server = await serveGrpc({ path, mode: 0o660, mostRequestBytes: 100_000 }, handlers);
  session = openSession();
});
afterEach(async () => {
  session.destroy();
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

function openSession(): ClientHttp2Session {
  const opened = connect("http://localhost", { createConnection: () => connectSocket(path) });
  return opened.on("error", () => {});
}

interface Outcome {
  readonly status: number | undefined;
  readonly grpc: string | undefined;
  readonly message: string | undefined;
  readonly response: Uint8Array | undefined;
}

const call = (method: string, pieces: readonly Uint8Array[], headers: Readonly<Record<string, string>> = {}) =>
  outcomeOf({ ":path": method, ...headers }, pieces);

async function outcomeOf(headers: Readonly<Record<string, string>>, pieces: readonly Uint8Array[]): Promise<Outcome> {
  const stream = session.request({ ":method": "POST", "content-type": "application/grpc", te: "trailers", ...headers });
  const fields: IncomingHttpHeaders & { ":status"?: number } = {};
  const note = (some: object) => void Object.assign(fields, some);
  stream.on("response", note).on("trailers", note);
  const reader = new MessageReader(1_000_000, () => new Error("too large"));
  const responses: Uint8Array[] = [];
  stream.on("data", (piece: Uint8Array) => responses.push(...reader.read(piece)));
  stream.on("error", () => {});
  for (const [index, piece] of pieces.entries()) {
    stream.write(piece);
    // In frames, and in events, of their own.
    if (index < pieces.length - 1) await new Promise((resolve) => setImmediate(resolve));
  }
  stream.end();
  await once(stream, "close");
  const message = fields["grpc-message"];
  return {
    status: fields[":status"],
    grpc: fields["grpc-status"]?.toString(),
    message: message === undefined ? undefined : decodeURIComponent(String(message)),
    response: responses[0],
  };
}

async function connectionsAre(count: number): Promise<void> {
  for (let tries = 0; server.connections !== count && tries < 1_000; tries += 1) await Bun.sleep(5);
  expect(server.connections).toBe(count);
}

const text = (response: Uint8Array | undefined) => response && Buffer.from(response).toString();
const hello = encodeMessage(Buffer.from("hello"));

describe("serveGrpc()", () => {
  test.each(["/test.Echo/Say", "/test.Echo/SayLater"])(
    "responds with one message and the status OK: %s",
    async (method) => {
      const { status, grpc, response } = await call(method, [hello]);

      expect([status, grpc, text(response)]).toEqual([200, "0", "hello"]);
    },
  );

  test("takes empty messages, large ones, and those that arrive in pieces", async () => {
    const large = new Uint8Array(90_000).fill(7);
    const pieces = Array.from({ length: hello.length }, (_, at) => hello.subarray(at, at + 1));

    expect((await call("/test.Echo/Say", [encodeMessage(new Uint8Array(0))])).response).toHaveLength(0);
    expect((await call("/test.Echo/Say", [encodeMessage(large)])).response).toEqual(Buffer.from(large));
    expect(text((await call("/test.Echo/Say", pieces)).response)).toBe("hello");
  });

  test("ends a call with the status and the message that the handler throws", async () => {
    expect(await call("/test.Echo/Refuse", [hello])).toMatchObject({
      status: 200,
      grpc: "5",
      message: "no größe, 100%\n",
    });
    expect(await call("/test.Echo/Break", [hello])).toMatchObject({ status: 200, grpc: "2", message: "broken" });
  });

  test("refuses unknown methods, compressed and large messages, and calls without exactly one request", async () => {
    const compressed = { "grpc-encoding": "gzip" };
    const outcomes = [
      await call("/test.Echo/Sing", [hello]),
      await call("/test.Echo/Say", [hello], compressed),
      await call("/test.Echo/Say", [encodeMessage(new Uint8Array(100_000))]),
      await call("/test.Echo/Say", []),
      await call("/test.Echo/Say", [hello.subarray(0, 7)]),
      await call("/test.Echo/Say", [hello, hello]),
    ];

    expect(outcomes.map(({ grpc }) => grpc)).toEqual(["12", "12", "8", "13", "13", "13"]);
    expect(outcomes[0]?.message).toBe("unknown method /test.Echo/Sing");
    expect(text((await call("/test.Echo/Say", [hello])).response)).toBe("hello");
  });

  test("responds to requests that are not gRPC with an HTTP status", async () => {
    expect((await outcomeOf({ ":path": "/test.Echo/Say", ":method": "GET" }, [])).status).toBe(405);
    expect((await call("/test.Echo/Say", [hello], { "content-type": "text/plain" })).status).toBe(415);
  });

  test("serves calls that run at the same time, and survives clients that cancel or disconnect", async () => {
    const waiting = session.request({
      ":method": "POST",
      ":path": "/test.Echo/Wait",
      "content-type": "application/grpc",
    });
    waiting.on("error", () => {}).end(hello);
    const many = await Promise.all(Array.from({ length: 50 }, () => call("/test.Echo/SayLater", [hello])));
    expect(many.map(({ grpc }) => grpc)).toEqual(Array(50).fill("0"));
    waiting.close(8);
    await once(waiting, "close");

    const other = openSession();
    const lost = other.request({ ":method": "POST", ":path": "/test.Echo/Wait", "content-type": "application/grpc" });
    lost.on("error", () => {}).end(hello);
    await call("/test.Echo/Say", [hello]);
    await connectionsAre(2);
    other.destroy();
    release.resolve();
    const stranger = connectSocket(path).on("error", () => {});
    stranger.end("GET / HTTP/1.1\r\n\r\n");
    await once(stranger.resume(), "close");

    expect((await call("/test.Echo/Say", [hello])).grpc).toBe("0");
    await connectionsAre(1);
  });
});

describe("connections", () => {
  const LIMITS = { most: 3, requestMilliseconds: 100 };
  let limited: GrpcServer;
  beforeEach(async () => {
    session.destroy();
    await server.close();
    limited = await serveGrpc({ path, mode: 0o600, limits: LIMITS }, handlers);
    server = limited;
    session = openSession();
  });

  const openSockets = async (count: number) => {
    const sockets = Array.from({ length: count }, () => connectSocket(path).on("error", () => {}));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    return sockets;
  };

  test("that say nothing make room for others, and are closed after a while", async () => {
    session.destroy();
    const idle = await openSockets(20);
    session = openSession();
    expect((await call("/test.Echo/Say", [hello])).grpc).toBe("0");
    expect(limited.connections).toBeLessThanOrEqual(3);
    await Promise.all(idle.map((socket) => socket.closed || once(socket.resume(), "close")));

    expect((await call("/test.Echo/Say", [hello])).grpc).toBe("0");
    await connectionsAre(1);
  });

  test("with a call in progress stay, and those without are not closed by a limit of time", async () => {
    session.destroy();
    const others = [openSession(), openSession()];
    const waiting = others.map((each) => {
      const headers = { ":method": "POST", ":path": "/test.Echo/Wait", "content-type": "application/grpc" };
      return each.request(headers).on("error", () => {});
    });
    for (const stream of waiting) stream.end(hello);
    await connectionsAre(2);
    await openSockets(20);
    await Bun.sleep(2 * LIMITS.requestMilliseconds);
    expect(waiting.map(({ closed }) => closed)).toEqual([false, false]);
    release.resolve();
    await Promise.all(waiting.map((stream) => once(stream.resume(), "close")));

    expect(others.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    for (const each of others) each.destroy();
  });

  test("with a request that is not complete in time get a refusal, and its handler is not called when it is", async () => {
    const before = said;
    const headers = { ":method": "POST", ":path": "/test.Echo/Count", "content-type": "application/grpc" };
    const stream = session.request(headers).on("error", () => {});
    stream.write(hello.subarray(0, 4));
    const [fields] = await once(stream, "response");
    expect(fields["grpc-status"]).toBe("4");
    stream.end(hello.subarray(4));
    await call("/test.Echo/Say", [hello]);

    expect(said).toBe(before);
  });

  test("are closed for headers that are too large", async () => {
    const large = call("/test.Echo/Say", [hello], { "x-large": "y".repeat(20_000) });
    await expect(large).rejects.toThrow("NGHTTP2_ENHANCE_YOUR_CALM");
    session = openSession();

    expect((await call("/test.Echo/Say", [hello])).grpc).toBe("0");
  });
});

describe("the socket file", () => {
  test("has the mode, and is the only file", () => {
    expect(lstatSync(path).mode & 0o777).toBe(0o660);
    expect(readdirSync(directory)).toEqual(["test.sock"]);
  });

  test("is replaced if a former process left it, and removed by its own server alone", async () => {
    const newer = await serveGrpc({ path, mode: 0o600 }, handlers);
    await server.close();
    expect(lstatSync(path).mode & 0o777).toBe(0o600);
    session.destroy();
    session = openSession();
    expect((await call("/test.Echo/Say", [hello])).grpc).toBe("0");
    await newer.close();

    expect(existsSync(path)).toBe(false);
  });

  test("does not replace another kind of file, and its directory must exist", async () => {
    const file = join(directory, "file");
    writeFileSync(file, "");

    await expect(serveGrpc({ path: file, mode: 0o600 }, {})).rejects.toThrow("not a socket");
    await expect(serveGrpc({ path: `${directory}/none/x`, mode: 0o600 }, {})).rejects.toThrow(
      `Cannot listen at "${directory}/none/x": the directory "${directory}/none" does not exist: is the volume mounted?`,
    );
  });
});
