/**
 * Standard input. A runtime has usually written all of it before this process has
 * started; the rest is awaited on the event loop, so that signals are handled
 * even if the runtime never closes it.
 */
import { type ReadSoFar, readReadyStdin } from "../linux/standard-streams.ts";
import { wasClosedAtStart } from "./descriptors.ts";

/** Reads all of stdin, including what was already read. Rejects with the signal's reason if it is aborted. */
export async function readStdin(signal: AbortSignal, soFar?: ReadSoFar): Promise<Uint8Array> {
  const { bytes, from, to, isAll } = soFar ?? readReadyStdin();
  const begun = bytes.subarray(from, to);
  const all = isAll ? begun : Buffer.concat([begun, await readRest(signal)]);
  if (all.length === 0 && wasClosedAtStart(0)) throw new Error("it is closed");
  return all;
}

async function readRest(signal: AbortSignal): Promise<Uint8Array> {
  const stopped = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => stopped.reject(signal.reason), { once: true });
  return Promise.race([Bun.stdin.bytes(), stopped.promise]);
}
