/**
 * Sockets of the test itself inside network namespaces: a socket stays in the
 * namespace it was created in, so servers and clients need no process of their own.
 */
import { closeNetns, type Netns, openNetns, runInNetns } from "../../src/linux/netns.ts";
import { patience } from "./proof-size.ts";

/** The outcome of a request. */
export type Reply = string;

/** How long to wait before reporting silence. */
const PATIENCE_MILLISECONDS = 1_000 * patience;

/** The caller closes it. */
export function requireNetns(path: string): Netns {
  const opened = openNetns(path);
  if (opened === undefined) throw new Error(`no namespace ${path}`);
  return opened;
}

/** Runs a function that opens a socket inside the namespace. */
export function insideNetns<T>(netns: string, open: () => T): T {
  const opened = requireNetns(netns);
  try {
    return runInNetns(opened, () => ({ value: open() })).value;
  } finally {
    closeNetns(opened);
  }
}

/** Replies to every TCP connection with the server's name and the client's address. */
export function serveTcp(netns: string, name: string, port: number, hostname = "::"): Disposable {
  const server = insideNetns(netns, () =>
    Bun.listen({
      hostname,
      port,
      socket: {
        open: (socket) => void socket.end(`${name} ${plain(socket.remoteAddress)}`),
        data: () => {},
        // The client has disconnected.
        error: () => {},
      },
    }),
  );
  return { [Symbol.dispose]: () => server.stop(true) };
}

/** Replies to every datagram with the server's name and the client's address. */
export async function serveUdp(netns: string, name: string, port: number, hostname = "::"): Promise<Disposable> {
  const server = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname,
      port,
      socket: {
        data: (socket, _data, fromPort, fromAddress) => {
          try {
            sendDatagram(socket, `${name} ${plain(fromAddress)}`, fromPort, fromAddress);
          } catch {
            // A rule on the way out drops it.
          }
        },
        error: () => {},
      },
    }),
  );
  return { [Symbol.dispose]: () => server.close() };
}

export interface UdpListener extends Disposable {
  /** The senders of all datagrams so far. */
  readonly senders: readonly string[];
}

/** Listens without answering. */
export async function hearUdp(netns: string, port: number, hostname = "::"): Promise<UdpListener> {
  const senders: string[] = [];
  const socket = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname,
      port,
      socket: { data: (_socket, _data, _port, from) => void senders.push(plain(from)) },
    }),
  );
  return { senders, [Symbol.dispose]: () => socket.close() };
}

/** The reply of a TCP server, `refused`, or `silence`. */
export function askTcp(netns: string, hostname: string, port: number): Promise<Reply> {
  return askTcpWithin(PATIENCE_MILLISECONDS, netns, hostname, port);
}

export async function askTcpWithin(
  milliseconds: number,
  netns: string,
  hostname: string,
  port: number,
): Promise<Reply> {
  const answer = Promise.withResolvers<Reply>();
  let text = "";
  const connecting = insideNetns(netns, () =>
    Bun.connect({
      hostname,
      port,
      socket: {
        data: (_socket, data) => {
          text += data.toString();
        },
        close: () => answer.resolve(text),
        error: () => answer.resolve("broken"),
        connectError: () => answer.resolve("refused"),
      },
    }),
  );
  connecting.then(
    (socket) => answer.promise.then(() => socket.terminate()),
    () => answer.resolve("refused"),
  );
  const silence = setTimeout(() => {
    answer.resolve("silence");
    connecting.then((socket) => socket.terminate()).catch(() => {});
  }, milliseconds);
  const reply = await answer.promise;
  clearTimeout(silence);
  return reply;
}

export interface UdpClient extends Disposable {
  /** The next reply, `silence`, or `not permitted`. Every request is sent from the same port. */
  ask(hostname: string, port: number): Promise<Reply>;
}

export async function openUdpClient(
  netns: string,
  hostname = "0.0.0.0",
  milliseconds = PATIENCE_MILLISECONDS,
  ownPort = 0,
): Promise<UdpClient> {
  let heard = Promise.withResolvers<Reply>();
  const socket = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname,
      port: ownPort,
      socket: { data: (_socket, data) => heard.resolve(data.toString()), error: () => {} },
    }),
  );
  return {
    async ask(target, port) {
      heard = Promise.withResolvers<Reply>();
      const silence = setTimeout(() => heard.resolve("silence"), milliseconds);
      try {
        sendDatagram(socket, "?", port, target);
      } catch {
        // A rule on the way out drops it.
        heard.resolve("not permitted");
      }
      const reply = await heard.promise;
      clearTimeout(silence);
      return reply;
    },
    [Symbol.dispose]: () => socket.close(),
  };
}

export function askUdp(netns: string, hostname: string, port: number): Promise<Reply> {
  return askUdpWithin(PATIENCE_MILLISECONDS, netns, hostname, port);
}

export async function askUdpWithin(
  milliseconds: number,
  netns: string,
  hostname: string,
  port: number,
): Promise<Reply> {
  using client = await openUdpClient(netns, hostname.includes(":") ? "::" : "0.0.0.0", milliseconds);
  return await client.ask(hostname, port);
}

/**
 * A send fails if the network has reported an error since the one before, for example that the receiver of an earlier
 * datagram has closed its socket. The kernel has not sent this one then, and reports each error once. EPERM is of a rule.
 */
function sendDatagram(socket: Bun.udp.Socket<"buffer">, text: string, port: number, address: string): void {
  try {
    socket.send(text, port, address);
  } catch (error) {
    const isOfThisOne = error instanceof Error && "code" in error && error.code === "EPERM";
    if (isOfThisOne) throw error;
    socket.send(text, port, address);
  }
}

function plain(address: string): string {
  return address.replace(/^::ffff:/, "");
}
