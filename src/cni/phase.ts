/** What a call is doing, for measurements of where its time is spent. */
export type Phase = "boot" | "decode" | "datastore" | "kernel" | "exit";

/** Called when the next phase begins. */
export type EnterPhase = (phase: Phase) => void;

export interface PhaseClock {
  readonly enter: EnterPhase;
  /** Milliseconds in each phase so far, in the order they were entered. */
  spent(): ReadonlyMap<Phase, number>;
}

/** The first phase is `decode`. */
export function startPhaseClock(): PhaseClock {
  let since = performance.now();
  let current: Phase = "decode";
  const spent = new Map<Phase, number>();
  const enter = (next: Phase) => {
    const now = performance.now();
    spent.set(current, (spent.get(current) ?? 0) + now - since);
    current = next;
    since = now;
  };
  return {
    enter,
    spent: () => {
      enter(current);
      return spent;
    },
  };
}
