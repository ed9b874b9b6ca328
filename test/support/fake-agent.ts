/** A node agent that says to sidecars what a test tells it to. */
import { rmSync } from "node:fs";
import type { Socket } from "bun";
import type { FromAgent, SidecarUpdate } from "../../src/alp/protocol/sidecar-state.ts";
import { pollUntil } from "./poll.ts";

export interface FakeAgent extends Disposable {
  /** Everything that sidecars sent, one line each, in order. */
  readonly received: readonly string[];
  /** To every connected sidecar. */
  send(message: FromAgent | string): void;
  /** Waits until sidecars have applied so many updates in all. */
  applied(count: number): Promise<void>;
  /** Disconnects, and does not listen any more. */
  stop(): void;
}

interface Connection {
  text: string;
  unsent: Buffer;
}

function send(socket: Socket<Connection>, text: string): void {
  const bytes = Buffer.concat([socket.data.unsent, Buffer.from(text)]);
  socket.data.unsent = bytes.subarray(Math.max(socket.write(bytes), 0));
}

/** Sends these lines to a sidecar that says hello. */
export function startFakeAgent(path: string, first: readonly (FromAgent | string)[]): FakeAgent {
  const received: string[] = [];
  const connected = new Set<Socket<Connection>>();
  const lineOf = (message: FromAgent | string) =>
    `${typeof message === "string" ? message : JSON.stringify(message)}\n`;
  rmSync(path, { force: true });
  const listener = Bun.listen<Connection>({
    unix: path,
    socket: {
      open(socket) {
        socket.data = { text: "", unsent: Buffer.alloc(0) };
        connected.add(socket);
      },
      data(socket, bytes) {
        const lines = `${socket.data.text}${bytes.toString()}`.split("\n");
        socket.data.text = lines.pop() ?? "";
        received.push(...lines);
        if (lines.some((line) => line.includes('"hello"'))) for (const message of first) send(socket, lineOf(message));
      },
      drain: (socket) => send(socket, ""),
      close: (socket) => void connected.delete(socket),
    },
  });
  const stop = () => {
    listener.stop(true);
    rmSync(path, { force: true });
  };
  return {
    received,
    send(message) {
      for (const socket of connected) send(socket, lineOf(message));
    },
    applied: (count) =>
      pollUntil(
        () => received.filter((line) => line.includes('"applied"')).length >= count,
        `${count} updates applied`,
      ),
    stop,
    [Symbol.dispose]: stop,
  };
}

export const WELCOME: FromAgent = { type: "welcome", protocol: 1, version: "v1.0.0" };

/** The whole state of a pod with one policy. */
export function firstUpdate(change: Partial<SidecarUpdate> = {}): SidecarUpdate {
  return {
    type: "update",
    revision: 1,
    addresses: ["127.0.0.1"],
    evaluation: { tiers: [{ name: "default", defaultAction: "Deny", policies: ["web"] }], profiles: [] },
    policies: { web: { title: "shop/web", rules: [] } },
    sets: {},
    ...change,
  };
}
