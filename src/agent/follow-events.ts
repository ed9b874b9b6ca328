/** Tells a keeper what the kernel reports; if reports may have been missed, the keeper distrusts what it knows. */
export interface EventKeeper<Event> {
  notice(events: readonly Event[]): void;
  /** Anything may have changed. */
  distrust(): void;
}

export interface EventMeans<Event> {
  readonly events: (signal: AbortSignal) => AsyncIterable<readonly Event[] | "lost">;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
  readonly report: (message: string) => void;
  /** The keeper has something to look at. */
  readonly ring: () => void;
}

/** After the kernel's events could not be followed. */
const RETRY_MILLISECONDS = 1_000;

/** Resolves when the signal is aborted. */
export async function followEvents<Event>(keeper: EventKeeper<Event>, means: EventMeans<Event>): Promise<void> {
  const { events, wait, signal, report, ring } = means;
  while (!signal.aborted) {
    try {
      for await (const batch of events(signal)) {
        if (batch === "lost") keeper.distrust();
        else keeper.notice(batch);
        ring();
      }
    } catch (failure) {
      report(`Cannot follow changes of routes: ${failure instanceof Error ? failure.message : String(failure)}`);
    }
    await wait(RETRY_MILLISECONDS, signal);
    keeper.distrust();
    ring();
  }
}
