/**
 * A proxy that fails on purpose, between a client and a server on loopback: it can
 * drop a request, or pass it on and drop the response, or pass it on late, and close every connection.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type Loss = "request" | "answer";

export interface UnreliableProxy {
  readonly port: number;
  readonly connections: () => number;
  /** Drops the next message, or the next one that contains `text`; `meanwhile` runs before the client notices. */
  loseNext(loss: Loss, meanwhile?: () => Promise<unknown>, text?: string): void;
  /** Passes on no request from the next one until `meanwhile` is over. */
  holdNext(meanwhile: () => Promise<unknown>): void;
  /** Closes every open connection. */
  cutAll(): void;
  /** Closes every connection and accepts none while `meanwhile` runs. */
  whileDown(meanwhile: () => Promise<unknown>): Promise<void>;
  /** Passes on nothing while `meanwhile` runs, and everything afterwards. */
  whileSilent(meanwhile: () => Promise<unknown>): Promise<void>;
  stop(): Promise<void>;
}

export async function startProxy(target: number): Promise<UnreliableProxy> {
  let planned: { loss: Loss; meanwhile: () => Promise<unknown>; text: string } | undefined;
  let holding: (() => Promise<unknown>) | undefined;
  let held: Promise<unknown> = Promise.resolve();
  let connections = 0;
  let isDown = false;
  let isSilent = false;
  const open = new Set<Socket>();
  const loses = async (loss: Loss, client: Socket, data: string | Buffer): Promise<boolean> => {
    if (planned?.loss !== loss || !data.includes(planned.text)) return false;
    const { meanwhile } = planned;
    planned = undefined;
    await meanwhile();
    client.destroy();
    return true;
  };
  const untilPassed = () => {
    const meanwhile = holding;
    holding = undefined;
    if (meanwhile !== undefined) held = meanwhile();
    return held;
  };
  const server = createServer((client) => {
    connections += 1;
    if (isDown) return void client.on("error", () => {}).destroy();
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      open.add(socket);
      if (isSilent) socket.pause();
      socket.on("error", () => socket.destroy());
      socket.on("close", () => open.delete(socket));
    }
    client.on("data", async (data) => {
      await untilPassed();
      if (!(await loses("request", client, data))) upstream.write(data);
    });
    upstream.on("data", async (data) => (await loses("answer", client, data)) || client.write(data));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  const cutAll = () => {
    for (const socket of open) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    loseNext: (loss, meanwhile = async () => {}, text = "") => {
      planned = { loss, meanwhile, text };
    },
    holdNext: (meanwhile) => {
      holding = meanwhile;
    },
    cutAll,
    whileDown: async (meanwhile) => {
      isDown = true;
      cutAll();
      await meanwhile();
      isDown = false;
    },
    whileSilent: async (meanwhile) => {
      isSilent = true;
      for (const socket of open) socket.pause();
      try {
        await meanwhile();
      } finally {
        isSilent = false;
        for (const socket of open) socket.resume();
      }
    },
    stop: async () => {
      cutAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
