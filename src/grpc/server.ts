/**
 * A gRPC server for unary calls on a unix socket, with the runtime's `node:http2`.
 *
 *   client ── headers, one message ──> handler ── one message, trailers with the status ──> client
 *
 * Messages are not compressed. A deadline is the client's affair: it resets the
 * stream, and the response of the handler is dropped. Only for its request a client
 * has a limited time. Clients are connected as long as they like, unless there are
 * too many: then the one that has been without a call for the longest time goes.
 */
import {
  createServer,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { type ConnectionLimits, LimitedConnections, withinDescriptors } from "../limited-connections.ts";
import { after } from "../timers.ts";
import { encodeMessage, MessageReader } from "./message-frames.ts";
import { listenAt } from "./socket-file.ts";
import { failureFields, GrpcError } from "./status.ts";

export interface GrpcSocket {
  readonly path: string;
  /** Of the socket file: who may connect. */
  readonly mode: number;
  /** Of a message with its prefix of 5 bytes; the default is 4 MiB, as in other servers. */
  readonly mostRequestBytes?: number;
  readonly limits?: ConnectionLimits & { readonly requestMilliseconds: number };
}

/** Returns the response. What it throws is the status of the call: `GrpcError`, or "unknown" with the message of the error. */
export type GrpcHandler = (request: Uint8Array) => Promise<Uint8Array> | Uint8Array;

/** By "/service/Method". */
export type GrpcHandlers = Readonly<Record<string, GrpcHandler>>;

export interface GrpcServer {
  /** How many clients are connected. */
  readonly connections: number;
  /** Stops listening and removes the socket file, unless another process has replaced it; calls in progress may end. */
  close(): Promise<void>;
}

const MOST_REQUEST_BYTES = 4 * 1024 * 1024;
const MOST_STREAMS = 1024;
/** Fields of gRPC are some hundred bytes. */
const MOST_HEADER_BYTES = 16 * 1024;
/**
 * A proxy has a connection for each of its threads. `requestMilliseconds`: until the client has shown that it speaks HTTP/2,
 * and from the fields of each call to the end of its message.
 */
const LIMITS = { most: 256, requestMilliseconds: 10_000 } as const satisfies ConnectionLimits;
/** How long calls in progress may take after `close()`. */
const CLOSE_MILLISECONDS = 1_000;
const CONTENT = { ":status": 200, "content-type": "application/grpc" } as const;

/** Rejects if the socket cannot be created. A socket file that a former process left is replaced, as is one in use. */
export async function serveGrpc(
  { path, mode, mostRequestBytes = MOST_REQUEST_BYTES, limits = LIMITS }: GrpcSocket,
  handlers: GrpcHandlers,
): Promise<GrpcServer> {
  const methods = new Map(Object.entries(handlers));
  const sessions = new Set<ServerHttp2Session>();
  const limited = new LimitedConnections<Http2Session>(
    { ...limits, most: withinDescriptors(limits.most, 1 / 4) },
    (session) => session.destroy(),
  );
  const calls = new CallsInProgress(limited);
  const server = createServer({
    settings: { maxConcurrentStreams: MOST_STREAMS, maxHeaderListSize: MOST_HEADER_BYTES },
  });
  // A client that does not speak HTTP/2, or that disconnects: its session ends, nothing else.
  server.on("sessionError", () => {});
  server.on("session", (session) => {
    session.on("error", () => {});
    if (!limited.admit(session)) return void session.destroy();
    sessions.add(session);
    session.on("remoteSettings", () => calls.settled(session));
    session.on("close", () => {
      sessions.delete(session);
      limited.left(session);
    });
  });
  server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    // A client that cancels its call.
    stream.on("error", () => {});
    calls.begin(stream);
    const refusal = refusalOf(headers);
    if (refusal !== undefined) return void stream.respond({ ":status": refusal }, { endStream: true });
    const method = String(headers[":path"]);
    const handler = methods.get(method);
    const encoding = headers["grpc-encoding"];
    if (handler === undefined) fail(stream, new GrpcError("unimplemented", `unknown method ${method}`));
    else if (encoding !== undefined && encoding !== "identity")
      fail(stream, new GrpcError("unimplemented", `messages encoded with ${encoding} are not supported`));
    else receive(stream, handler, { mostBytes: mostRequestBytes, milliseconds: limits.requestMilliseconds });
  });
  const removeFile = await listenAt(server, path, mode);
  return {
    get connections() {
      return sessions.size;
    },
    async close() {
      removeFile();
      await closeServer(server, sessions);
    },
  };
}

