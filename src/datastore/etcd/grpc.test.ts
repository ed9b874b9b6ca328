/** gRPC over real HTTP/2 connections, with servers that behave as etcd rarely does. */
import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { connect, createServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import {
  type AddressInfo,
  connect as connectSocket,
  createServer as createRawServer,
  type Server,
  type Socket,
} from "node:net";
import { encodeMessage } from "../../grpc/message-frames.ts";
import { failureOf } from "../datastore-contract/subject.ts";
import { EtcdFailure } from "./failure.ts";
import { GrpcTransport } from "./grpc.ts";
import { GrpcConnection } from "./grpc-connection.ts";

const NOTHING = { comparisons: [], success: [], failure: [] };
/** The response to a successful transaction: field 2, true. */
const SUCCEEDED = encodeMessage(Uint8Array.of(0x10, 1));

/** 256 KiB in a field that no watch has. */
const LARGE_MESSAGE = encodeMessage(Buffer.concat([Uint8Array.of(0x7a, 0x80, 0x80, 0x10), new Uint8Array(256 * 1024)]));
const LARGE_MESSAGES = 64;

const HEADERS = 1;
const RESET = 3;
const SETTINGS = 4;

describe("GrpcTransport", () => {
  describe("a server that accepts one request at a time", () => {
    test("gets the next request when it has responded", async () => {
      await using server = await startServer({ settings: { maxConcurrentStreams: 1 } });
      const { ask } = await server.connectClient();
      const asked = [ask(), ask()];
      const first = await server.nextRequest();
      expect(server.requests()).toBe(1);
      succeed(first);
      succeed(await server.nextRequest());

      for (const { answer } of asked) expect((await answer).succeeded).toBe(true);
      expect(server.connections()).toBe(1);
    });

    test("does not receive a request that was aborted while it waited", async () => {
      await using server = await startServer({ settings: { maxConcurrentStreams: 1 } });
      const { ask } = await server.connectClient();
      const [first, second] = [ask(), ask()];
      const begun = await server.nextRequest();
      second.giveUp();
      expect(await failureOf(second.answer)).toMatchObject({ message: "no response within the time limit" });
      succeed(begun);
      expect((await first.answer).succeeded).toBe(true);
      const third = ask();
      succeed(await server.nextRequest());

      expect((await third.answer).succeeded).toBe(true);
      expect(server.requests()).toBe(2);
    });

    test("has certainly not started a request that was waiting when the connection is lost", async () => {
      await using server = await startServer({ settings: { maxConcurrentStreams: 1 } });
      const { ask } = await server.connectClient();
      const [begun, waiting] = [ask(), ask()];
      await server.nextRequest();
      server.cut();

      expect(await failureOf(begun.answer)).toMatchObject({ diagnosis: { effect: "unknown" } });
      expect(await failureOf(waiting.answer)).toMatchObject({ diagnosis: { effect: "none" } });
    });
  });

  test("returns its own response for every request, in whatever order they arrive", async () => {
    await using server = await startServer();
    const { ask } = await server.connectClient();
    const [first, second] = [ask(), ask()];
    const toFirst = await server.nextRequest();
    succeed(await server.nextRequest());
    refuse(toFirst, "13", "out%20of%20order");

    expect(await failureOf(first.answer)).toMatchObject({ message: "out of order (code 13)" });
    expect((await second.answer).succeeded).toBe(true);
  });

  test("knows after a GOAWAY which requests the server has not started, and waits for the others", async () => {
    await using server = await startServer();
    const { grpc, ask } = await server.connectClient();
    const [kept, leftOut] = [ask(), ask()];
    const first = await server.nextRequest();
    await server.nextRequest();
    first.session?.goaway(0, first.id);

    expect(await failureOf(leftOut.answer)).toMatchObject({ diagnosis: { stage: "request", effect: "none" } });
    expect(grpc.isConnected(server.url)).toBe(false);
    succeed(first);
    expect((await kept.answer).succeeded).toBe(true);
    const next = ask();
    succeed(await server.nextRequest());
    expect((await next.answer).succeeded).toBe(true);
    expect(server.connections()).toBe(2);
  });

  test("makes the server of a slowly read watch wait, loses nothing, and does not delay other requests", async () => {
    await using server = await startServer();
    const { grpc, ask } = await server.connectClient();
    const call = { url: server.url, token: undefined, signal: new AbortController().signal };
    const answers = grpc.watch(call, { key: "/k", startRevision: "1" })[Symbol.asyncIterator]();
    const first = answers.next();
    const watched = await server.nextRequest();
    watched.respond({ ":status": 200, "grpc-status": "0" });
    let written = 0;
    const write = () => {
      written += 1;
      if (written < LARGE_MESSAGES) watched.write(LARGE_MESSAGE);
      else watched.end(LARGE_MESSAGE);
    };
    watched.on("drain", write);
    write();
    await first;
    for (let time = 0; time < 20; time++) {
      const asked = ask();
      succeed(await server.nextRequest());
      expect((await asked.answer).succeeded).toBe(true);
    }

    expect(written).toBeLessThan(LARGE_MESSAGES / 2);
    let read = 1;
    while (!(await answers.next()).done) read += 1;
    expect(read).toBe(LARGE_MESSAGES);
  });

  test("ends a watch that the server ends, and closes its own side", async () => {
    await using server = await startServer();
    const { grpc } = await server.connectClient();
    const call = { url: server.url, token: undefined, signal: new AbortController().signal };
    const answers = grpc.watch(call, { key: "/k", startRevision: "1" })[Symbol.asyncIterator]();
    const next = answers.next();
    const watched = await server.nextRequest();
    const closed = once(watched, "close");
    succeed(watched);

    expect((await next).value.created).toBe(false);
    expect(await answers.next()).toMatchObject({ done: true });
    await closed;
  });

  describe("failures", () => {
    test.each([
      [7, "none"],
      [8, "unknown"],
      [2, "unknown"],
      [0, "unknown"],
    ] as const)(
      "takes a reset with code %d for an effect that is %s, and keeps the connection",
      async (code, effect) => {
        await using server = await startRawServer((request) => frame(RESET, request, Uint8Array.of(0, 0, 0, code)));
        const { grpc, ask } = await server.connectClient();

        expect(await failureOf(ask().answer)).toMatchObject({ diagnosis: { stage: "request", effect } });
        expect(grpc.isConnected(server.url)).toBe(true);
      },
    );

    test.each([
      ["another protocol", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
      ["header fields that cannot be decoded", frame(HEADERS, 1, Uint8Array.of(0xff), 0x4)],
      ["a continuation without header fields", frame(9, 1, new Uint8Array(1))],
      ["nothing at all", undefined],
    ])("closes a connection on which %s comes, and does not take it for proof", async (_, bytes) => {
      await using server = await startRawServer(() => bytes ?? "cut");
      const { grpc, ask } = await server.connectClient();

      expect(await failureOf(ask().answer)).toMatchObject({ diagnosis: { stage: "request", effect: "unknown" } });
      expect(grpc.isConnected(server.url)).toBe(false);
    });

    test("is not connected to a server that speaks another protocol", async () => {
      await using server = await startRawServer(() => "cut", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"));
      const grpc = new GrpcTransport({});

      expect(await failureOf(grpc.connect(server.url, AbortSignal.timeout(5_000)))).toBeInstanceOf(EtcdFailure);
      expect(grpc.isConnected(server.url)).toBe(false);
    });
  });
});

describe("GrpcConnection", () => {
  test("closes when HTTP/2 has no stream numbers left: later requests were not started", async () => {
    await using server = await startServer();
    const socket = connectSocket(Number(new URL(server.url).port), "127.0.0.1");
    await once(socket, "connect");
    const session = connect(server.url, { createConnection: () => socket });
    const connection = new GrpcConnection(session, socket);
    await connection.settingsReceived;
    // Missing in the types.
    (session as unknown as { setNextStreamID(id: number): void }).setNextStreamID(2 ** 31 - 1);
    const request = () => connection.request({ ":method": "POST" }, new AbortController().signal);
    request()
      .on("error", () => {})
      .end();
    const second = request();
    const [error] = await once(second, "error");

    expect(connection.failureOf(second, error)).toMatchObject({ diagnosis: { effect: "none" } });
    expect(connection.isOpen).toBe(false);
    connection.close();
  });
});

function succeed(stream: ServerHttp2Stream): void {
  stream.respond({ ":status": 200 }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(SUCCEEDED);
}

function refuse(stream: ServerHttp2Stream, status: string, message: string): void {
  stream.respond({ ":status": 200, "grpc-status": status, "grpc-message": message }, { endStream: true });
}

/** Connected to a server, with requests that can be aborted. */
async function connectTo(url: string) {
  const grpc = new GrpcTransport({});
  await grpc.connect(url, AbortSignal.timeout(5_000));
  const ask = () => {
    const stop = new AbortController();
    const answer = grpc.transact({ url, token: undefined, signal: stop.signal }, NOTHING);
    answer.catch(() => {});
    return { answer, giveUp: () => stop.abort() };
  };
  return { grpc, ask };
}

type Client = Awaited<ReturnType<typeof connectTo>>;

interface TestServer extends AsyncDisposable {
  readonly url: string;
  connectClient(): Promise<Client>;
}

interface Http2TestServer extends TestServer {
  /** The oldest request that was not taken yet. */
  nextRequest(): Promise<ServerHttp2Stream>;
  requests(): number;
  connections(): number;
  cut(): void;
}

/** Does not respond to a request by itself. */
async function startServer(options: Parameters<typeof createServer>[0] = {}): Promise<Http2TestServer> {
  const server = createServer(options);
  const requests: ServerHttp2Stream[] = [];
  const { promise: first, resolve } = Promise.withResolvers<void>();
  let arrived = { promise: first, resolve };
  let taken = 0;
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    requests.push(stream);
    arrived.resolve();
    arrived = Promise.withResolvers<void>();
  });
  const sockets = trackSockets(server);
  const nextRequest = async (): Promise<ServerHttp2Stream> => {
    const next = requests[taken];
    if (next === undefined) return arrived.promise.then(nextRequest);
    taken += 1;
    return next;
  };
  return {
    ...(await listen(server, sockets)),
    nextRequest,
    requests: () => requests.length,
    connections: () => sockets.length,
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Sends the given bytes: at the start, and in response to a request with its number. */
async function startRawServer(
  answer: (request: number) => Uint8Array | "cut",
  firstBytes: Uint8Array = frame(SETTINGS, 0, new Uint8Array(0)),
): Promise<TestServer> {
  const server = createRawServer((socket) => {
    socket.on("error", () => {});
    socket.write(firstBytes);
    socket.on("data", (data: Buffer) => {
      const request = findRequest(data);
      const said = request === undefined ? undefined : answer(request);
      if (said === "cut") socket.destroy();
      else if (said) socket.write(said);
    });
  });
  return listen(server, trackSockets(server));
}

function trackSockets(server: Server | Http2Server): readonly Socket[] {
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => sockets.push(socket));
  return sockets;
}

async function listen(server: Server | Http2Server, sockets: readonly Socket[]): Promise<TestServer> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clients: Client[] = [];
  return {
    url,
    connectClient: async () => {
      const client = await connectTo(url);
      clients.push(client);
      return client;
    },
    [Symbol.asyncDispose]: async () => {
      for (const { grpc } of clients) grpc.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER_BYTES = 9;

function frame(type: number, stream: number, payload: Uint8Array, flags = 0): Uint8Array {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

/** The stream number of the first request in what a client has sent. */
function findRequest(data: Buffer): number | undefined {
  let start = data.toString("latin1").startsWith(PREFACE) ? PREFACE.length : 0;
  while (start + FRAME_HEADER_BYTES <= data.length) {
    if (data.readUInt8(start + 3) === HEADERS) return data.readUInt32BE(start + 5);
    start += FRAME_HEADER_BYTES + data.readUIntBE(start, 3);
  }
  return undefined;
}
