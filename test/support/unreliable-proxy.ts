/**
 * A wire that fails on purpose, between a client and a server on loopback: it
 * can swallow a request, or let it through and swallow the answer.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type Loss = "request" | "answer";

export interface UnreliableProxy {
  readonly port: number;
  readonly connections: () => number;
  /** The next message, or the next that holds `text`, is lost; before the client learns of it, `meanwhile` happens. */
  loseNext(loss: Loss, meanwhile?: () => Promise<unknown>, text?: string): void;
  stop(): Promise<void>;
}

export async function startProxy(target: number): Promise<UnreliableProxy> {
  let planned: { loss: Loss; meanwhile: () => Promise<unknown>; text: string } | undefined;
  let connections = 0;
  const open = new Set<Socket>();
  const loses = async (loss: Loss, client: Socket, data: string | Buffer): Promise<boolean> => {
    if (planned?.loss !== loss || !data.includes(planned.text)) return false;
    const { meanwhile } = planned;
    planned = undefined;
    await meanwhile();
    client.destroy();
    return true;
  };
  const server = createServer((client) => {
    connections += 1;
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => open.delete(socket));
    }
    client.on("data", async (data) => (await loses("request", client, data)) || upstream.write(data));
    upstream.on("data", async (data) => (await loses("answer", client, data)) || client.write(data));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    loseNext: (loss, meanwhile = async () => {}, text = "") => {
      planned = { loss, meanwhile, text };
    },
    stop: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
