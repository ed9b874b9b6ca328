/**
 * Standard input, read on the event loop: a runtime that never closes it must
 * not make a plugin deaf to signals, nor VERSION wait.
 */

/** The runtime writes right after it started us: who has written nothing by then never will. */
const PEEK_MILLISECONDS = 50;

/** All of stdin. Rejects with the signal's reason when the process is told to stop. */
export async function readStdin(signal: AbortSignal): Promise<Uint8Array> {
  const stopped = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => stopped.reject(signal.reason), { once: true });
  return Promise.race([Bun.stdin.bytes(), stopped.promise]);
}

/** What is written until stdin ends or a moment has passed. */
export async function peekStdin(): Promise<Uint8Array> {
  const reader = Bun.stdin.stream().getReader();
  const momentPassed = Bun.sleep(PEEK_MILLISECONDS).then(() => "moment passed" as const);
  const chunks: Uint8Array[] = [];
  for (;;) {
    const step = await Promise.race([reader.read(), momentPassed]);
    if (step === "moment passed" || step.done) return Bun.concatArrayBuffers(chunks, Number.POSITIVE_INFINITY, true);
    chunks.push(step.value);
  }
}
