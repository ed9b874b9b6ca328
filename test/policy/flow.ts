/** A TCP connection that stays open, between two network namespaces. */
import { insideNetns } from "../support/namespace-sockets.ts";

const PATIENCE_MILLISECONDS = 2_000;

/** Sends back what it receives. */
export function serveEcho(netns: string, port: number): Disposable {
  const server = insideNetns(netns, () =>
    Bun.listen({ hostname: "::", port, socket: { data: (socket, data) => void socket.write(data), error: () => {} } }),
  );
  return { [Symbol.dispose]: () => server.stop(true) };
}

export interface Flow extends Disposable {
  /** Whether a message comes back. */
  works(): Promise<boolean>;
}

export async function openFlow(netns: string, hostname: string, port: number): Promise<Flow> {
  let heard = Promise.withResolvers<string>();
  let count = 0;
  const socket = await insideNetns(netns, () =>
    Bun.connect({
      hostname,
      port,
      socket: { data: (_socket, data) => heard.resolve(data.toString()), error: () => {} },
    }),
  );
  return {
    async works() {
      count += 1;
      heard = Promise.withResolvers();
      const silence = setTimeout(() => heard.resolve("silence"), PATIENCE_MILLISECONDS);
      socket.write(`message ${count}`);
      const reply = await heard.promise;
      clearTimeout(silence);
      return reply === `message ${count}`;
    },
    [Symbol.dispose]: () => void socket.terminate(),
  };
}
