/**
 * etcd through gRPC: for members whose JSON gateway is off, for client
 * certificates with a common name, which the gateway refuses, and for a process
 * that stays, because it is quicker (docs/decisions/grpc-takes-over.md). One
 * connection per endpoint, kept for the life of the process.
 */
import { connectHttp2 } from "../../http2/connect.ts";
import type { Http2Connection } from "../../http2/connection.ts";
import { encodeFields } from "../../http2/header-fields.ts";
import type { Opening } from "../../http2/stream.ts";
import { type EtcdFailure, failureOfAnswer, failureOfConnection } from "./failure.ts";
import { encodeMessage, readAnswer } from "./grpc-answer.ts";
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

/** A server that is there answers a ping within, whatever else it is busy with. */
const SIGN_OF_LIFE_MILLISECONDS = 1_000;

/** To an endpoint. */
interface Way {
  readonly opening: Promise<Http2Connection>;
  /** Once it is there. */
  connection?: Http2Connection;
}

/** Header fields as they were last sent to a path. */
interface WrittenFields extends Pick<Call, "url" | "token"> {
  readonly bytes: Uint8Array;
}

export class GrpcTransport implements Transport {
  private readonly ways = new Map<string, Way>();
  private readonly fields = new Map<string, WrittenFields>();

  constructor(private readonly tls: TlsFiles) {}

  /** Whether a request would be on its way at once, to a server that is known to speak HTTP/2. */
  isConnected(url: string): boolean {
    const connection = this.ways.get(url)?.connection;
    return connection?.isOpen === true && connection.isGreeted;
  }

  /** Until the server is known to speak HTTP/2. A connection where that is not heard in time is closed. */
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
    const connection = await this.connectionFor(call.url, call.signal);
    // This side stays open: its end would end the watch.
    const body = encodeMessage(encodeWatch(request));
    const opening = { fields: this.fieldsFor(call, "/etcdserverpb.Watch/Watch"), body, more: "more to come" } as const;
    for await (const bytes of messagesOf(connection, opening, call.signal)) yield decodeWatchAnswer(bytes);
  }

  close(): void {
    for (const { opening } of this.ways.values()) opening.then((connection) => connection.close()).catch(() => {});
    this.ways.clear();
  }

  private async ask(call: Call, path: string, message: Uint8Array): Promise<Uint8Array> {
    const connection = this.ways.get(call.url)?.connection;
    const usable = connection?.isOpen ? connection : await this.connectionFor(call.url, call.signal);
    const opening = { fields: this.fieldsFor(call, path), body: encodeMessage(message), more: "last" } as const;
    return askOnce(usable, opening, call.signal);
  }

  /** The same for one call after another, but for a new token. */
  private fieldsFor(call: Call, path: string): Uint8Array {
    const known = this.fields.get(path);
    if (known?.url === call.url && known.token === call.token) return known.bytes;
    const bytes = fieldsOf(call, path);
    this.fields.set(path, { url: call.url, token: call.token, bytes });
    return bytes;
  }

  private async connectionFor(url: string, signal: AbortSignal): Promise<Http2Connection> {
    const known = this.ways.get(url);
    if (known !== undefined) {
      const connection = await known.opening;
      if (connection.isOpen) return connection;
      this.forget(url, known);
      return this.connectionFor(url, signal);
    }
    const way: Way = { opening: connectHttp2(url, this.tls, signal) };
    this.ways.set(url, way);
    try {
      way.connection = await way.opening;
      return way.connection;
    } catch (error) {
      this.forget(url, way);
      throw failureOfConnection(error);
    }
  }

  /** Another may have taken its place meanwhile. */
  private forget(url: string, way: Way): void {
    if (this.ways.get(url) === way) this.ways.delete(url);
  }
}

function fieldsOf({ url, token }: Call, path: string): Uint8Array {
  const { protocol, host } = new URL(url);
  return encodeFields([
    [":method", "POST"],
    [":scheme", protocol.replace(":", "")],
    [":path", path],
    [":authority", host],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...(token === undefined ? [] : ([["token", token]] as const)),
  ]);
}

/** One request, one answer. */
async function askOnce(connection: Http2Connection, opening: Opening, signal: AbortSignal): Promise<Uint8Array> {
  requireWanted(signal);
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const { heard } = connection;
  let answer: Uint8Array | undefined;
  const events = readAnswer({
    message: (bytes) => {
      answer = bytes;
    },
    end: (failure) => {
      if (answer === undefined || failure) reject(failure ?? failureOfAnswer(2, "the answer is empty"));
      else resolve(answer);
    },
  });
  const stream = connection.open(opening, {
    ...events,
    data: (bytes) => {
      stream.taken(bytes.length);
      events.data(bytes);
    },
  });
  const giveUp = () => {
    stream.cancel();
    doubtIfSilent(connection, heard);
    reject(failureOfConnection(signal.reason));
  };
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

/** The messages of a stream until it ends. Whoever takes them slowly lets the other side wait. */
async function* messagesOf(
  connection: Http2Connection,
  opening: Opening,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  requireWanted(signal);
  const { heard } = connection;
  const waiting: Uint8Array[] = [];
  let untaken = 0;
  let end: { readonly failure: EtcdFailure | undefined } | undefined;
  let wake = () => {};
  const stop = (failure: EtcdFailure | undefined) => {
    end ??= { failure };
    wake();
  };
  const events = readAnswer({ message: (bytes) => waiting.push(bytes), end: stop });
  const takeUp = () => {
    stream.taken(untaken);
    untaken = 0;
  };
  const stream = connection.open(opening, {
    ...events,
    data: (bytes) => {
      untaken += bytes.length;
      events.data(bytes);
      // A message that has begun must be let in.
      if (waiting.length === 0) takeUp();
      wake();
    },
  });
  const giveUp = () => {
    // Now: nobody may ask for the next message any more.
    stream.cancel();
    doubtIfSilent(connection, heard);
    stop(failureOfConnection(signal.reason));
  };
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    for (;;) {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) yield next;
      takeUp();
      if (end?.failure) throw end.failure;
      if (end) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    signal.removeEventListener("abort", giveUp);
    stream.cancel();
  }
}

/** Whoever waited for the connection may have given up meanwhile. */
function requireWanted(signal: AbortSignal): void {
  if (signal.aborted) throw failureOfConnection(signal.reason);
}

/**
 * A connection on which nothing was heard since may be dead without anybody having said so: what follows goes another
 * way. What is under way beside it ends only where the server does not even say that it is there: it may just be slow.
 */
function doubtIfSilent(connection: Http2Connection, heardBefore: number): void {
  const isSilent = () => connection.heard === heardBefore;
  if (!isSilent() || !connection.isOpen) return;
  connection.retire();
  setTimeout(() => isSilent() && connection.close(), SIGN_OF_LIFE_MILLISECONDS).unref();
}
