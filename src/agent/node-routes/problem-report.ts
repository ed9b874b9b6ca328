/**
 * Reports the problems of a plan that last: the record of a node that has just joined is completed within moments. Each
 * problem is reported once, until it has gone.
 */
const LASTING_MILLISECONDS = 5_000;

export interface ProblemMeans {
  readonly report: (problem: string) => void;
  /** All that last, at first and when they have changed: for `node status`. */
  readonly publish: (problems: readonly string[]) => void;
  /** Without other nodes nobody misses a route. */
  readonly isOfInterest: () => boolean;
}

export class ProblemReport {
  private before: ReadonlySet<string> = new Set();
  private reported: ReadonlySet<string> | undefined;

  constructor(private readonly means: ProblemMeans) {}

  /** Reports those that were there at the last call too. */
  look(problems: readonly string[]): void {
    const lasting = this.means.isOfInterest() ? problems.filter((problem) => this.before.has(problem)) : [];
    for (const problem of lasting) if (!this.reported?.has(problem)) this.means.report(problem);
    const now = new Set(lasting);
    if (!Bun.deepEquals(now, this.reported)) this.means.publish(lasting);
    this.reported = now;
    this.before = new Set(problems);
  }

  /** Resolves when the signal is aborted. */
  async run(
    problems: () => readonly string[],
    {
      wait,
      signal,
    }: { readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>; readonly signal: AbortSignal },
  ): Promise<void> {
    while (!signal.aborted) {
      await wait(LASTING_MILLISECONDS, signal);
      if (!signal.aborted) this.look(problems());
    }
  }
}
