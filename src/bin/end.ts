/**
 * The end of a plugin's process: whatever happened, one answer is written,
 * completely, and the process ends at once: nothing that a handler left open
 * keeps it alive.
 */
import type { Answer } from "../cni/answer.ts";
import { exitNow, isClosedOnExec, writeToStream } from "../linux/standard-streams.ts";
import { wasClosedAtStart } from "./descriptors.ts";

export const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** How long a call may undo its work after a signal or a fault, whoever does it. */
export const GRACE_MILLISECONDS = 2_000;

/** An answer in bytes, which the kernel takes from where they lie: from `stderrAt` the log, from `stdoutAt` to `end` the result. */
export interface WrittenAnswer {
  readonly exitCode: number;
  readonly bytes: Uint8Array;
  readonly stderrAt: number;
  readonly stdoutAt: number;
  readonly end: number;
}

export function written({ exitCode, stdout, stderr }: Answer): WrittenAnswer {
  const bytes = new TextEncoder().encode(stderr + stdout);
  return { exitCode, bytes, stderrAt: 0, stdoutAt: Buffer.byteLength(stderr), end: bytes.length };
}

/** Without system calls of our own, which a process that has done nothing but answer need not load. */
export async function endReady({ exitCode, stdout, stderr }: Answer, leave: Leave = leaveAtOnce): Promise<never> {
  if (stdout !== "" && wasClosedAtStart(1)) return endWithoutReader(stderr, "it is closed");
  return endPatiently(stderr, stdout, () => leave(exitCode));
}

/** By system calls of our own, which are loaded. Does not return where the streams take all of the answer at once. */
export function endWritten({ exitCode, bytes, stderrAt, stdoutAt, end }: WrittenAnswer): Promise<never> {
  if (end > stdoutAt && isClosedOnExec(1)) {
    return endWithoutReader(new TextDecoder().decode(bytes.subarray(stderrAt, stdoutAt)), "it is closed");
  }
  const logged = writeToStream(2, bytes, stderrAt, stdoutAt);
  const answered = logged === stdoutAt ? writeToStream(1, bytes, stdoutAt, end) : stdoutAt;
  if (answered === end) exitNow(exitCode);
  return endPatiently(bytes.subarray(logged, stdoutAt), bytes.subarray(answered, end), () => leaveAtOnce(exitCode));
}

type Leave = (exitCode: number) => never;

async function endPatiently<Text extends string | Uint8Array>(
  log: Text,
  answer: Text,
  leave: () => never,
): Promise<never> {
  if (log.length > 0) await Bun.write(Bun.stderr, log).catch(() => {});
  try {
    // `process.stdout` would lose what a pipe does not take at once; this waits until all is taken.
    if (answer.length > 0) await Bun.write(Bun.stdout, answer);
  } catch (failure) {
    return endWithoutReader("", String(failure));
  }
  return leave();
}

/** An answer that nobody got is a failure. */
async function endWithoutReader(stderr: string, reason: string): Promise<never> {
  await Bun.write(Bun.stderr, `${stderr}Cannot write the answer to stdout: ${reason}\n`).catch(() => {});
  return leaveAtOnce(1);
}

/** As `process.exit`, which first looks for whoever wants to hear of it: nobody does, and the look takes 0.3 ms. */
function leaveAtOnce(exitCode: number): never {
  const { reallyExit = process.exit }: { reallyExit?: (code: number) => never } = process;
  return reallyExit.call(process, exitCode);
}
