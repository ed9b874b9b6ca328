/**
 * etcd through gRPC over HTTP/2: for members whose JSON gateway is off, and for
 * client certificates with a common name, which the gateway refuses. One
 * connection per endpoint, kept for the life of the process.
 */
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { type EtcdFailure, failureOfAnswer, failureOfConnection } from "./failure.ts";
import {
  decodeToken,
  decodeTransactionAnswer,
  decodeWatchAnswer,
  encodeTransaction,
  encodeUser,
  encodeWatch,
} from "./grpc-messages.ts";
import type { TlsFiles } from "./tls-files.ts";
import type { Call, Transaction, TransactionAnswer, Transport, User, WatchAnswer, WatchRequest } from "./transport.ts";

type Http2 = typeof import("node:http2");

/** A message is preceded by a byte for compression and four for its length. */
const FRAME_HEADER_BYTES = 5;

export async function openGrpc(tls: TlsFiles): Promise<Transport> {
  // Imported here: a bundle loads what stands above at every start.
  return new GrpcTransport(await import("node:http2"), tls);
}

class GrpcTransport implements Transport {
  private readonly sessions = new Map<string, Promise<ClientHttp2Session>>();

  constructor(
    private readonly http2: Http2,
    private readonly tls: TlsFiles,
  ) {}

  async transact(call: Call, transaction: Transaction): Promise<TransactionAnswer> {
    return decodeTransactionAnswer(await this.ask(call, "/etcdserverpb.KV/Txn", encodeTransaction(transaction)));
  }

  async authenticate(call: Call, user: User): Promise<string> {
    return decodeToken(await this.ask(call, "/etcdserverpb.Auth/Authenticate", encodeUser(user)));
  }

  async *watch(call: Call, request: WatchRequest): AsyncIterable<WatchAnswer> {
    // The request stays open: its end would end the watch.
    const stream = await this.send(call, "/etcdserverpb.Watch/Watch", encodeWatch(request));
    for await (const bytes of messagesOf(stream, call.signal)) yield decodeWatchAnswer(bytes);
  }

  close(): void {
    for (const session of this.sessions.values()) session.then((open) => open.destroy()).catch(() => {});
    this.sessions.clear();
  }

  private async ask(call: Call, path: string, body: Uint8Array): Promise<Uint8Array> {
    const stream = await this.send(call, path, body);
    stream.end();
    for await (const bytes of messagesOf(stream, call.signal)) return bytes;
    throw failureOfAnswer(2, "the answer is empty");
  }

  private async send({ url, token, signal }: Call, path: string, body: Uint8Array): Promise<ClientHttp2Stream> {
    const session = await this.sessionFor(url, signal);
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...(token === undefined ? {} : { token }),
    });
    const header = Buffer.alloc(FRAME_HEADER_BYTES);
    header.writeUInt32BE(body.length, 1);
    stream.write(Buffer.concat([header, body]));
    return stream;
  }

  private async sessionFor(url: string, signal: AbortSignal): Promise<ClientHttp2Session> {
    for (let known = this.sessions.get(url); known; known = this.sessions.get(url)) {
      const session = await known;
      if (!session.destroyed && !session.closed) return session;
      this.forget(url, known);
    }
    const opening = this.connect(url, signal);
    this.sessions.set(url, opening);
    opening.catch(() => this.forget(url, opening));
    return opening;
  }

  private forget(url: string, session: Promise<ClientHttp2Session>): void {
    if (this.sessions.get(url) === session) this.sessions.delete(url);
  }

  private connect(url: string, signal: AbortSignal): Promise<ClientHttp2Session> {
    const { promise, resolve, reject } = Promise.withResolvers<ClientHttp2Session>();
    const session = this.http2.connect(url, url.startsWith("https:") ? { ...this.tls } : {});
    const giveUp = () => {
      session.destroy();
      reject(failureOfConnection(signal.reason));
    };
    signal.addEventListener("abort", giveUp, { once: true });
    session.once("connect", () => {
      signal.removeEventListener("abort", giveUp);
      resolve(session);
    });
    session.on("error", (error) => reject(failureOfConnection(error)));
    session.once("close", () => this.forget(url, promise));
    return promise;
  }
}

/** The messages of a stream until it ends; a status other than zero is a failure. */
async function* messagesOf(stream: ClientHttp2Stream, signal: AbortSignal): AsyncIterable<Uint8Array> {
  let failure: EtcdFailure | undefined;
  const cut = () => stream.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  const readStatus = (headers: Readonly<Record<string, unknown>>) => {
    const status = Number(headers["grpc-status"] ?? 0);
    if (status !== 0) failure = failureOfAnswer(status, decodeURIComponent(String(headers["grpc-message"] ?? "")));
  };
  stream.on("response", readStatus);
  stream.on("trailers", readStatus);
  signal.addEventListener("abort", cut, { once: true });
  if (signal.aborted) cut();
  try {
    yield* framesOf(stream);
    if (failure) throw failure;
  } catch (error) {
    throw failure ?? failureOfConnection(signal.aborted ? signal.reason : error);
  } finally {
    signal.removeEventListener("abort", cut);
    stream.on("error", () => {});
    stream.destroy();
  }
}

async function* framesOf(stream: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let chunks: Uint8Array[] = [];
  let size = 0;
  let wanted = FRAME_HEADER_BYTES;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    while (size >= wanted) {
      const bytes = Buffer.concat(chunks);
      const end = FRAME_HEADER_BYTES + bytes.readUInt32BE(1);
      if (size >= end) {
        yield bytes.subarray(FRAME_HEADER_BYTES, end);
        chunks = [bytes.subarray(end)];
        size -= end;
        wanted = FRAME_HEADER_BYTES;
      } else {
        chunks = [bytes];
        wanted = end;
      }
    }
  }
}
