/**
 * The real process around a CNI plugin: the only place where `serve()` meets
 * file descriptors, signals and the exit code.
 *
 * Whatever happens, one answer is written, completely, and the process ends at
 * once: nothing that a handler left open keeps it alive.
 */
import { statSync, writeSync } from "node:fs";
import { type Answer, errorAnswer } from "../cni/answer.ts";
import { type CniPlugin, type CniProcess, serve } from "../cni/serve.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { PluginError } from "../errors.ts";
import { peekStdin, readStdin } from "./stdin.ts";

/** How long a handler may undo its work after a signal. */
const GRACE_MILLISECONDS = 2_000;

const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Runs the plugin to its end, and the process with it. */
export async function runPlugin(plugin: CniPlugin): Promise<never> {
  // stdout belongs to the answer: what a library prints there goes to the log.
  console.log = console.error;
  console.info = console.error;
  console.debug = console.error;

  const crashed = Promise.withResolvers<Answer>();
  const crash = (failure: unknown) => crashed.resolve(errorAnswer(failure, NEWEST_VERSION));
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);

  const stopping = stopOnSignals();
  const served = serve(realProcess(stopping.signal), plugin);
  return end(await Promise.race([served, crashed.promise, stopping.graceOver]));
}

function realProcess(signal: AbortSignal): CniProcess {
  return { env: process.env, readStdin: () => readStdin(signal), peekStdin, isOwnNetns, signal };
}

function stopOnSignals(): { readonly signal: AbortSignal; readonly graceOver: Promise<Answer> } {
  const controller = new AbortController();
  const graceOver = Promise.withResolvers<Answer>();
  const stop = (name: string) => {
    if (controller.signal.aborted) return;
    const failure = new PluginError("interrupted", `Cannot finish: stopped by ${name}`);
    setTimeout(() => graceOver.resolve(errorAnswer(failure, NEWEST_VERSION)), GRACE_MILLISECONDS);
    controller.abort(failure);
  };
  for (const name of STOP_SIGNALS) process.on(name, stop);
  return { signal: controller.signal, graceOver: graceOver.promise };
}

/** Network namespaces are the same when their files are: device and inode. */
function isOwnNetns(path: string): boolean {
  const own = statSync("/proc/self/ns/net", { throwIfNoEntry: false });
  if (own === undefined) return false;
  try {
    const other = statSync(path, { throwIfNoEntry: false });
    return other !== undefined && other.dev === own.dev && other.ino === own.ino;
  } catch {
    return false;
  }
}

function end(answer: Answer): Promise<never> {
  // A reader that does not read must not make the process immune to signals.
  for (const name of STOP_SIGNALS) process.removeAllListeners(name);
  writeQuietly(2, answer.stderr);
  return writeAll(1, answer.stdout).then(
    () => process.exit(answer.exitCode),
    (failure) => {
      writeQuietly(2, `Cannot write the answer to stdout: ${failure}\n`);
      return process.exit(1);
    },
  );
}

/** `process.stdout` would lose what a pipe does not take at once when the process exits. */
async function writeAll(descriptor: number, text: string): Promise<void> {
  let rest: Uint8Array = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (failure) {
      if (!isTryAgain(failure)) throw failure;
      await Bun.sleep(1);
    }
  }
}

/** For stderr: a log that nobody can read is no reason to fail. */
function writeQuietly(descriptor: number, text: string): void {
  try {
    if (text !== "") writeSync(descriptor, text);
  } catch {}
}

function isTryAgain(failure: unknown): boolean {
  return failure instanceof Error && "code" in failure && failure.code === "EAGAIN";
}
