/**
 * The client of the benchmark of application layer policy: some connections that are kept open, with one request on each at a
 * time. It does as little as possible per response: it reads the status and the length.
 */
import type { Socket } from "bun";

export interface AlpClient extends Disposable {
  /** Sends so many requests over all connections; milliseconds of each. A response other than 200 is an error. */
  send(count: number): Promise<readonly number[]>;
}

interface Target {
  readonly address: string;
  readonly port: number;
  readonly path: string;
}

export async function openAlpClient(target: Target, connections: number): Promise<AlpClient> {
  const request = Buffer.from(`GET ${target.path} HTTP/1.1\r\nhost: cart.shop\r\nuser-agent: bench\r\n\r\n`);
  const sockets = await Promise.all(Array.from({ length: connections }, () => connect(target)));
  return {
    async send(count) {
      const times: number[] = [];
      let left = count;
      await Promise.all(
        sockets.map(async (socket) => {
          while (left-- > 0) {
            const begin = performance.now();
            await exchange(socket, request);
            times.push(performance.now() - begin);
          }
        }),
      );
      return times;
    },
    [Symbol.dispose]() {
      for (const socket of sockets) socket.end();
    },
  };
}

interface Waiting {
  received: Buffer;
  resolve(): void;
  reject(reason: Error): void;
}

function connect({ address, port }: Target): Promise<Socket<Waiting>> {
  return Bun.connect<Waiting>({
    hostname: address,
    port,
    data: { received: Buffer.alloc(0), resolve() {}, reject() {} },
    socket: {
      data(socket, bytes) {
        const { data } = socket;
        data.received = data.received.length === 0 ? bytes : Buffer.concat([data.received, bytes]);
        const status = completeStatus(data.received);
        if (status === undefined) return;
        data.received = Buffer.alloc(0);
        if (status === 200) data.resolve();
        else data.reject(new Error(`The proxy responded with ${status}`));
      },
      close: ({ data }) => data.reject(new Error("The proxy closed the connection")),
      error: ({ data }, error) => data.reject(error),
    },
  });
}

function exchange(socket: Socket<Waiting>, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.data.resolve = resolve;
    socket.data.reject = reject;
    socket.write(request);
  });
}

/** The status of a response that has arrived as a whole. */
function completeStatus(bytes: Buffer): number | undefined {
  const head = bytes.toString("latin1");
  const end = head.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const at = head.indexOf("content-length: ");
  const length = at < 0 ? 0 : Number.parseInt(head.slice(at + 16, at + 26), 10);
  return bytes.length < end + 4 + length ? undefined : Number(head.slice(9, 12));
}
