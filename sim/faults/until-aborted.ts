import { RequestFailed } from "./network.ts";

/** The answer, or silence as soon as one of the signals fires. */
export function untilAborted<Answer>(
  answer: Promise<Answer>,
  signals: readonly (AbortSignal | undefined)[],
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const abort = () => reject(new RequestFailed("silence", "unknown"));
  for (const signal of signals) {
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
  }
  answer.then(resolve, reject).finally(() => {
    for (const signal of signals) signal?.removeEventListener("abort", abort);
  });
  return promise;
}
