/**
 * Listens for HTTP/1.1 requests, with TLS or without, for a server whose answers may go on for hours: the certificate is replaced,
 * and the address too, while answers are under way. Small pages are served by src/health.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createPlainServer, type Server as PlainServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { peerOf } from "../ip/peer.ts";
import { type ConnectionLimits, LimitedConnections } from "../limited-connections.ts";

export interface WebListenerOptions {
  /** Answers each request, also with its own failures. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void;
  /** Request line, headers and trailers. */
  readonly mostHeadBytes: number;
  /**
   * Absent: connections are not limited. Otherwise each request is reported by `begin()`, and a connection has one at a time: the
   * answers to more would be kept in memory until the first one has ended.
   */
  readonly limits?: ConnectionLimits;
}

export interface ListenAt {
  readonly hostname: string;
  readonly port: number;
  /** Absent: plain HTTP. */
  readonly tls?: TlsOptions;
}

/** No client that may be served needs an older one. */
const OLDEST_TLS = "TLSv1.2";

export class WebListener {
  private readonly web: Server;
  private readonly connections: LimitedConnections<Socket> | undefined;
  private readonly busy = new WeakSet<Socket>();
  private listener: PlainServer | undefined;

  constructor({ serve, mostHeadBytes, limits }: WebListenerOptions) {
    this.web = createServer({ maxHeaderSize: mostHeadBytes }, (request, response) => {
      if (limits === undefined || this.isOnlyOne(request, response)) serve(request, response);
    });
    this.connections = limits && new LimitedConnections<Socket>(limits, (socket) => void socket.destroy());
  }

  /** From now on there. Answers that are under way go on. */
  listen({ hostname, port, tls }: ListenAt): Promise<void> {
    this.listener?.close();
    const accept = (socket: Socket) => void this.web.emit("connection", socket);
    const listener =
      tls === undefined
        ? createPlainServer(accept)
        : createTlsServer({ ...tls, minVersion: OLDEST_TLS, ALPNProtocols: ["http/1.1"] }, accept);
    this.listener = listener;
    listener.on("connection", (socket) => this.admit(socket));
    listener.on("tlsClientError", (_failure, socket: Socket) => void socket.destroy());
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    listener.once("error", reject);
    listener.listen({ host: hostname, port }, () => resolve());
    return promise;
  }

  /** As the kernel chose it, of port 0. */
  get port(): number {
    const address = this.listener?.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** The request is complete: its connection stays open for the answer, and has a limited time after it. */
  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    this.connections?.begin(socket);
    response.once("finish", () => this.connections?.reply(socket));
  }

  close(): void {
    this.listener?.close();
    this.listener = undefined;
    this.connections?.endAll();
    this.web.closeAllConnections();
  }

  private isOnlyOne({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (this.busy.has(socket)) {
      socket.destroy();
      return false;
    }
    this.busy.add(socket);
    response.once("close", () => this.busy.delete(socket));
    return true;
  }

  private admit(socket: Socket): void {
    // Whatever happens to it, it is closed: nobody else is told.
    socket.on("error", () => {});
    if (this.connections === undefined) return;
    if (!this.connections.admit(socket, peerOf(socket.remoteAddress))) socket.destroy();
    else socket.once("close", () => this.connections?.left(socket));
  }
}

/** At all addresses of both families; a kernel without IPv6 has those of one. */
export async function onAnyAddress(listen: (hostname: string) => Promise<void>): Promise<void> {
  try {
    await listen("::");
  } catch {
    await listen("0.0.0.0");
  }
}
