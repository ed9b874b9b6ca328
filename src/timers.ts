/** The timers of a client; a simulation has its own. */
export interface Timers {
  /** A signal that fires after this time, unless it is cancelled. */
  timeout(milliseconds: number): Timeout;
  /** Returns a function that cancels it. */
  after(milliseconds: number, action: () => void): () => void;
}

export interface Timeout {
  readonly signal: AbortSignal;
  readonly cancel: () => void;
}

export const SYSTEM_TIMERS: Timers = {
  // Not `AbortSignal.timeout()`, which cannot be cancelled: a client that retries often would collect them.
  timeout: (milliseconds) => {
    const controller = new AbortController();
    const expire = () => controller.abort(new DOMException("The operation timed out.", "TimeoutError"));
    const timer = setTimeout(expire, milliseconds);
    // Nothing waits for such a signal, so it must not keep a process alive.
    timer.unref();
    return { signal: controller.signal, cancel: () => clearTimeout(timer) };
  },
  after,
};

/** 25 days, the longest time that a timer takes: `setTimeout` takes a longer one for 1 ms. */
export const LONGEST_MILLISECONDS = 2 ** 31 - 1;

/** For times of any length: those from a setting, or computed from a clock. Returns a function that cancels it. */
export function after(milliseconds: number, action: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const startTimer = (left: number) => {
    const rest = left - LONGEST_MILLISECONDS;
    timer = rest > 0 ? setTimeout(startTimer, LONGEST_MILLISECONDS, rest) : setTimeout(action, left);
  };
  startTimer(milliseconds);
  return () => clearTimeout(timer);
}

/** Resolves when the signal is aborted. */
export async function aborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  signal.addEventListener("abort", () => resolve(undefined), { once: true });
  await promise;
}

/** A stop does not wait for the work, which goes on unobserved: rejects with the reason of the signal. */
export function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const giveUp = () => reject(signal.reason);
  if (signal.aborted) giveUp();
  signal.addEventListener("abort", giveUp, { once: true });
  work.then(resolve, reject);
  return promise.finally(() => signal.removeEventListener("abort", giveUp));
}

/** Lets other work of the process run first. Rejects if the signal is aborted by then. */
export async function nextTurn(signal?: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  signal?.throwIfAborted();
}
