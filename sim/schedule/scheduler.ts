/**
 * The virtual clock, and the order of everything that happens. An event is one synchronous action and all that follows
 * from it without waiting: promises that it resolves and code that continues after them. No two events overlap, and
 * between two of them nothing runs. Events of the same moment are executed in an order that the seed decides.
 *
 * Time passes only from event to event, so an hour of waiting costs nothing. Code that waits for anything but this
 * scheduler (a real timer, a file, a socket) is not deterministic, and does not belong into a simulation.
 */
import type { Random } from "./random.ts";

interface PlannedEvent {
  readonly time: number;
  /** Decides among the events of one moment. */
  readonly tie: number;
  readonly action: () => void;
  isCancelled: boolean;
}

/** The wall clock at virtual time 0. */
const BEGINNING = Date.UTC(2026, 0, 1);

export class Scheduler {
  /** A binary heap: the earliest event is the first. */
  private readonly planned: PlannedEvent[] = [];
  private time = 0;
  /** How many events were executed. */
  steps = 0;
  /** Called before each event: for a trace of everything that happens. */
  onEvent: ((time: number, tie: number) => void) | undefined;

  constructor(private readonly random: Random) {}

  /** Milliseconds since the simulation began. */
  get now(): number {
    return this.time;
  }

  get date(): Date {
    return new Date(BEGINNING + this.time);
  }

  /** Returns a function that cancels it. */
  after(milliseconds: number, action: () => void): () => void {
    const event = { time: this.time + Math.max(0, milliseconds), tie: this.random.next(), action, isCancelled: false };
    this.insert(event);
    return () => {
      event.isCancelled = true;
    };
  }

  /** Ends early, without an error, when the signal fires. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (signal?.aborted === true) resolve();
    else {
      const wake = () => {
        cancel();
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const cancel = this.after(milliseconds, wake);
      signal?.addEventListener("abort", wake, { once: true });
    }
    return promise;
  }

  /** When the next event is due; `undefined` if there is none. */
  get nextAt(): number | undefined {
    while (this.planned[0]?.isCancelled === true) this.takeFirst();
    return this.planned[0]?.time;
  }

  /** Executes the next event. Returns `false` if there is none. */
  async step(): Promise<boolean> {
    if (this.nextAt === undefined) return false;
    const event = this.takeFirst();
    if (event === undefined) return false;
    this.time = event.time;
    this.steps += 1;
    this.onEvent?.(event.time, event.tie);
    event.action();
    await allThatFollows();
    return true;
  }

  /** Executes all events up to this time, and calls `afterEach` after each of them; if that returns "stop", no further ones. */
  async runUntil(time: number, afterEach: () => unknown = () => undefined): Promise<void> {
    await allThatFollows();
    for (;;) {
      const next = this.nextAt;
      if (next === undefined || next > time) break;
      await this.step();
      if (afterEach() === "stop") return;
    }
    this.time = Math.max(this.time, time);
  }

  private insert(event: PlannedEvent): void {
    const heap = this.planned;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(event, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  private takeFirst(): PlannedEvent | undefined {
    const heap = this.planned;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || last === first) return first;
    let at = 0;
    for (;;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
      const isRight = left !== undefined && right !== undefined && isBefore(right, left);
      const child = isRight ? right : left;
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = 2 * at + (isRight ? 2 : 1);
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(one: PlannedEvent, other: PlannedEvent): boolean {
  return one.time < other.time || (one.time === other.time && one.tie < other.tie);
}

/** Everything that continues without waiting has run when the language runtime turns to its next task. */
function allThatFollows(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setImmediate(resolve);
  return promise;
}
