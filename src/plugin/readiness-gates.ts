/**
 * Waits until every readiness gate is ready. All are requested at once; those that
 * are not ready are requested again every second, up to the limit.
 */
import { PluginError } from "../errors.ts";

export interface GateOptions {
  readonly wait: (milliseconds: number) => Promise<void>;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly signal: AbortSignal;
}

const LIMIT_MILLISECONDS = 30_000;
const PAUSE_MILLISECONDS = 1_000;
/** Limit of one request; a gate that hangs is requested again. */
const REQUEST_MILLISECONDS = 5_000;

type GateState = { readonly kind: "ready" } | { readonly kind: "waiting"; readonly reason: string };

export async function awaitReadiness(
  urls: readonly string[],
  options: GateOptions,
  limitMilliseconds = LIMIT_MILLISECONDS,
): Promise<void> {
  const end = options.elapsed() + limitMilliseconds;
  const reasons = await Promise.all(urls.map((url) => awaitGate(url, options, end)));
  const missing = urls.flatMap((url, index) => {
    const reason = reasons[index];
    return reason === undefined ? [] : `${url} (${reason})`;
  });
  if (missing.length === 0) return;
  const seconds = limitMilliseconds / 1000;
  throw new PluginError(
    "not-ready",
    `Cannot attach the container: readiness gates not ready after ${seconds} s: ${missing.join(", ")}`,
  );
}

/** `undefined` if it is ready, else the reason of the last failed request. */
async function awaitGate(url: string, options: GateOptions, end: number): Promise<string | undefined> {
  for (;;) {
    options.signal.throwIfAborted();
    const left = end - options.elapsed();
    const state = await request(url, Math.max(1, Math.min(left, REQUEST_MILLISECONDS)), options.signal);
    if (state.kind === "ready") return undefined;
    if (options.elapsed() + PAUSE_MILLISECONDS >= end) return state.reason;
    await options.wait(PAUSE_MILLISECONDS);
  }
}

async function request(url: string, milliseconds: number, signal: AbortSignal): Promise<GateState> {
  try {
    const init = {
      redirect: "manual",
      tls: { rejectUnauthorized: true },
      signal: AbortSignal.any([signal, AbortSignal.timeout(milliseconds)]),
    } as const;
    const { status } = await fetch(url, init);
    if (status >= 200 && status < 400) return { kind: "ready" };
    return { kind: "waiting", reason: `HTTP status ${status}` };
  } catch (failure) {
    if (signal.aborted) throw signal.reason;
    return { kind: "waiting", reason: failure instanceof Error ? failure.message : String(failure) };
  }
}
