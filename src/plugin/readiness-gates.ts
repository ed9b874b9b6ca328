/**
 * Waits until every readiness gate answers. All are asked at once; those that
 * are not ready are asked again each second, up to the limit.
 */
import { PluginError } from "../errors.ts";

export interface GateMeans {
  readonly wait: (milliseconds: number) => Promise<void>;
  /** Milliseconds of a clock that never goes back. */
  readonly elapsed: () => number;
  readonly signal: AbortSignal;
}

const LIMIT_MILLISECONDS = 30_000;
const PAUSE_MILLISECONDS = 1_000;
/** One request; a gate that hangs is asked again. */
const REQUEST_MILLISECONDS = 5_000;

type Answer = { readonly kind: "ready" } | { readonly kind: "waiting"; readonly reason: string };

export async function awaitReadiness(
  urls: readonly string[],
  means: GateMeans,
  limitMilliseconds = LIMIT_MILLISECONDS,
): Promise<void> {
  const end = means.elapsed() + limitMilliseconds;
  const reasons = await Promise.all(urls.map((url) => awaitGate(url, means, end)));
  const missing = urls.flatMap((url, index) => {
    const reason = reasons[index];
    return reason === undefined ? [] : `${url} (${reason})`;
  });
  if (missing.length === 0) return;
  const seconds = limitMilliseconds / 1000;
  throw new PluginError("not-ready", `Cannot go on: not ready after ${seconds} s: ${missing.join(", ")}`);
}

/** `undefined` when it is ready, else why it was not when it was last asked. */
async function awaitGate(url: string, means: GateMeans, end: number): Promise<string | undefined> {
  for (;;) {
    means.signal.throwIfAborted();
    const left = end - means.elapsed();
    const answer = await ask(url, Math.max(1, Math.min(left, REQUEST_MILLISECONDS)), means.signal);
    if (answer.kind === "ready") return undefined;
    if (means.elapsed() + PAUSE_MILLISECONDS >= end) return answer.reason;
    await means.wait(PAUSE_MILLISECONDS);
  }
}

async function ask(url: string, milliseconds: number, signal: AbortSignal): Promise<Answer> {
  try {
    const request = {
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(milliseconds)]),
    } as const;
    const { status } = await fetch(url, request);
    if (status >= 200 && status < 400) return { kind: "ready" };
    return { kind: "waiting", reason: `it answered ${status}` };
  } catch (failure) {
    if (signal.aborted) throw signal.reason;
    return { kind: "waiting", reason: failure instanceof Error ? failure.message : String(failure) };
  }
}
