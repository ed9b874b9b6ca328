/** Netfilter sockets to a ruleset of its own, without the rest of a host: for tests. */
import { errnoOf } from "../../../src/linux/errno.ts";
import type { NetlinkChannel } from "../../../src/linux/netlink-channel.ts";
import { type NetlinkSocket, type SocketOpener, socketOn } from "../../../src/linux/netlink-socket.ts";
import type { Author } from "./describe.ts";
import { handleNetfilter, releaseTables } from "./handle.ts";
import { NetfilterState } from "./state.ts";

export class ModelSockets implements SocketOpener {
  now = 0;
  readonly state = new NetfilterState(() => this.now);
  readonly #channels = new Set<ModelChannel>();
  #lastPort = 1000;

  openSocket(): NetlinkSocket {
    return this.open();
  }

  open(author: Author = { processId: 1, processName: "bun" }): NetlinkSocket {
    const channel = new ModelChannel(++this.#lastPort, author, this);
    this.#channels.add(channel);
    return socketOn(channel, "netfilter");
  }

  send(from: ModelChannel, datagram: Uint8Array): void {
    const sender = { ...from.author, port: from.port() };
    handleNetfilter(this.state, datagram, sender, (bytes) => from.queue.push(bytes), this.#notify);
  }

  close(channel: ModelChannel): void {
    this.#channels.delete(channel);
    releaseTables(this.state, { ...channel.author, port: channel.port() }, this.#notify);
  }

  readonly #notify = (group: number, bytes: Uint8Array): void => {
    for (const { groups, queue } of this.#channels) if (groups.has(group)) queue.push(bytes);
  };
}

class ModelChannel implements NetlinkChannel {
  readonly queue: Uint8Array[] = [];
  readonly groups = new Set<number>();

  constructor(
    private readonly address: number,
    readonly author: Author,
    private readonly sockets: ModelSockets,
  ) {}

  send(bytes: Uint8Array<ArrayBuffer>): number {
    this.sockets.send(this, bytes);
    return 0;
  }

  sendInBackground(bytes: Uint8Array<ArrayBuffer>): Promise<number> {
    return Promise.resolve(this.send(bytes));
  }

  receive(buffer: Uint8Array<ArrayBuffer>): number {
    const next = this.queue.shift();
    if (next === undefined) return -errnoOf("EAGAIN");
    buffer.set(next.subarray(0, buffer.length));
    return next.length;
  }

  enlarge(): void {}

  join(groups: readonly number[]): void {
    for (const group of groups) this.groups.add(group);
  }

  /** Nobody waits for these sockets. */
  async *arrivals(): AsyncGenerator<Uint8Array | "lost"> {}

  port(): number {
    return this.address;
  }

  close(): void {
    this.sockets.close(this);
  }
}
