/**
 * Connections of all kinds between network namespaces, made by sockets of the test itself: exchanges of some bytes over TCP, one that
 * is refused, one that nobody answers, datagrams with and without an answer, and pings.
 */

import type { Host } from "../support/host.ts";
import { insideNetns } from "../support/namespace-sockets.ts";

/** Every end listens there, with TCP and UDP, and answers. */
export const ANSWERING_PORTS = [80, 81] as const;
/** Datagrams to it are received, and never answered. */
export const SILENT_PORT = 90;
/** Nobody listens. */
export const CLOSED_PORT = 99;
/** The ends drop what comes to it, before any socket. */
export const DROPPED_PORT = 97;

export interface Place {
  /** Path of its network namespace. */
  readonly netns: string;
}

export interface Attempt {
  readonly from: Place;
  readonly address: string;
  readonly protocol: "tcp" | "udp" | "icmp";
  /** 0 for ICMP. */
  readonly port: number;
  /** Of TCP: bytes to send, and to be sent back. Of UDP and ICMP: the number of packets is 1 + `up` % 3. */
  readonly up: number;
  readonly down: number;
  /** Of TCP: what is sent last waits for it. */
  readonly pause?: Promise<void>;
}

/** Longer than the repetition of a first packet that is lost on the way. */
const EXCHANGE_MILLISECONDS = 30_000;

/** Listens on all ports of an end. */
export async function serveTraffic({ netns }: Place): Promise<Disposable> {
  const stack = new DisposableStack();
  for (const port of ANSWERING_PORTS) {
    const tcp = insideNetns(netns, () => Bun.listen({ hostname: "::", port, socket: exchangeServer() }));
    stack.defer(() => tcp.stop(true));
    stack.defer(
      await serveDatagrams(netns, port, (socket, data, from) => void socket.send(data, from.port, from.address)),
    );
  }
  stack.defer(await serveDatagrams(netns, SILENT_PORT, () => {}));
  return stack;
}

interface Sender {
  readonly port: number;
  readonly address: string;
}

async function serveDatagrams(
  netns: string,
  port: number,
  received: (socket: Bun.udp.Socket<"buffer">, data: Buffer, from: Sender) => void,
): Promise<() => void> {
  const socket = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname: "::",
      port,
      socket: {
        data(own, data, fromPort, address) {
          try {
            received(own, data, { port: fromPort, address });
          } catch {
            // A rule on the way out drops it.
          }
        },
        error: () => {},
      },
    }),
  );
  return () => socket.close();
}

interface Exchange {
  received: number;
  expected: number;
  left: Uint8Array;
}

/** The first eight bytes say how many bytes follow, and how many are to be sent back after them. */
function exchangeServer(): Bun.SocketHandler<Exchange> {
  return {
    open(socket) {
      socket.data = { received: 0, expected: -1, left: new Uint8Array() };
    },
    data(socket, data) {
      const exchange = socket.data;
      if (exchange.expected < 0) {
        exchange.expected = data.readUInt32BE(0);
        exchange.left = new Uint8Array(data.readUInt32BE(4));
      }
      exchange.received += data.length;
      if (exchange.received >= 8 + exchange.expected) flush(socket, exchange);
    },
    drain: (socket) => flush(socket, socket.data),
    error: () => {},
  };
}

/** Ends the connection once everything is written. */
function flush(socket: Bun.Socket<Exchange>, exchange: Exchange): void {
  const written = socket.write(exchange.left);
  exchange.left = exchange.left.subarray(Math.max(written, 0));
  if (exchange.left.length === 0) socket.end();
}

/** Resolves when nothing more is sent. Whether it succeeded is not asked: the capture knows. */
export async function attempt(host: Host, tried: Attempt): Promise<void> {
  const { from, address, protocol, port, up } = tried;
  if (protocol === "tcp") return await exchange(tried);
  if (protocol === "udp") return await sendDatagrams(from, { address, port, count: 1 + (up % 3) });
  const inside = from.netns === host.netns ? [] : ["nsenter", `--net=${pathInHost(from.netns)}`];
  await host.run([...inside, "ping", "-c", String(1 + (up % 3)), "-i", "0.2", "-W", "0.5", address]);
}

/** The path of a namespace as processes of the host see it. */
function pathInHost(netns: string): string {
  return netns.slice(netns.indexOf("/run/netns/"));
}

async function exchange({ from, address, port, up, down, pause }: Attempt): Promise<void> {
  const over = Promise.withResolvers<void>();
  const message = Buffer.alloc(8 + up);
  message.writeUInt32BE(up, 0);
  message.writeUInt32BE(down, 4);
  let left: Uint8Array = pause === undefined ? message : new Uint8Array();
  const write = (socket: Bun.Socket) => {
    left = left.subarray(Math.max(socket.write(left), 0));
  };
  const connecting = insideNetns(from.netns, () =>
    Bun.connect({
      hostname: address,
      port,
      socket: {
        open(socket) {
          write(socket);
          void pause?.then(() => {
            left = message;
            write(socket);
          });
        },
        drain: write,
        data: () => {},
        close: () => over.resolve(),
        error: () => over.resolve(),
        connectError: () => over.resolve(),
      },
    }),
  );
  const stop = () => void connecting.then((socket) => socket.terminate()).catch(() => {});
  connecting.catch(() => over.resolve());
  const limit = setTimeout(() => over.resolve(), EXCHANGE_MILLISECONDS);
  await over.promise;
  clearTimeout(limit);
  stop();
}

async function sendDatagrams(
  from: Place,
  { address, port, count }: { readonly address: string; readonly port: number; readonly count: number },
): Promise<void> {
  const hostname = address.includes(":") ? "::" : "0.0.0.0";
  const socket = await insideNetns(from.netns, () =>
    Bun.udpSocket({ hostname, port: 0, socket: { data: () => {}, error: () => {} } }),
  );
  for (let sent = 0; sent < count; sent++) {
    try {
      socket.send(`datagram ${sent}`, port, address);
    } catch {
      // Refused by an earlier answer, or by a rule on the way out.
    }
    await Bun.sleep(60);
  }
  await Bun.sleep(150);
  socket.close();
}
