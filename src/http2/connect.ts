/**
 * A socket with HTTP/2 on it, plain or with TLS. Imports what it needs when it
 * is called: most processes never do.
 */
import type { Socket } from "node:net";
import { Http2Connection } from "./connection.ts";
import { Http2Failure } from "./failure.ts";

/** Certificates in PEM, where TLS is spoken. */
export interface TlsMeans {
  readonly key?: string;
  readonly cert?: string;
  readonly ca?: string[];
}

/** Connected once it is there. Rejects with the error of the socket or of TLS, or with the reason of `signal`. */
export async function connectHttp2(url: string, tls: TlsMeans, signal: AbortSignal): Promise<Http2Connection> {
  const { promise, resolve, reject } = Promise.withResolvers<Http2Connection>();
  const { socket, event, isAgreed } = await openSocket(new URL(url), tls);
  const giveUp = () => {
    socket.destroy();
    reject(signal.reason);
  };
  if (signal.aborted) giveUp();
  signal.addEventListener("abort", giveUp, { once: true });
  socket.once("error", reject);
  socket.once("close", () => reject(new Http2Failure("refused", "the connection was closed at its beginning")));
  socket.once(event, () => {
    signal.removeEventListener("abort", giveUp);
    if (isAgreed()) return resolve(speakOn(socket));
    reject(new Http2Failure("unspoken", "the server does not agree to HTTP/2"));
    socket.destroy();
  });
  return promise;
}

interface Opened {
  readonly socket: Socket;
  /** That it is there. */
  readonly event: "connect" | "secureConnect";
  /** Without TLS nobody is asked: what the other side says first will tell. */
  isAgreed(): boolean;
}

async function openSocket({ protocol, hostname, port }: URL, tls: TlsMeans): Promise<Opened> {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol === "http:") {
    const { connect } = await import("node:net");
    const socket = connect({ host, port: Number(port || 80), noDelay: true });
    return { socket, event: "connect", isAgreed: () => true };
  }
  const { connect } = await import("node:tls");
  const socket = connect({ host, port: Number(port || 443), ALPNProtocols: ["h2"], ...tls });
  socket.setNoDelay(true);
  return { socket, event: "secureConnect", isAgreed: () => socket.alpnProtocol === "h2" };
}

function speakOn(socket: Socket): Http2Connection {
  const connection = new Http2Connection({
    write: (bytes) => void socket.write(bytes),
    close: () => void socket.destroy(),
  });
  socket.on("data", (bytes: Uint8Array) => connection.receive(bytes));
  socket.on("error", (error) => connection.lost(error));
  socket.on("close", () => connection.lost(new Http2Failure("broken", "the connection was closed")));
  return connection;
}
