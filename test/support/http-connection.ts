/**
 * An HTTP/1.1 client of the test itself inside a network namespace, one request after another on a connection that it
 * keeps: thousands of requests need no process of their own. The path is sent as it is given.
 */
import type { Socket } from "bun";
import { insideNetns } from "./namespace-sockets.ts";

export interface HttpTarget {
  /** The path of the client's network namespace. */
  readonly netns: string;
  readonly address: string;
  readonly port: number;
  /** The texts of the client's certificate and key; absent: without TLS. The server's certificate is not checked. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

export interface HttpQuestion {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The status of the response, or what happened instead. */
export type HttpOutcome = number | "refused" | "closed" | "silence";

export interface HttpConnection extends Disposable {
  /** Connects if there is no connection. */
  ask(question: HttpQuestion): Promise<HttpOutcome>;
}

const PATIENCE_MILLISECONDS = 1_000;

export function openHttpConnection(target: HttpTarget, patienceMilliseconds = PATIENCE_MILLISECONDS): HttpConnection {
  let connection: Connection | undefined;
  return {
    async ask({ method, path, headers = {} }) {
      connection ??= connectTo(target);
      const lines = Object.entries({ host: "application", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
      const outcome = await connection.exchange(
        { head: `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`, hasBody: method !== "HEAD" },
        patienceMilliseconds,
      );
      if (typeof outcome !== "number" || connection.hasEnded()) {
        connection.end();
        connection = undefined;
      }
      return outcome;
    },
    [Symbol.dispose]: () => connection?.end(),
  };
}

interface Connection {
  exchange(request: { readonly head: string; readonly hasBody: boolean }, limit: number): Promise<HttpOutcome>;
  hasEnded(): boolean;
  end(): void;
}

function connectTo({ netns, address, port, certificate }: HttpTarget): Connection {
  let received = "";
  let ended: "refused" | "closed" | undefined;
  let onChange = () => {};
  const finish = (how: "refused" | "closed") => {
    ended ??= how;
    onChange();
  };
  const tls = certificate === undefined ? undefined : { ...certificate, rejectUnauthorized: false };
  const connected = Promise.withResolvers<Socket | undefined>();
  const connecting = insideNetns(netns, () =>
    Bun.connect({
      hostname: address,
      port,
      ...(tls === undefined ? {} : { tls }),
      socket: {
        open: (socket) => {
          if (tls === undefined) connected.resolve(socket);
        },
        handshake: (socket) => connected.resolve(socket),
        data: (_socket, data) => {
          received += data.toString("latin1");
          onChange();
        },
        close: () => finish("closed"),
        error: () => finish("closed"),
        connectError: () => finish("refused"),
      },
    }),
  );
  connecting.catch(() => finish("refused"));
  return {
    hasEnded: () => ended !== undefined,
    end: () => void connecting.then((socket) => socket.terminate()).catch(() => {}),
    exchange({ head, hasBody }, limit) {
      const { promise, resolve } = Promise.withResolvers<HttpOutcome>();
      const silence = setTimeout(() => resolve("silence"), limit);
      onChange = () => {
        const response = responseIn(received, hasBody);
        if (response !== undefined) {
          received = received.slice(response.length);
          resolve(response.status);
        } else if (ended !== undefined) resolve(ended);
      };
      onChange();
      connected.promise.then((socket) => socket?.write(head));
      return promise.finally(() => clearTimeout(silence));
    },
  };
}

/** The first response, if it is complete. */
function responseIn(text: string, hasBody: boolean): { readonly status: number; readonly length: number } | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = text.slice(0, end).toLowerCase();
  const status = Number(/^http\/1\.1 (\d+)/.exec(head)?.[1]);
  const start = end + 4;
  if (!hasBody) return { status, length: start };
  if (head.includes("transfer-encoding: chunked")) {
    const last = text.indexOf("0\r\n\r\n", start);
    return last < 0 ? undefined : { status, length: last + 5 };
  }
  const length = start + Number(/^content-length: (\d+)/m.exec(head)?.[1] ?? 0);
  return text.length < length ? undefined : { status, length };
}
