/** What `make test` on the bare machine printed: its counts, and why tests were skipped. Pure. */

export interface Outcome {
  /** The last line of `make test`; absent if it did not finish. */
  readonly counts?: string;
  /** How many tests were skipped for each reason. */
  readonly reasons: ReadonlyMap<string, number>;
}

export function outcomeOf(printed: string): Outcome {
  const lines = printed.split("\n").map((line) => line.trim());
  const counts = lines.findLast((line) => /^\d+ passed, \d+ failed, \d+ skipped$/.test(line));
  const reasons = new Map<string, number>();
  for (const line of lines) {
    if (!line.startsWith("skipped: ")) continue;
    const reason = /\(skipped: (.*)\)$/.exec(line)?.[1] ?? `no reason given: ${line.slice("skipped: ".length)}`;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return { ...(counts === undefined ? {} : { counts }), reasons };
}

/** `make test` leaves these tests to the soak and the benchmarks on every machine; one cannot run inside another bare machine. */
const SKIPPED_EVERYWHERE =
  /only in `make soak`|\bcalico(ctl)? is not built|needs the Go module of Calico|^is on a bare machine already$/;

/** All packages are installed there and all parts are built, so no other test may be skipped. */
export function needlessReasons({ reasons }: Outcome): readonly string[] {
  return [...reasons.keys()].filter((reason) => !SKIPPED_EVERYWHERE.test(reason));
}
