/** One netlink socket to the kernel model: what it sends is carried out at once, and the replies wait to be read. */
import { errnoOf } from "../../src/linux/errno.ts";
import { MessageCursor } from "../../src/linux/netlink/message-reader.ts";
import { FLAG } from "../../src/linux/netlink/wire.ts";
import type { NetlinkChannel, NetlinkProtocol } from "../../src/linux/netlink-channel.ts";
import type { KernelFaults } from "./faults.ts";
import { encodeAcknowledgement, encodeDump, encodeMessage, type KernelRequest, Refusal, requestAt } from "./message.ts";
import type { Listener, Namespace } from "./namespace.ts";
import { handleNetfilter, releaseTables, type Sender } from "./nftables/handle.ts";
import type { KernelDevices } from "./rtnetlink/create-link.ts";
import { handleRequest } from "./rtnetlink/handle.ts";

/** What the kernel counts for each queued message in addition to its bytes. */
const OVERHEAD = 768;
const LEAST_TYPE = 16;
const DEFAULT_BUFFER = 212_992;

/** When things happen: a process of the simulation has its own order of events. */
export interface ChannelOwner {
  readonly processId: number;
  readonly processName: string;
  /** One system call. */
  effect<Value>(work: () => Value): Value;
  /** Some time later, unless the owner is dead by then. */
  soon(work: () => void): void;
}

export interface ChannelMeans {
  readonly namespace: Namespace;
  readonly protocol: NetlinkProtocol;
  readonly port: number;
  readonly owner: ChannelOwner;
  readonly faults: KernelFaults;
  readonly devices: Omit<KernelDevices, "answer">;
}

export class ModelChannel implements NetlinkChannel, Listener {
  private readonly queue: Uint8Array[] = [];
  private queuedBytes = 0;
  private bufferBytes = DEFAULT_BUFFER;
  private hasLost = false;
  private isClosed = false;
  private readonly groups = new Set<number>();
  /** Of the generator that waits for something to arrive. */
  private wake: (() => void) | undefined;
  private isWakePlanned = false;

  constructor(private readonly means: ChannelMeans) {}

  get protocol(): NetlinkProtocol {
    return this.means.protocol;
  }

  send(bytes: Uint8Array<ArrayBuffer>): number {
    return this.means.owner.effect(() => this.carryOut(bytes.slice()));
  }

  sendInBackground(bytes: Uint8Array<ArrayBuffer>): Promise<number> {
    const copy = bytes.slice();
    const { promise, resolve } = Promise.withResolvers<number>();
    this.means.owner.soon(() => resolve(this.means.owner.effect(() => this.carryOut(copy))));
    return promise;
  }

  receive(buffer: Uint8Array<ArrayBuffer>): number {
    if (this.isClosed) return -errnoOf("EBADF");
    if (this.hasLost) {
      this.hasLost = false;
      return -errnoOf("ENOBUFS");
    }
    const next = this.takeNext();
    if (next === undefined) return -errnoOf("EAGAIN");
    buffer.set(next.subarray(0, buffer.length));
    return next.length;
  }

  enlarge(bytes: number): void {
    this.bufferBytes = Math.max(this.bufferBytes, bytes);
  }

  join(groups: readonly number[], bufferBytes: number): void {
    this.bufferBytes = Math.max(this.bufferBytes, bufferBytes);
    for (const group of groups) this.groups.add(group);
    this.means.namespace.listeners.add(this);
  }

  async *arrivals(signal: AbortSignal): AsyncGenerator<Uint8Array | "lost"> {
    const stop = () => this.wake?.();
    signal.addEventListener("abort", stop);
    try {
      while (!signal.aborted) {
        if (this.hasLost) {
          this.hasLost = false;
          yield "lost";
          continue;
        }
        const next = this.takeNext();
        if (next === undefined) await this.nextArrival();
        else yield next;
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  port(): number {
    return this.means.port;
  }

  /** The tables of netfilter that it owns go with it. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    const { namespace, protocol } = this.means;
    namespace.listeners.delete(this);
    this.queue.length = 0;
    if (protocol === "netfilter") releaseTables(namespace.nftables, this.sender(), this.notify);
  }

  hears(group: number): boolean {
    return this.groups.has(group);
  }

  deliver(bytes: Uint8Array): void {
    const isFull = this.queuedBytes + bytes.length + OVERHEAD > this.bufferBytes;
    if (isFull || this.means.faults.losesEvent()) this.hasLost = true;
    else this.enqueue(bytes);
    this.wakeSoon();
  }

  private async nextArrival(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.wake = resolve;
    await promise;
    this.wake = undefined;
  }

  private wakeSoon(): void {
    if (this.isWakePlanned) return;
    this.isWakePlanned = true;
    this.means.owner.soon(() => {
      this.isWakePlanned = false;
      this.wake?.();
    });
  }

  private enqueue(bytes: Uint8Array): void {
    this.queue.push(bytes);
    this.queuedBytes += bytes.length + OVERHEAD;
  }

  private takeNext(): Uint8Array | undefined {
    const next = this.queue.shift();
    if (next !== undefined) this.queuedBytes -= next.length + OVERHEAD;
    return next;
  }

  private carryOut(bytes: Uint8Array<ArrayBuffer>): number {
    if (this.isClosed) return errnoOf("EBADF");
    if (this.means.protocol === "netfilter") {
      const reply = (datagram: Uint8Array) => this.enqueue(datagram);
      handleNetfilter(this.means.namespace.nftables, bytes, this.sender(), reply, this.notify);
      return 0;
    }
    const messages = new MessageCursor(bytes);
    while (messages.next()) {
      if (messages.type < LEAST_TYPE || (messages.flags & FLAG.request) === 0) continue;
      this.carryOutOne(requestAt(messages, this.means.port));
    }
    return 0;
  }

  private sender(): Sender {
    const { port, owner, faults } = this.means;
    return { port, faults, processId: owner.processId, processName: owner.processName };
  }

  private readonly notify = (group: number, bytes: Uint8Array): void => {
    this.means.namespace.deliver("netfilter", group, () => bytes);
  };

  private carryOutOne(request: KernelRequest): void {
    try {
      const refused = this.means.faults.refusal();
      if (refused !== undefined) throw new Refusal(refused);
      if (this.perform(request) === "answered") return;
      if ((request.flags & FLAG.acknowledge) !== 0) this.enqueue(encodeAcknowledgement(request, 0, ""));
    } catch (failure) {
      if (!(failure instanceof Refusal)) throw failure;
      this.enqueue(encodeAcknowledgement(request, failure.errno, failure.message));
    }
  }

  /** A table ends with its own end, not with an acknowledgement. */
  private perform(request: KernelRequest): "answered" | "to be acknowledged" {
    const { namespace, devices, faults } = this.means;
    const answer: KernelDevices["answer"] = (message) => this.enqueue(encodeMessage(message, request));
    const outcome = handleRequest(namespace, request, { ...devices, answer });
    if (outcome.kind === "dump") {
      const flags = faults.interruptsDump() ? FLAG.dumpInterrupted : 0;
      for (const datagram of encodeDump(outcome.messages, request, flags)) this.enqueue(datagram);
      return "answered";
    }
    if (outcome.kind === "answer") this.enqueue(encodeMessage(outcome.message, request));
    else if (outcome.hasChanged) namespace.changes += 1;
    return "to be acknowledged";
  }
}
