/**
 * Standard input, read without blocking the process: a runtime that never
 * closes it must not make a plugin deaf to signals, nor VERSION wait.
 *
 * A pipe is opened a second time through /proc, non-blocking: that leaves the
 * runtime's own end as it is, and takes in one step what has been written.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

const CHUNK_BYTES = 65_536;
const PEEK_MILLISECONDS = 20;

interface Taken {
  readonly bytes: Uint8Array;
  /** Whether the end was reached. */
  readonly ended: boolean;
}

/** All of stdin. Rejects with the signal's reason when the process is told to stop. */
export async function readStdin(signal: AbortSignal): Promise<Uint8Array> {
  const first = takeNow();
  if (first.ended) return first.bytes;

  const stopped = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => stopped.reject(signal.reason), { once: true });
  const rest = await Promise.race([Bun.stdin.bytes(), stopped.promise]);
  return Buffer.concat([first.bytes, rest]);
}

/** What was written so far, or within a few milliseconds: the runtime writes right after it started us. */
export async function peekStdin(): Promise<Uint8Array> {
  let taken = takeNow();
  for (let waited = 0; !taken.ended && taken.bytes.length === 0 && waited < PEEK_MILLISECONDS; waited += 1) {
    await Bun.sleep(1);
    taken = takeNow();
  }
  return taken.bytes;
}

function takeNow(): Taken {
  const stat = fstatSync(0);
  if (stat.isFIFO()) return takeFromPipe();
  // Only these never make a read wait.
  if (stat.isFile() || stat.isDirectory()) return drain(0);
  return { bytes: new Uint8Array(), ended: false };
}

function takeFromPipe(): Taken {
  let descriptor: number;
  try {
    descriptor = openSync("/proc/self/fd/0", constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return { bytes: new Uint8Array(), ended: false };
  }
  try {
    return drain(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Reads until the end, or until a read would have to wait. */
function drain(descriptor: number): Taken {
  const chunks: Uint8Array[] = [];
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    const length = readOrWait(descriptor, chunk);
    if (length === "would wait") return { bytes: Buffer.concat(chunks), ended: false };
    if (length === 0) return { bytes: Buffer.concat(chunks), ended: true };
    chunks.push(chunk.subarray(0, length));
  }
}

function readOrWait(descriptor: number, into: Buffer): number | "would wait" {
  try {
    return readSync(descriptor, into);
  } catch (failure) {
    if (failure instanceof Error && "code" in failure && failure.code === "EAGAIN") return "would wait";
    throw failure;
  }
}
