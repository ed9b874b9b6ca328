/**
 * What a server sends to one client without being asked again: the events of a watch. They arrive in order, each in an
 * event of its own, never in that of the writer. While the place is cut off or its streams are stalled they wait, as the
 * bytes of a connection do. A client that is dead receives nothing.
 */
import type { SimulatedProcess } from "../schedule/process.ts";
import type { FaultyNetwork } from "./network.ts";

/** A connection sends again what did not arrive, first soon, then less and less often. */
const FIRST_REPEAT_MILLISECONDS = 200;
const LONGEST_REPEAT_MILLISECONDS = 10_000;

type Sent<Item> =
  | { readonly kind: "item"; readonly item: Item }
  | { readonly kind: "failure"; readonly failure: unknown }
  | { readonly kind: "end" };

export interface StreamMeans {
  readonly network: FaultyNetwork;
  readonly process: SimulatedProcess;
  readonly place: string;
  /** When the streams of this place go on, if they are stalled. */
  readonly stalledUntil?: () => number;
}

export class FaultyStream<Item> {
  private readonly underWay: Sent<Item>[] = [];
  private readonly arrived: Sent<Item>[] = [];
  private isPumping = false;
  private isClosed = false;
  private wake: () => void = () => {};
  private readonly whenClosed: (() => void)[] = [];

  constructor(private readonly means: StreamMeans) {
    means.process.onKill(() => this.close());
  }

  get place(): string {
    return this.means.place;
  }

  send(item: Item): void {
    this.put({ kind: "item", item });
  }

  end(): void {
    this.put({ kind: "end" });
  }

  /** The connection breaks: what is under way is lost. */
  break(failure: unknown): void {
    this.underWay.length = 0;
    this.put({ kind: "failure", failure });
  }

  /** Nothing is sent any more, and the client does not notice. */
  silence(): void {
    this.underWay.length = 0;
    this.close();
  }

  /** The client has gone. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const work of this.whenClosed) work();
  }

  onClose(work: () => void): void {
    this.whenClosed.push(work);
  }

  /** The client's end; it ends, without an error, when the signal fires. */
  async *receive(signal: AbortSignal): AsyncGenerator<Item> {
    const { process } = this.means;
    const stop = () => this.means.process.deliver(() => this.wake());
    signal.addEventListener("abort", stop, { once: true });
    try {
      while (!signal.aborted) {
        const next = this.arrived.shift();
        if (next?.kind === "end") return;
        if (next?.kind === "failure") throw next.failure;
        if (next !== undefined) yield next.item;
        else await this.news(signal);
        if (!process.isAlive) await new Promise<never>(() => {});
      }
    } finally {
      signal.removeEventListener("abort", stop);
      this.close();
    }
  }

  private news(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.wake = resolve;
    if (signal.aborted) resolve();
    return promise;
  }

  private put(sent: Sent<Item>): void {
    if (this.isClosed) return;
    this.underWay.push(sent);
    if (!this.isPumping) this.pumpAfter(this.means.network.delay(), FIRST_REPEAT_MILLISECONDS);
  }

  private pumpAfter(milliseconds: number, repeatAfter: number): void {
    this.isPumping = true;
    this.means.network.scheduler.after(milliseconds, () => this.pump(repeatAfter));
  }

  private pump(repeatAfter: number): void {
    const { network, process, place, stalledUntil = () => 0 } = this.means;
    this.isPumping = false;
    if (this.isClosed || this.underWay.length === 0) return;
    const stalled = stalledUntil() - network.scheduler.now;
    if (network.isCut(place)) this.pumpAfter(repeatAfter, Math.min(repeatAfter * 2, LONGEST_REPEAT_MILLISECONDS));
    else if (stalled > 0) this.pumpAfter(stalled, FIRST_REPEAT_MILLISECONDS);
    else {
      // A process that is frozen receives everything later, in order.
      this.isPumping = true;
      process.deliver(() => this.deliver());
    }
  }

  private deliver(): void {
    this.isPumping = false;
    const first = this.underWay.shift();
    if (first !== undefined) this.arrived.push(first);
    this.means.process.deliver(() => this.wake());
    if (this.underWay.length > 0) this.pumpAfter(this.means.network.delay(), FIRST_REPEAT_MILLISECONDS);
  }
}
