/** Reports every message once: what fails at each attempt is not logged at each attempt. */
export interface OnceEach {
  report(message: string): void;
  /** The cause is gone: the same message is news again. */
  forget(): void;
  /** All causes were looked at: what was not reported since the last call is over, and news again. */
  endRound(): void;
}

export function onceEach(report: (message: string) => void): OnceEach {
  let reported = new Set<string>();
  let inRound = new Set<string>();
  return {
    report(message) {
      inRound.add(message);
      if (reported.has(message)) return;
      reported.add(message);
      report(message);
    },
    forget() {
      reported.clear();
      inRound.clear();
    },
    endRound() {
      [reported, inRound] = [inRound, new Set()];
    },
  };
}
