import type { Clock } from "../../src/datastore/replica/clock.ts";
import type { Timers } from "../../src/timers.ts";

/** Time that stands still until a test moves it. */
export class ManualClock implements Clock {
  readonly waits: number[] = [];
  private time = 0;
  private readonly sleepers = new Set<{ readonly end: number; readonly wake: () => void }>();

  get sleeping(): number {
    return this.sleepers.size;
  }

  now(): number {
    return this.time;
  }

  async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || milliseconds <= 0) return;
    this.waits.push(milliseconds);
    const { promise, resolve } = Promise.withResolvers<void>();
    const sleeper = { end: this.time + milliseconds, wake: () => resolve() };
    this.sleepers.add(sleeper);
    signal.addEventListener("abort", sleeper.wake, { once: true });
    await promise;
    this.sleepers.delete(sleeper);
  }

  async advance(milliseconds: number): Promise<void> {
    this.time += milliseconds;
    for (const { end, wake } of this.sleepers) if (end <= this.time) wake();
    await settled();
  }
}

/** Waits until all pending microtasks have run. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Timers that the clock of a test moves. */
export function timersOn(clock: Clock): Timers {
  const after: Timers["after"] = (milliseconds, action) => {
    const cancelled = new AbortController();
    const { signal } = cancelled;
    void clock.wait(milliseconds, signal).then(() => signal.aborted || action());
    return () => cancelled.abort();
  };
  return {
    after,
    timeout: (milliseconds) => {
      const controller = new AbortController();
      const expire = () => controller.abort(new DOMException("too late", "TimeoutError"));
      return { signal: controller.signal, cancel: after(milliseconds, expire) };
    },
  };
}
