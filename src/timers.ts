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
  // Nothing waits for such a signal, so it need not be cancelled.
  timeout: (milliseconds) => ({ signal: AbortSignal.timeout(milliseconds), cancel: () => {} }),
  after: (milliseconds, action) => {
    const timer = setTimeout(action, milliseconds);
    return () => clearTimeout(timer);
  },
};
