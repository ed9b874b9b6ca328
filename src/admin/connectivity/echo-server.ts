/**
 * The server of a test pod: tells each client which address it sees, in a response larger than any packet. It also responds
 * to datagrams without a checksum at the same port: whether they pass tells why TCP does not.
 */
import { networkInterfaces } from "node:os";
import { parseAddress } from "../../ip/address.ts";
import { type AnsweringSocket, openAnsweringSocket } from "../../linux/unchecked-datagrams.ts";
import { PADDING_BYTES } from "./run-probe.ts";

const ANSWER_MILLISECONDS = 20;

export interface EchoServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** On all addresses of both families, if the pod has IPv6. Port 0: any free one. */
export function startEchoServer(port: number, name: string): EchoServer {
  const server = listenOn("::", port, name) ?? listenOn("0.0.0.0", port, name);
  if (server === undefined) throw new Error(`Cannot listen on port ${port}: it is in use`);
  const sockets = openAtAllAddresses(server.port ?? port);
  const timer = setInterval(() => {
    for (const socket of sockets) socket.answer();
  }, ANSWER_MILLISECONDS);
  return {
    port: server.port ?? port,
    async stop() {
      clearInterval(timer);
      for (const socket of sockets) socket.close();
      await server.stop(true);
    },
  };
}

/** Without those of other programs, and those that need a link: connections are tested all the same. */
function openAtAllAddresses(port: number): readonly AnsweringSocket[] {
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return own.flatMap(({ address }) => {
    const parsed = parseAddress(address);
    try {
      return parsed === undefined ? [] : [openAnsweringSocket(parsed, port)];
    } catch {
      return [];
    }
  });
}

function listenOn(hostname: string, port: number, name: string) {
  try {
    return Bun.serve({
      hostname,
      port,
      async fetch(request, server) {
        await request.arrayBuffer();
        const address = server.requestIP(request)?.address ?? "";
        const seenAs = address.replace(/^::ffff:(?=\d+\.)/, "");
        const body = { servedBy: name, seenAs, padding: "x".repeat(PADDING_BYTES) };
        return Response.json(body, { headers: { Connection: "close" } });
      },
    });
  } catch {
    return undefined;
  }
}
