/**
 * etcd through gRPC: for members whose JSON gateway is off, for client
 * certificates with a common name, which the gateway refuses, and for a process
 * that stays, because it is faster (docs/decisions/grpc-takes-over.md). One
 * connection per endpoint, kept for the life of the process.
 */
import type { OutgoingHttpHeaders } from "node:http2";
import { EtcdFailure, failureOfAnswer, failureOfConnection } from "./failure.ts";
import { type AnswerFields, encodeMessage, failureIn, hasStatus, isGrpc, MessageReader } from "./grpc-answer.ts";
import { connectGrpc, type GrpcConnection } from "./grpc-connection.ts";
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

/** The connection to an endpoint. */
interface Opening {
  readonly opening: Promise<GrpcConnection>;
  /** Once it is there. */
  connection?: GrpcConnection;
}

interface Request {
  readonly path: string;
  readonly message: Uint8Array;
  /** `more to come`: this side of the stream stays open. */
  readonly more: "last" | "more to come";
}

export class GrpcTransport implements Transport {
  private readonly openings = new Map<string, Opening>();

  constructor(private readonly tls: TlsFiles) {}

  /** Whether a request would be sent at once, to a server that is known to speak HTTP/2. */
  isConnected(url: string): boolean {
    const connection = this.openings.get(url)?.connection;
    return connection?.isOpen === true && connection.isGreeted;
  }

  /** Resolves when the server is known to speak HTTP/2. A connection where that does not happen in time is closed. */
  async connect(url: string, signal: AbortSignal): Promise<void> {
    const connection = await this.connectionFor(url, signal);
    const giveUp = () => connection.close();
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    await connection.greeted.finally(() => signal.removeEventListener("abort", giveUp));
  }

  async transact(call: Call, transaction: Transaction): Promise<TransactionAnswer> {
    return decodeTransactionAnswer(await this.ask(call, "/etcdserverpb.KV/Txn", encodeTransaction(transaction)));
  }

  async authenticate(call: Call, user: User): Promise<string> {
    return decodeToken(await this.ask(call, "/etcdserverpb.Auth/Authenticate", encodeUser(user)));
  }

  async *watch(call: Call, request: WatchRequest): AsyncIterable<WatchAnswer> {
    // This side stays open: its end would end the watch.
    const asked = { path: "/etcdserverpb.Watch/Watch", message: encodeWatch(request), more: "more to come" } as const;
    const connection = await this.connectionFor(call.url, call.signal);
    for await (const bytes of exchange(connection, call, asked)) yield decodeWatchAnswer(bytes);
  }

  close(): void {
    for (const { opening } of this.openings.values()) opening.then((connection) => connection.close()).catch(() => {});
    this.openings.clear();
  }

  private async ask(call: Call, path: string, message: Uint8Array): Promise<Uint8Array> {
    const known = this.openings.get(call.url)?.connection;
    const connection = known?.isOpen ? known : await this.connectionFor(call.url, call.signal);
    let answer: Uint8Array | undefined;
    for await (const bytes of exchange(connection, call, { path, message, more: "last" })) answer = bytes;
    if (answer === undefined) throw failureOfAnswer(2, "the answer is empty");
    return answer;
  }

  private async connectionFor(url: string, signal: AbortSignal): Promise<GrpcConnection> {
    for (let known = this.openings.get(url); known; known = this.openings.get(url)) {
      const connection = await known.opening;
      if (connection.isOpen) return connection;
      this.forget(url, known);
    }
    const opening: Opening = { opening: connectGrpc(url, this.tls, signal) };
    this.openings.set(url, opening);
    try {
      opening.connection = await opening.opening;
      return opening.connection;
    } catch (error) {
      this.forget(url, opening);
      throw failureOfConnection(error);
    }
  }

  /** Another may have taken its place meanwhile. */
  private forget(url: string, opening: Opening): void {
    if (this.openings.get(url) === opening) this.openings.delete(url);
  }
}

/** The messages of an answer until it ends. A slow reader makes the server wait. */
async function* exchange(
  connection: GrpcConnection,
  call: Call,
  { path, message, more }: Request,
): AsyncIterable<Uint8Array> {
  const { signal } = call;
  const { heard } = connection;
  const fields: AnswerFields = {};
  const note = (received: AnswerFields) => void Object.assign(fields, received);
  const stream = connection.request(headersOf(call, path), signal).on("response", note).on("trailers", note);
  // An error may come while nobody reads; the reader below hears of it anyway.
  stream.on("error", () => {});
  const giveUp = () => connection.doubtIfSilent(heard);
  signal.addEventListener("abort", giveUp, { once: true });
  if (more === "last") stream.end(encodeMessage(message));
  else stream.write(encodeMessage(message));
  // A connection that is cut ends its streams without an error.
  let error: unknown = new Error("the connection was closed");
  try {
    const reader = new MessageReader();
    for await (const chunk of stream) yield* reader.read(chunk);
  } catch (thrown) {
    // The text of something else than gRPC looks like a message without end.
    if (thrown instanceof EtcdFailure) throw isGrpc(fields) ? thrown : (failureIn(fields) ?? thrown);
    error = thrown;
  } finally {
    signal.removeEventListener("abort", giveUp);
    stream.destroy();
  }
  if (signal.aborted && !hasStatus(fields)) throw failureOfConnection(signal.reason);
  const isWhole = hasStatus(fields) || (fields[":status"] !== undefined && stream.rstCode === 0);
  const failure = isWhole ? failureIn(fields) : connection.failureOf(stream, error);
  if (failure) throw failure;
}

function headersOf({ token }: Call, path: string): OutgoingHttpHeaders {
  return {
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...(token === undefined ? {} : { token }),
  };
}
