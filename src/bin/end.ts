/**
 * The end of a plugin's process: whatever happened, one answer is written,
 * completely, and the process ends at once: nothing that a handler left open
 * keeps it alive.
 */
import type { Answer } from "../cni/answer.ts";
import { exitNow, writeToStream } from "../linux/standard-streams.ts";
import { wasClosedAtStart } from "./descriptors.ts";

export const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

let hasLogged = false;

/** Where a log goes that has no file. */
export function writeLog(text: string): void {
  hasLogged = true;
  process.stderr.write(text);
}

/** For a process that has done nothing but answer: it loads no system calls for this. */
export function endReady({ exitCode, stdout, stderr }: Answer): Promise<never> {
  if (stdout !== "" && wasClosedAtStart(1)) return endWithoutReader(stderr, "it is closed");
  return endPatiently(exitCode, stderr, stdout);
}

/** Does not return where the streams take all of the answer at once. */
export function endProcess({ exitCode, stdout, stderr }: Answer): Promise<never> {
  if (stdout !== "" && wasClosedAtStart(1)) return endWithoutReader(stderr, "it is closed");
  const unwrittenLog = writeNow(2, stderr);
  const unwritten = unwrittenLog.length === 0 ? writeNow(1, stdout) : bytesOf(stdout);
  if (unwrittenLog.length + unwritten.length > 0) return endPatiently(exitCode, unwrittenLog, unwritten);
  return end(exitCode);
}

function end(exitCode: number): never {
  process.emit("exit", exitCode);
  // At once, where nothing is left that would need an orderly end.
  if (!hasLogged) exitNow(exitCode);
  return process.exit(exitCode);
}

async function endPatiently<Text extends string | Uint8Array>(
  exitCode: number,
  log: Text,
  answer: Text,
): Promise<never> {
  // A reader that does not read must not make the process immune to signals.
  for (const name of STOP_SIGNALS) process.removeAllListeners(name);
  if (log.length > 0) await Bun.write(Bun.stderr, log).catch(() => {});
  try {
    // `process.stdout` would lose what a pipe does not take at once; this waits until all is taken.
    if (answer.length > 0) await Bun.write(Bun.stdout, answer);
  } catch (failure) {
    return endWithoutReader("", String(failure));
  }
  return process.exit(exitCode);
}

/** An answer that nobody got is a failure. */
async function endWithoutReader(stderr: string, reason: string): Promise<never> {
  await Bun.write(Bun.stderr, `${stderr}Cannot write the answer to stdout: ${reason}\n`).catch(() => {});
  return process.exit(1);
}

/** Answers what was not taken. */
function writeNow(stream: 1 | 2, text: string): Uint8Array {
  return text === "" ? new Uint8Array(0) : writeToStream(stream, bytesOf(text));
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
