/**
 * Listens for HTTP requests and answers with small pages, one request on each connection.
 *
 * Anybody who reaches the address may try to keep it from others: by connections that say nothing, by requests that never
 * end, by replies that are never read, by many at once. So connections, the time of each and the size of a request are
 * limited, and what follows the first request is not read.
 */
import type { Socket, SocketListener } from "bun";
import { peerOf } from "../ip/peer.ts";
import { type ConnectionLimits, LimitedConnections, withinDescriptors } from "../limited-connections.ts";
import type { Pages } from "./pages.ts";
import { parseRequest, type Refusal } from "./request-head.ts";

export interface ListenAddress {
  readonly hostname: string;
  readonly port: number;
  readonly isExclusive: boolean;
}

export interface PageListener {
  stop(): void;
}

/**
 * The runtime accepts as long as clients wait, and does nothing else meanwhile. After so many, a fresh listener takes over:
 * what else the process has to do gets its turn, and who still waits at the former one is refused.
 */
const MOST_AT_ONCE = 1_024;

const LIMITS = {
  // A turn passes before a new connection is the oldest one: if its request is there, it is read before that.
  most: 2 * MOST_AT_ONCE,
  mostOfPeer: 64,
  mostReplied: 64,
  requestMilliseconds: 5_000,
  replyMilliseconds: 10_000,
} as const satisfies ConnectionLimits;
const SHARE_OF_DESCRIPTORS = 1 / 8;
/** Of one request, without a body. Programs that ask send some hundred bytes. */
const MOST_BYTES = 8 * 1024;

interface PageConnection {
  received: string;
  isAnswered: boolean;
  /** Not accepted by the other side's socket yet. */
  unsent: Uint8Array;
}

type PageSocket = Socket<PageConnection>;

/** Throws if it cannot listen there. */
export function listenForPages(address: ListenAddress, pages: Pages): PageListener {
  return new Listener(address, pages);
}

class Listener implements PageListener {
  private readonly connections = new LimitedConnections<PageSocket>(
    { ...LIMITS, most: withinDescriptors(LIMITS.most, SHARE_OF_DESCRIPTORS) },
    (socket) => void socket.terminate(),
  );
  private listener: SocketListener<PageConnection>;
  private acceptedAtOnce = 0;

  constructor(
    private readonly address: ListenAddress,
    private readonly pages: Pages,
  ) {
    this.listener = this.listen();
  }

  stop(): void {
    this.listener.stop(true);
    this.connections.endAll();
  }

  private listen(): SocketListener<PageConnection> {
    const socket = {
      open: (opened: PageSocket) => this.open(opened),
      data: (from: PageSocket, bytes: Uint8Array) => this.receive(from, bytes),
      drain: (to: PageSocket) => this.send(to),
      end: (from: PageSocket) => void (from.data.isAnswered || from.terminate()),
      close: (closed: PageSocket) => this.connections.left(closed),
      error: (failed: PageSocket) => void failed.terminate(),
    };
    const { isExclusive, ...place } = this.address;
    const sharing = { exclusive: isExclusive, reusePort: !isExclusive };
    return Bun.listen<PageConnection>({ ...place, ...sharing, allowHalfOpen: true, socket });
  }

  private open(socket: PageSocket): void {
    socket.data = { received: "", isAnswered: false, unsent: NOTHING };
    if (!this.connections.admit(socket, peerOf(socket.remoteAddress))) socket.terminate();
    if (this.acceptedAtOnce === 0) setImmediate(() => (this.acceptedAtOnce = 0));
    this.acceptedAtOnce += 1;
    if (this.acceptedAtOnce % MOST_AT_ONCE === 0) this.listenAfresh();
  }

  /** A shared address is never without a listener: another program could take it. */
  private listenAfresh(): void {
    if (this.address.isExclusive) return;
    const former = this.listener;
    this.listener = this.listen();
    former.stop(false);
  }

  private receive(socket: PageSocket, bytes: Uint8Array): void {
    const { data } = socket;
    if (data.isAnswered) return;
    data.received += Buffer.from(bytes).toString("latin1");
    const request = parseRequest(data.received, MOST_BYTES);
    if (request.kind === "incomplete") return;
    data.isAnswered = true;
    data.received = "";
    this.connections.begin(socket);
    data.unsent = request.kind === "refused" ? refusalOf(request) : this.replyTo(request);
    this.send(socket);
  }

  private replyTo({ path, isHead }: { readonly path: string; readonly isHead: boolean }): Uint8Array {
    const page = this.pages(path) ?? NOT_FOUND;
    const text = page.text.endsWith("\n") ? page.text : `${page.text}\n`;
    return responseOf(page.status, text, isHead);
  }

  private send(socket: PageSocket): void {
    const { data } = socket;
    if (!data.isAnswered) return;
    const count = socket.write(data.unsent);
    if (count < 0) return;
    data.unsent = data.unsent.subarray(count);
    this.connections.reply(socket);
    if (data.unsent.length === 0) socket.end();
  }
}

const NOTHING = new Uint8Array(0);
const NOT_FOUND = { status: 404, text: "not found" } as const;
const REASONS: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  431: "Request Header Fields Too Large",
  503: "Service Unavailable",
};

function refusalOf({ status, reason }: Refusal): Uint8Array {
  return responseOf(status, `${reason}\n`, false);
}

function responseOf(status: number, text: string, isHead: boolean): Uint8Array {
  const body = Buffer.from(text);
  const head = [
    `HTTP/1.1 ${status} ${REASONS[status] ?? ""}`,
    "content-type: text/plain;charset=utf-8",
    `content-length: ${body.length}`,
    ...(status === 405 ? ["allow: GET, HEAD"] : []),
    "connection: close",
  ];
  const bytes = Buffer.from(`${head.join("\r\n")}\r\n\r\n`);
  return isHead ? bytes : Buffer.concat([bytes, body]);
}