/** The HTTP status for a client that does not speak gRPC. */
function refusalOf(headers: IncomingHttpHeaders): number | undefined {
  if (headers[":method"] !== "POST") return 405;
  return headers["content-type"]?.startsWith("application/grpc") ? undefined : 415;
}

/** A connection with a call in progress is not closed for another one. */
class CallsInProgress {
  private readonly counts = new Map<Http2Session, number>();

  constructor(private readonly limited: LimitedConnections<Http2Session>) {}

  /** The client speaks HTTP/2. */
  settled(session: Http2Session): void {
    if (!this.counts.has(session)) this.limited.reply(session);
  }

  begin(stream: ServerHttp2Stream): void {
    const { session } = stream;
    if (session === undefined) return;
    this.counts.set(session, (this.counts.get(session) ?? 0) + 1);
    this.limited.begin(session);
    stream.on("close", () => {
      const left = (this.counts.get(session) ?? 1) - 1;
      if (left > 0) return void this.counts.set(session, left);
      this.counts.delete(session);
      this.limited.reply(session);
    });
  }
}

function receive(
  stream: ServerHttp2Stream,
  handler: GrpcHandler,
  { mostBytes, milliseconds }: { readonly mostBytes: number; readonly milliseconds: number },
): void {
  const tooLarge = () => new GrpcError("resource-exhausted", `the request is larger than ${mostBytes} bytes`);
  const reader = new MessageReader(mostBytes, tooLarge);
  const messages: Uint8Array[] = [];
  let isRefused = false;
  const refuse = (failure: unknown) => {
    isRefused = true;
    fail(stream, failure);
  };
  const late = () => new GrpcError("deadline-exceeded", `the request is not complete after ${milliseconds} ms`);
  const cancel = after(milliseconds, () => refuse(late()));
  stream.on("close", cancel);
  stream.on("data", (piece: Uint8Array) => {
    if (isRefused) return;
    try {
      messages.push(...reader.read(piece));
    } catch (failure) {
      refuse(failure);
    }
  });
  stream.on("end", () => {
    cancel();
    if (isRefused) return;
    const [request] = messages;
    if (request === undefined || messages.length > 1) {
      fail(stream, new GrpcError("internal", `a call has one request: ${messages.length} are complete`));
    } else void respond(stream, handler, request);
  });
}

async function respond(stream: ServerHttp2Stream, handler: GrpcHandler, request: Uint8Array): Promise<void> {
  try {
    const response = handler(request);
    succeed(stream, response instanceof Promise ? await response : response);
  } catch (failure) {
    fail(stream, failure);
  }
}

function succeed(stream: ServerHttp2Stream, response: Uint8Array): void {
  if (isGone(stream)) return;
  stream.respond(CONTENT, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(encodeMessage(response));
}

/** A response that consists of headers alone. Those of a response that has begun cannot be sent again. */
function fail(stream: ServerHttp2Stream, failure: unknown): void {
  if (isGone(stream)) return;
  if (stream.headersSent) stream.close();
  else stream.respond({ ...CONTENT, ...failureFields(failure) }, { endStream: true });
}

function isGone(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

async function closeServer(server: Http2Server, sessions: ReadonlySet<ServerHttp2Session>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  for (const session of sessions) session.close();
  const timer = setTimeout(() => {
    for (const session of sessions) session.destroy();
    resolve();
  }, CLOSE_MILLISECONDS);
  await promise;
  clearTimeout(timer);
}
