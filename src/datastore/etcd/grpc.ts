/**
 * etcd over gRPC: for members whose JSON gateway is off, for client certificates
 * with a common name, which the gateway rejects, and for a long-running process,
 * because it is faster (docs/decisions/grpc-upgrade.md). One connection per
 * endpoint, kept as long as the process runs.
 */
import type { OutgoingHttpHeaders } from "node:http2";
import { encodeMessage, MessageReader } from "../../grpc/message-frames.ts";
import {
  EtcdFailure,
  failureOfConnection,
  failureOfResponse,
  MOST_RESPONSE_BYTES,
  responseTooLarge,
} from "./failure.ts";
import { connectGrpc, type GrpcConnection } from "./grpc-connection.ts";
import {
  decodeToken,
  decodeTransactionResponse,
  decodeWatchResponse,
  encodeTransaction,
  encodeUser,
  encodeWatch,
} from "./grpc-messages.ts";
import { failureIn, hasStatus, isGrpc, type ResponseHeaders } from "./grpc-response.ts";
import type { TlsFiles } from "./tls-files.ts";
import type {
  Call,
  Transaction,
  TransactionResponse,
  Transport,
  User,
  WatchRequest,
  WatchResponse,
} from "./transport.ts";

/** The connection to an endpoint. */
interface Opening {
  readonly opening: Promise<GrpcConnection>;
  /** Set once it is open. */
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

  /** Whether a request would be sent immediately, to a server that is known to speak HTTP/2. */
  isConnected(url: string): boolean {
    const connection = this.openings.get(url)?.connection;
    return connection?.isOpen === true && connection.hasSettings;
  }

  /** Resolves once the server is known to speak HTTP/2. If that takes too long, the connection is closed. */
  async connect(url: string, signal: AbortSignal): Promise<void> {
    const connection = await this.connectionFor(url, signal);
    const giveUp = () => connection.close();
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    await connection.settingsReceived.finally(() => signal.removeEventListener("abort", giveUp));
  }

  async transact(call: Call, transaction: Transaction): Promise<TransactionResponse> {
    return decodeTransactionResponse(await this.ask(call, "/etcdserverpb.KV/Txn", encodeTransaction(transaction)));
  }

  async authenticate(call: Call, user: User): Promise<string> {
    return decodeToken(await this.ask(call, "/etcdserverpb.Auth/Authenticate", encodeUser(user)));
  }

  async *watch(call: Call, request: WatchRequest): AsyncIterable<WatchResponse> {
    // This side stays open: closing it would end the watch.
    const asked = { path: "/etcdserverpb.Watch/Watch", message: encodeWatch(request), more: "more to come" } as const;
    const connection = await this.connectionFor(call.url, call.signal);
    for await (const bytes of exchange(connection, call, asked)) yield decodeWatchResponse(bytes);
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
    if (answer === undefined) throw failureOfResponse(2, "the response is empty");
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

  /** Another connection may have replaced it in the meantime. */
  private forget(url: string, opening: Opening): void {
    if (this.openings.get(url) === opening) this.openings.delete(url);
  }
}

/** Yields the messages of a response until it ends. A slow reader makes the server wait. */
async function* exchange(
  connection: GrpcConnection,
  call: Call,
  { path, message, more }: Request,
): AsyncIterable<Uint8Array> {
  const { signal } = call;
  const { received } = connection;
  const fields: ResponseHeaders = {};
  const note = (some: ResponseHeaders) => void Object.assign(fields, some);
  const stream = connection.request(headersOf(call, path), signal).on("response", note).on("trailers", note);
  // Only a member with TLS sends it.
  stream.on("response", ({ date }) => call.heard?.(date));
  // An error may occur while nothing reads the stream; the loop below gets it anyway.
  stream.on("error", () => {});
  const giveUp = () => connection.retireIfSilent(received);
  signal.addEventListener("abort", giveUp, { once: true });
  if (more === "last") stream.end(encodeMessage(message));
  else stream.write(encodeMessage(message));
  // If the connection is lost, its streams end without an error.
  let error: unknown = new Error("the connection was closed");
  try {
    const reader = new MessageReader(MOST_RESPONSE_BYTES, responseTooLarge);
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
