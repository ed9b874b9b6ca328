/**
 * One HTTP/2 connection to an etcd member, on the runtime's `node:http2`: adds
 * what the runtime's session does not tell, and interprets its errors.
 *
 * `node:http2` is imported when the first connection is opened: a plugin's own
 * process usually never opens one, and the module takes 6 ms to load.
 */
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";
import { brokenConnection, type EtcdFailure, failureOfConnection, notBegun, withoutHttp2 } from "./failure.ts";
import type { TlsFiles } from "./tls-files.ts";

/**
 * The receive window of a stream. The runtime extends the connection's window for everything that arrives, read or not, so a
 * slow reader blocks no other stream. (After `setLocalWindowSize()` it never extends a stream's window: Bun 1.4.4.)
 */
const STREAM_WINDOW = 1024 * 1024;

/** A server that is alive responds to a ping within this time, even if it is busy. */
const PING_TIMEOUT_MILLISECONDS = 1_000;

const REFUSED_STREAM = 7;

export class GrpcConnection {
  /** Resolves once the server is known to speak HTTP/2; rejects if the connection ends before. */
  readonly settingsReceived: Promise<void>;
  private hasReceivedSettings = false;
  private receivedEvents = 0;
  private lost: unknown;

  constructor(
    private readonly session: ClientHttp2Session,
    socket: Socket,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.settingsReceived = promise;
    // If nothing waits for it, the streams report the end of the connection.
    promise.catch(() => {});
    session.once("remoteSettings", () => {
      this.hasReceivedSettings = true;
      this.receivedEvents += 1;
      resolve();
    });
    session.on("error", (error) => {
      this.lost ??= error;
    });
    session.once("close", () => {
      reject(failureOfConnection(this.lost ?? new Error("the connection was closed")));
      // The runtime only half-closes the socket and waits for the other side to close it.
      socket.destroy();
    });
  }

  /** Whether new requests can be sent. */
  get isOpen(): boolean {
    return !this.session.closed && !this.session.destroyed;
  }

  get hasSettings(): boolean {
    return this.hasReceivedSettings;
  }

  /** Changes whenever something is received from the server. */
  get received(): number {
    return this.receivedEvents;
  }

  /** Sends the headers of a request. Throws `EtcdFailure`; later errors come as events of the stream. */
  request(headers: OutgoingHttpHeaders, signal: AbortSignal): ClientHttp2Stream {
    try {
      const stream = this.session.request(headers, { signal });
      const count = () => {
        this.receivedEvents += 1;
      };
      return stream.on("response", count).on("data", count).on("trailers", count);
    } catch (error) {
      throw notBegun(error);
    }
  }

  /** Why a request failed: `error` is what the runtime reported, if anything. */
  failureOf(stream: ClientHttp2Stream, error: unknown): EtcdFailure {
    // The server may have rejected the client's certificate.
    if (!this.hasReceivedSettings) return failureOfConnection(this.lost ?? error);
    const isOutOfNumbers = error instanceof Error && "code" in error && error.code === "ERR_HTTP2_OUT_OF_STREAMS";
    if (isOutOfNumbers) this.session.close();
    const isRefused = stream.pending || stream.rstCode === REFUSED_STREAM;
    return isRefused ? notBegun(error) : brokenConnection(error);
  }

  /**
   * If nothing was received since `receivedBefore`, the connection may be dead: it takes no new requests. Requests in
   * progress continue if the server responds to a ping: it may just be slow.
   */
  retireIfSilent(receivedBefore: number): void {
    const isSilent = () => this.receivedEvents === receivedBefore;
    if (!isSilent() || !this.isOpen) return;
    this.session.ping((error) => {
      if (error === null) this.receivedEvents += 1;
    });
    this.session.close();
    setTimeout(() => isSilent() && this.close(), PING_TIMEOUT_MILLISECONDS).unref();
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
  socket.once("close", () => reject(notBegun(new Error("the connection was closed while it was being opened"))));
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
  /** The event that reports that the socket is connected. */
  readonly event: "connect" | "secureConnect";
  /** Whether TLS negotiated HTTP/2. Without TLS there is no negotiation: the server's first bytes will tell. */
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
