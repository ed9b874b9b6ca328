/**
 * Standard input. A runtime has mostly written all of it before this process
 * has started; what comes later is awaited on the event loop: a runtime that
 * never closes it must not make a plugin deaf to signals.
 */
import { type ReadSoFar, readReadyStdin } from "../linux/standard-streams.ts";
import { wasClosedAtStart } from "./descriptors.ts";

/** All of stdin, some of which was perhaps read before. Rejects with the signal's reason when the process is told to stop. */
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
