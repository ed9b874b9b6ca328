/**
 * Keeps the parts of the node agent running.
 *
 *   run ──> the part fails or ends ──> pause, longer each time ──> run …
 *    │
 *    └── the agent is told to stop: the part's signal is aborted, and its end is awaited
 *
 * A part that fails does not affect the others. Only a part that throws
 * `StartRefused`, which must not be started again, stops all of them.
 */

export interface AgentPart {
  /** As shown in the log: "the call server". */
  readonly name: string;
  /** It is stopped only after all others have ended, which may need its work until then. */
  readonly endsLast?: boolean;
  /** Runs until the signal is aborted; resolves when its work has ended. */
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
/** After running for this long a part counts as healthy: its next failure starts with the first pause again. */
const STEADY = 60_000;

/** Resolves when every part has ended; rejects with `StartRefused` if one of them refused to start. */
export async function superviseParts(parts: readonly AgentPart[], supervision: Supervision): Promise<void> {
  const [refused, othersEnded] = [new AbortController(), new AbortController()];
  const signal = AbortSignal.any([supervision.signal, refused.signal]);
  const supervise = async (part: AgentPart, stop: AbortSignal) => {
    try {
      await supervisePart(part, { ...supervision, signal: stop });
    } catch (refusal) {
      refused.abort();
      throw refusal;
    }
  };
  const [last, others] = [parts.filter(({ endsLast }) => endsLast), parts.filter(({ endsLast }) => !endsLast)];
  const endings = others.map((part) => supervise(part, signal));
  const lastEndings = last.map((part) => supervise(part, othersEnded.signal));
  const ended = await Promise.allSettled(endings);
  othersEnded.abort();
  const refusal = [...ended, ...(await Promise.allSettled(lastEndings))].find((each) => each.status === "rejected");
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

/** How long to wait before the next start, given the previous pause and how long the part ran after it. */
export function nextPause(pauseBefore: number, ranFor: number): number {
  if (pauseBefore === 0 || ranFor >= STEADY) return FIRST_PAUSE;
  return Math.min(pauseBefore * 2, LONGEST_PAUSE);
}
