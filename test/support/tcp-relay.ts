/**
 * Makes a server on this machine's loopback reachable at the same address in another
 * network namespace: the test itself listens there and passes the bytes on.
 */
import { connect, createServer, type Socket } from "node:net";
import { insideNetns } from "./namespace-sockets.ts";

const LOOPBACK = "127.0.0.1";

/** `netns`: the path of the namespace. */
export async function relayIntoNetns(netns: string, port: number): Promise<Disposable> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, LOOPBACK);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  const listening = Promise.withResolvers<void>();
  server.once("listening", listening.resolve).once("error", listening.reject);
  // The socket is bound before `listen` returns.
  insideNetns(netns, () => void server.listen(port, LOOPBACK));
  await listening.promise;
  return {
    [Symbol.dispose]() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

interface RelayedEnd {
  other: Bun.Socket<RelayedEnd> | undefined;
  /** Not sent to this end yet. */
  waiting: Uint8Array[];
}

/** The other way round: a server of the namespace, at a free port of this machine's loopback. */
export async function relayFromNetns(
  netns: string,
  target: { readonly host: string; readonly port: number },
): Promise<Disposable & { readonly port: number }> {
  const open = new Set<Bun.Socket<RelayedEnd>>();
  const close = (socket: Bun.Socket<RelayedEnd>) => {
    open.delete(socket);
    socket.data.other?.end();
  };
  const handlers = {
    data: (socket: Bun.Socket<RelayedEnd>, part: Uint8Array) => {
      const { other } = socket.data;
      if (other !== undefined) send(other, part);
      // Until the server has been reached.
      else socket.data.waiting.push(new Uint8Array(part));
    },
    drain: (socket: Bun.Socket<RelayedEnd>) => send(socket),
    close,
    error: close,
  };
  const connectTo = (client: Bun.Socket<RelayedEnd>) =>
    // The socket is created before it returns, in the namespace.
    insideNetns(netns, () =>
      Bun.connect<RelayedEnd>({
        ...{ hostname: target.host, port: target.port, data: { other: client, waiting: [] } },
        socket: {
          ...handlers,
          open: (upstream) => {
            open.add(upstream);
            const early = client.data.waiting.splice(0);
            client.data.other = upstream;
            for (const part of early) send(upstream, part);
          },
        },
      }),
    );
  const server = Bun.listen<RelayedEnd>({
    hostname: LOOPBACK,
    port: 0,
    socket: {
      ...handlers,
      open: (client) => {
        open.add(client);
        client.data = { other: undefined, waiting: [] };
        connectTo(client).catch(() => client.end());
      },
    },
  });
  return {
    port: server.port,
    [Symbol.dispose]() {
      server.stop(true);
      for (const socket of open) socket.terminate();
    },
  };
}

function send(socket: Bun.Socket<RelayedEnd>, part?: Uint8Array): void {
  const { waiting } = socket.data;
  // What the handler was given is used again for the next part.
  if (part !== undefined) waiting.push(new Uint8Array(part));
  for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
    const sent = Math.max(socket.write(first), 0);
    if (sent < first.length) {
      waiting[0] = first.subarray(sent);
      return;
    }
    waiting.shift();
  }
}
