/** The server of a test pod: tells each client which address it sees, in a response larger than any packet. */
import { PADDING_BYTES } from "./run-probe.ts";

export interface EchoServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** On all addresses of both families, if the pod has IPv6. Port 0: any free one. */
export function startEchoServer(port: number, name: string): EchoServer {
  const server = listenOn("::", port, name) ?? listenOn("0.0.0.0", port, name);
  if (server === undefined) throw new Error(`Cannot listen on port ${port}: it is in use`);
  return { port: server.port ?? port, stop: () => server.stop(true) };
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
