/** Reports every message once: what fails at each attempt is not logged at each attempt. */
export interface OnceEach {
  report(message: string): void;
  /** The cause is gone: the same message is news again. */
  forget(): void;
}

export function onceEach(report: (message: string) => void): OnceEach {
  const reported = new Set<string>();
  return {
    report(message) {
      if (reported.has(message)) return;
      reported.add(message);
      report(message);
    },
    forget: () => reported.clear(),
  };
}
