/** A sidecar as the node agent sees it: a program at the other end of the pod's socket. */
import { connect, type Socket } from "bun";
import type { FromAgent, FromSidecar, SidecarUpdate } from "../../src/alp/protocol/sidecar-state.ts";
import { SIDECAR_PROTOCOL } from "../../src/alp/protocol/sidecar-state.ts";

import { ImitatedSidecar } from "./imitated-sidecar.ts";
import { pollUntil } from "./poll.ts";

export class TestSidecar {
  readonly received: FromAgent[] = [];
  readonly knows = new ImitatedSidecar();
  isClosed = false;
  private text = "";

  private constructor(private socket: Socket<undefined> | undefined) {}

  static async connect(path: string): Promise<TestSidecar> {
    const sidecar = new TestSidecar(undefined);
    sidecar.socket = await connect({
      unix: path,
      socket: {
        data: (_, bytes) => sidecar.receive(bytes),
        close() {
          sidecar.isClosed = true;
        },
        error() {
          sidecar.isClosed = true;
        },
      },
    });
    return sidecar;
  }

  say(line: FromSidecar): void {
    this.write(`${JSON.stringify(line)}\n`);
  }

  write(data: string | Uint8Array): void {
    this.socket?.write(data);
  }

  hello(version = "1.0.0", protocol: number = SIDECAR_PROTOCOL): void {
    this.say({ type: "hello", protocol, version });
  }

  /** Acknowledges the last update. */
  apply(): void {
    const update = this.updates.at(-1);
    if (update === undefined) throw new Error("there was no update");
    this.knows.apply(update);
    this.say({ type: "applied", revision: update.revision });
  }

  get updates(): readonly SidecarUpdate[] {
    return this.received.filter((line) => line.type === "update");
  }

  /** Until the agent has sent so many lines. */
  async hears(count: number): Promise<readonly FromAgent[]> {
    await pollUntil(() => this.received.length >= count, `${count} lines of the agent`);
    return this.received;
  }

  async closed(): Promise<void> {
    await pollUntil(() => this.isClosed, "the end of the connection");
  }

  pause(): void {
    this.socket?.pause();
  }

  close(): void {
    this.socket?.terminate();
  }

  private receive(bytes: Uint8Array): void {
    const lines = `${this.text}${new TextDecoder().decode(bytes)}`.split("\n");
    this.text = lines.pop() ?? "";
    for (const line of lines) this.received.push(JSON.parse(line));
  }
}
