/**
 * Standard input, read on the event loop: a runtime that never closes it must
 * not make a plugin deaf to signals.
 */
import { wasClosedAtStart } from "./descriptors.ts";

/** All of stdin. Rejects with the signal's reason when the process is told to stop. */
export async function readStdin(signal: AbortSignal): Promise<Uint8Array> {
  const stopped = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => stopped.reject(signal.reason), { once: true });
  const bytes = await Promise.race([Bun.stdin.bytes(), stopped.promise]);
  if (bytes.length === 0 && (await wasClosedAtStart(0))) throw new Error("it is closed");
  return bytes;
}
