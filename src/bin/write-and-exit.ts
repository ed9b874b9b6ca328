/**
 * The end of a plugin's process: whatever happened, one complete reply is
 * written, and the process exits at once, even if a handler left something open.
 */
import type { Reply } from "../cni/reply.ts";
import { exitNow, isClosedOnExec, writeToStream } from "../linux/standard-streams.ts";
import { wasClosedAtStart } from "./descriptors.ts";

export const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** How long a call may take to undo its work after a signal or a fault, in this process or in the agent. */
export const GRACE_MILLISECONDS = 2_000;

/** A reply in one buffer: the log from `stderrAt`, the result from `stdoutAt` to `end`. */
export interface EncodedReply {
  readonly exitCode: number;
  readonly bytes: Uint8Array;
  readonly stderrAt: number;
  readonly stdoutAt: number;
  readonly end: number;
}

export function encodedReply({ exitCode, stdout, stderr }: Reply): EncodedReply {
  const bytes = new TextEncoder().encode(stderr + stdout);
  return { exitCode, bytes, stderrAt: 0, stdoutAt: Buffer.byteLength(stderr), end: bytes.length };
}

/** Uses the runtime's streams, so that an immediate reply need not load our own system calls. */
export async function writeTextAndExit({ exitCode, stdout, stderr }: Reply, exit: Exit = exitAtOnce): Promise<never> {
  if (stdout !== "" && wasClosedAtStart(1)) return exitUnwritten(stderr, "it is closed");
  return writeAllAndExit(stderr, stdout, () => exit(exitCode));
}

/** Uses our own system calls, which are loaded already. Does not return if the streams accept the whole reply at once. */
export function writeBytesAndExit({ exitCode, bytes, stderrAt, stdoutAt, end }: EncodedReply): Promise<never> {
  if (end > stdoutAt && isClosedOnExec(1)) {
    return exitUnwritten(new TextDecoder().decode(bytes.subarray(stderrAt, stdoutAt)), "it is closed");
  }
  const logged = writeToStream(2, bytes, stderrAt, stdoutAt);
  const printed = logged === stdoutAt ? writeToStream(1, bytes, stdoutAt, end) : stdoutAt;
  if (printed === end) exitNow(exitCode);
  return writeAllAndExit(bytes.subarray(logged, stdoutAt), bytes.subarray(printed, end), () => exitAtOnce(exitCode));
}

type Exit = (exitCode: number) => never;

async function writeAllAndExit<Text extends string | Uint8Array>(
  log: Text,
  reply: Text,
  exit: () => never,
): Promise<never> {
  if (log.length > 0) await Bun.write(Bun.stderr, log).catch(() => {});
  try {
    // `process.stdout` would lose what a pipe does not accept at once; this waits until everything is written.
    if (reply.length > 0) await Bun.write(Bun.stdout, reply);
  } catch (failure) {
    return exitUnwritten("", String(failure));
  }
  return exit();
}

/** A reply that cannot be written is a failure. */
async function exitUnwritten(stderr: string, reason: string): Promise<never> {
  await Bun.write(Bun.stderr, `${stderr}Cannot write the result to stdout: ${reason}\n`).catch(() => {});
  return exitAtOnce(1);
}

/** As `process.exit`, without looking for exit listeners, which takes 0.3 ms: there are none. */
function exitAtOnce(exitCode: number): never {
  const { reallyExit = process.exit }: { reallyExit?: (code: number) => never } = process;
  return reallyExit.call(process, exitCode);
}
