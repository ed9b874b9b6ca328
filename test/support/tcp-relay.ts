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
