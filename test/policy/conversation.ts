/** A TCP connection or the datagrams of two sockets between network namespaces, which stay open and count every byte. */
import { insideNetns } from "../support/namespace-sockets.ts";

const PATIENCE_MILLISECONDS = 5_000;
const CHUNK_BYTES = 1_000;

/** Sends back what it receives. What a TCP client sends first is the name of the connection, and how it ended is kept by it. */
export interface EchoServer extends Disposable {
  /** Its end of this connection is no more. */
  hasLost(name: string): boolean;
}

export async function serveEchoes(netns: string, port: number): Promise<EchoServer> {
  const lost = new Set<string>();
  const names = new WeakMap<object, string>();
  const tcp = insideNetns(netns, () =>
    Bun.listen({
      hostname: "::",
      port,
      socket: {
        data(socket, data) {
          if (!names.has(socket)) names.set(socket, data.toString().split("\n")[0] ?? "");
          socket.write(data);
        },
        close: (socket) => void lost.add(names.get(socket) ?? ""),
        error: (socket) => void lost.add(names.get(socket) ?? ""),
      },
    }),
  );
  const udp = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname: "::",
      port,
      socket: {
        data(socket, data, fromPort, address) {
          try {
            socket.send(data, fromPort, address);
          } catch {
            // A rule on the way out drops it.
          }
        },
        error: () => {},
      },
    }),
  );
  return {
    hasLost: (name) => lost.has(name),
    [Symbol.dispose]() {
      tcp.stop(true);
      udp.close();
    },
  };
}

export interface Conversation extends Disposable {
  readonly name: string;
  readonly protocol: "tcp" | "udp";
  readonly localPort: number;
  /** The client's end is no more. */
  readonly isLost: boolean;
  /** Whether everything that was sent has come back, and what is sent now comes back in time. */
  works(): Promise<boolean>;
}

export interface ConversationOptions {
  readonly netns: string;
  readonly address: string;
  readonly port: number;
  readonly patience?: number;
}

/** `undefined`: it cannot be opened. */
export async function openTcp(name: string, options: ConversationOptions): Promise<Conversation | undefined> {
  const { netns, address: hostname, port, patience = PATIENCE_MILLISECONDS } = options;
  // What was sent and has not come back, in its order.
  let count = 0;
  let [expected, isLost, isWrong, wake] = ["", false, false, () => {}];
  const lose = () => {
    isLost = true;
    wake();
  };
  const connecting = insideNetns(netns, () =>
    Bun.connect({
      ...{ hostname, port },
      socket: {
        data(_socket, data) {
          const text = data.toString();
          isWrong ||= !expected.startsWith(text);
          expected = expected.slice(text.length);
          wake();
        },
        close: lose,
        error: lose,
        connectError: lose,
      },
    }),
  ).catch(() => undefined);
  const socket = await Promise.race([connecting, Bun.sleep(patience).then(() => undefined)]);
  if (socket === undefined) {
    connecting.then((late) => late?.terminate());
    return undefined;
  }
  const send = (text: string) => {
    expected += text;
    socket.write(text);
  };
  send(`${name}\n`);
  return {
    ...{ name, protocol: "tcp", localPort: socket.localPort },
    get isLost() {
      return isLost;
    },
    async works() {
      if (isLost) return false;
      count += 1;
      send(`${count} `.padEnd(CHUNK_BYTES, "."));
      const end = performance.now() + PATIENCE_MILLISECONDS;
      while (expected !== "" && !isLost && performance.now() < end) {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        const timer = setTimeout(resolve, 100);
        await promise;
        clearTimeout(timer);
      }
      return !isLost && !isWrong && expected === "";
    },
    [Symbol.dispose]: () => void socket.terminate(),
  };
}

export async function openUdp(name: string, options: ConversationOptions): Promise<Conversation> {
  const { netns, address, port, patience = PATIENCE_MILLISECONDS } = options;
  let [count, last, wake] = [0, "", () => {}];
  const socket = await insideNetns(netns, () =>
    Bun.udpSocket({
      hostname: address.includes(":") ? "::" : "0.0.0.0",
      socket: {
        data(_socket, data) {
          last = data.toString();
          wake();
        },
        error: () => {},
      },
    }),
  );
  return {
    ...{ name, protocol: "udp", localPort: socket.port, isLost: false },
    async works() {
      count += 1;
      const message = `${name} ${count}`;
      try {
        socket.send(message, port, address);
      } catch {
        return false;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = () => last === message && resolve();
      const timer = setTimeout(resolve, patience);
      await promise;
      clearTimeout(timer);
      return last === message;
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
