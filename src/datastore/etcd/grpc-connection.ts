/**
 * One HTTP/2 connection to a member of etcd, on the runtime's `node:http2`: what
 * is known about it beyond the runtime's session, and what its errors prove.
 *
 * `node:http2` is imported when the first connection is made: a plugin's own
 * process usually never makes one, and the module takes 6 ms to load.
 */
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";
import { brokenConnection, type EtcdFailure, failureOfConnection, notBegun, withoutHttp2 } from "./failure.ts";
import type { TlsFiles } from "./tls-files.ts";

/**
 * A stream may be this far ahead of its reader. The runtime grants the connection what arrives, read or not: a slow
 * reader holds up no other stream. (After `setLocalWindowSize()` it never grants a stream anything: Bun 1.4.4.)
 */
const STREAM_WINDOW = 1024 * 1024;

/** A server that is alive answers a ping within this time, however busy it is. */
const SIGN_OF_LIFE_MILLISECONDS = 1_000;

const REFUSED_STREAM = 7;

export class GrpcConnection {
  /** Settled once the server is known to speak HTTP/2; rejects if the connection ends before. */
  readonly greeted: Promise<void>;
  private hasGreeted = false;
  private heardSoFar = 0;
  private lost: unknown;

  constructor(
    private readonly session: ClientHttp2Session,
    socket: Socket,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.greeted = promise;
    // Whoever does not wait for it learns of an end from the streams.
    promise.catch(() => {});
    session.once("remoteSettings", () => {
      this.hasGreeted = true;
      this.heardSoFar += 1;
      resolve();
    });
    session.on("error", (error) => {
      this.lost ??= error;
    });
    session.once("close", () => {
      reject(failureOfConnection(this.lost ?? new Error("the connection was closed")));
      // The runtime only ends it, and waits for the other side to do the same.
      socket.destroy();
    });
  }

  /** Whether a new request has a chance. */
  get isOpen(): boolean {
    return !this.session.closed && !this.session.destroyed;
  }

  get isGreeted(): boolean {
    return this.hasGreeted;
  }

  /** Changes whenever something is heard from the server. */
  get heard(): number {
    return this.heardSoFar;
  }

  /** Sends the head of a request. Throws `EtcdFailure`; later errors come as events of the stream. */
  request(headers: OutgoingHttpHeaders, signal: AbortSignal): ClientHttp2Stream {
    try {
      const stream = this.session.request(headers, { signal });
      const hear = () => {
        this.heardSoFar += 1;
      };
      return stream.on("response", hear).on("data", hear).on("trailers", hear);
    } catch (error) {
      throw notBegun(error);
    }
  }

  /** Why a request came to nothing: `error` is what the runtime said, if anything. */
  failureOf(stream: ClientHttp2Stream, error: unknown): EtcdFailure {
    // The server may have refused the client's certificate.
    if (!this.hasGreeted) return failureOfConnection(this.lost ?? error);
    const isOutOfNumbers = error instanceof Error && "code" in error && error.code === "ERR_HTTP2_OUT_OF_STREAMS";
    if (isOutOfNumbers) this.session.close();
    const isRefused = stream.pending || stream.rstCode === REFUSED_STREAM;
    return isRefused ? notBegun(error) : brokenConnection(error);
  }

  /**
   * A connection on which nothing was heard since may be dead without anybody having noticed: it takes no new requests.
   * The requests under way go on if the server answers a ping: it may just be slow.
   */
  doubtIfSilent(heardBefore: number): void {
    const isSilent = () => this.heardSoFar === heardBefore;
    if (!isSilent() || !this.isOpen) return;
    this.session.ping((error) => {
      if (error === null) this.heardSoFar += 1;
    });
    this.session.close();
    setTimeout(() => isSilent() && this.close(), SIGN_OF_LIFE_MILLISECONDS).unref();
  }

  close(): void {
    this.session.destroy();
  }
}

/** Rejects with the error of the socket or of TLS, or with the reason of `signal`. */
export async function connectGrpc(url: string, tls: TlsFiles, signal: AbortSignal): Promise<GrpcConnection> {
  const { connect } = await import("node:http2");
  const { socket, event, isAgreed } = await openSocket(new URL(url), tls);
  const { promise, resolve, reject } = Promise.withResolvers<GrpcConnection>();
  const giveUp = () => {
    socket.destroy();
    reject(signal.reason);
  };
  if (signal.aborted) giveUp();
  signal.addEventListener("abort", giveUp, { once: true });
  socket.once("error", reject);
  socket.once("close", () => reject(notBegun(new Error("the connection was closed at its beginning"))));
  socket.once(event, () => {
    if (!isAgreed()) return reject(withoutHttp2());
    const settings = { enablePush: false, initialWindowSize: STREAM_WINDOW };
    const session = connect(url, { createConnection: () => socket, settings });
    const connection = new GrpcConnection(session, socket);
    session.once("connect", () => resolve(connection));
  });
  return promise
    .catch((error) => {
      socket.destroy();
      throw error;
    })
    .finally(() => signal.removeEventListener("abort", giveUp));
}

interface Opened {
  readonly socket: Socket;
  /** Says that the socket is connected. */
  readonly event: "connect" | "secureConnect";
  /** Without TLS nothing is agreed: the server's first bytes will tell. */
  isAgreed(): boolean;
}

async function openSocket({ protocol, hostname, port }: URL, tls: TlsFiles): Promise<Opened> {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol === "http:") {
    const { connect } = await import("node:net");
    const socket = connect({ host, port: Number(port || 80), noDelay: true });
    return { socket, event: "connect", isAgreed: () => true };
  }
  const { connect } = await import("node:tls");
  const socket = connect({ host, port: Number(port || 443), ALPNProtocols: ["h2"], ...tls, rejectUnauthorized: true });
  socket.setNoDelay(true);
  return { socket, event: "secureConnect", isAgreed: () => socket.alpnProtocol === "h2" };
}
