/**
 * The real process around a CNI plugin: the only place where `serve()` meets
 * file descriptors, signals and the exit code.
 *
 * Whatever happens, one answer is written, completely, and the process ends at
 * once: nothing that a handler left open keeps it alive.
 * It does without node:fs, whose import alone takes longer than VERSION itself.
 */
import { type Answer, errorAnswer } from "../cni/answer.ts";
import { type CniPlugin, type CniProcess, serve } from "../cni/serve.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { PluginError } from "../errors.ts";
import { readStdin } from "./stdin.ts";

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
  return { env: process.env, readStdin: () => readStdin(signal), isOwnNetns, signal };
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
async function isOwnNetns(path: string): Promise<boolean> {
  try {
    const [own, other] = await Promise.all([Bun.file("/proc/self/ns/net").stat(), Bun.file(path).stat()]);
    return other.dev === own.dev && other.ino === own.ino;
  } catch {
    return false;
  }
}

async function end(answer: Answer): Promise<never> {
  // A reader that does not read must not make the process immune to signals.
  for (const name of STOP_SIGNALS) process.removeAllListeners(name);
  await writeToStderr(answer.stderr);
  try {
    // `process.stdout` would lose what a pipe does not take at once; this waits until all is taken.
    if (answer.stdout !== "") await Bun.write(Bun.stdout, answer.stdout);
  } catch (failure) {
    await writeToStderr(`Cannot write the answer to stdout: ${failure}\n`);
    process.exit(1);
  }
  process.exit(answer.exitCode);
}

/** A log that nobody can read is no reason to fail. */
async function writeToStderr(text: string): Promise<void> {
  if (text !== "") await Bun.write(Bun.stderr, text).catch(() => {});
}
