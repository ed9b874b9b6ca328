/** Not the same message again within a minute: another program may change something again and again. */
const SILENCE_MILLISECONDS = 60_000;

export interface QuietMeans {
  readonly report: (message: string) => void;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
}

export function quietReport({ report, elapsed }: QuietMeans): (message: string) => void {
  /** When each message was reported. */
  let reported = new Map<string, number>();
  return (message) => {
    const now = elapsed();
    reported = new Map([...reported].filter(([, at]) => now - at < SILENCE_MILLISECONDS));
    if (reported.has(message)) return;
    reported.set(message, now);
    report(message);
  };
}
