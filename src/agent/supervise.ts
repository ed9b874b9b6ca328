/**
 * Keeps the parts of the node agent running.
 *
 *   run ──> the part fails or ends ──> pause, longer each time ──> run …
 *    │                                                              ^
 *    └── the agent is told to stop: the part's signal is aborted, and the part is awaited
 *
 * A part that fails does not disturb the others. Only a part that must not be
 * started again, by throwing `StartRefused`, stops all of them.
 */

export interface AgentPart {
  /** As it reads in the log: "the call server". */
  readonly name: string;
  /** Works until the signal is aborted, and resolves when its work has come to an end. */
  run(signal: AbortSignal): Promise<void>;
}

/** Another start would fail for the same reason. The part has reported why. */
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}

export interface Supervision {
  /** Aborted: the agent is told to stop. */
  readonly signal: AbortSignal;
  report(message: string): void;
  elapsed(): number;
  /** Resolves early if the signal is aborted. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 10_000;
/** A part that ran for this long has started well: its next failure is the first one again. */
const STEADY = 60_000;

/** Resolves when every part has come to an end; rejects with `StartRefused` if one of them refused to start. */
export async function superviseParts(parts: readonly AgentPart[], supervision: Supervision): Promise<void> {
  const refused = new AbortController();
  const signal = AbortSignal.any([supervision.signal, refused.signal]);
  const ended = await Promise.allSettled(
    parts.map(async (part) => {
      try {
        await supervisePart(part, { ...supervision, signal });
      } catch (refusal) {
        refused.abort();
        throw refusal;
      }
    }),
  );
  const refusal = ended.find((each) => each.status === "rejected");
  if (refusal !== undefined) throw refusal.reason;
}

async function supervisePart(part: AgentPart, { signal, report, elapsed, wait }: Supervision): Promise<void> {
  let pause = 0;
  while (!signal.aborted) {
    const started = elapsed();
    const reason = await reasonOfEnd(part, signal);
    if (signal.aborted) return;
    pause = nextPause(pause, elapsed() - started);
    report(`${part.name} ${reason}: starting it again in ${pause} ms`);
    await wait(pause, signal);
  }
}

async function reasonOfEnd(part: AgentPart, signal: AbortSignal): Promise<string> {
  try {
    await part.run(signal);
    return "ended";
  } catch (failure) {
    if (failure instanceof StartRefused) throw failure;
    return `failed (${failure instanceof Error ? failure.message : String(failure)})`;
  }
}

/** How long to wait before the next start, after the pause before and the time that the part ran since. */
export function nextPause(pauseBefore: number, ranFor: number): number {
  if (pauseBefore === 0 || ranFor >= STEADY) return FIRST_PAUSE;
  return Math.min(pauseBefore * 2, LONGEST_PAUSE);
}
