/**
 * The real process around a CNI plugin: the only place where `serve()` meets
 * file descriptors, signals and the exit code.
 *
 * Whatever happens, one answer is written, completely, and the process ends at
 * once: nothing that a handler left open keeps it alive.
 * It does without node:fs, whose import alone takes longer than VERSION itself.
 */
import type { Answer } from "../cni/answer.ts";
import { faceAnswer, type PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { PluginError } from "../errors.ts";
import { forgetProxies } from "./proxies.ts";

/** How long a handler may undo its work after a signal or a fault. */
const GRACE_MILLISECONDS = 2_000;

const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Runs the plugin to its end, and the process with it. `load` is called only by a command that needs the plugin. */
export async function runPlugin(face: PluginFace, load: () => Promise<CniPlugin>): Promise<never> {
  const ready = faceAnswer(process.env["CNI_COMMAND"] ?? "", face);
  if (ready !== undefined) return endProcess(ready);

  // stdout belongs to the answer: what a library prints there goes to the log.
  console.log = console.error;
  console.info = console.error;
  console.debug = console.error;

  const stopping = stopOnSignalsAndFaults();
  const answer = await Promise.race([serveLoaded(stopping.signal, load), stopping.graceOver]);
  return endServed((await stopping.fault()) ?? answer);
}

async function serveLoaded(signal: AbortSignal, load: () => Promise<CniPlugin>): Promise<Answer> {
  const env = forgetProxies();
  const [{ serve }, { readStdin }, plugin] = await Promise.all([
    import("../cni/serve.ts"),
    import("./stdin.ts"),
    load(),
  ]);
  return serve({ env, readStdin: () => readStdin(signal), isOwnNetns, signal }, plugin);
}

/** Loaded when it is needed: VERSION never fails. */
async function errorAnswer(failure: unknown): Promise<Answer> {
  return (await import("../cni/answer.ts")).errorAnswer(failure, NEWEST_VERSION);
}

interface Stopping {
  /** Aborted by the first signal or fault: the handler undoes its work. */
  readonly signal: AbortSignal;
  /** The answer for a handler that does not come to an end. */
  readonly graceOver: Promise<Answer>;
  /** What was thrown where nobody could catch it. It outweighs whatever the handler says: half of its work may be missing. */
  fault(): Promise<Answer> | undefined;
}

function stopOnSignalsAndFaults(): Stopping {
  const controller = new AbortController();
  const graceOver = Promise.withResolvers<Answer>();
  let fault: Promise<Answer> | undefined;
  const stop = (failure: unknown) => {
    if (controller.signal.aborted) return;
    setTimeout(() => graceOver.resolve(errorAnswer(failure)), GRACE_MILLISECONDS);
    controller.abort(failure);
  };
  const crash = (failure: unknown) => {
    fault ??= errorAnswer(failure);
    stop(failure);
  };
  for (const name of STOP_SIGNALS) {
    process.on(name, () => stop(new PluginError("interrupted", `Cannot finish: stopped by ${name}`)));
  }
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);
  return { signal: controller.signal, graceOver: graceOver.promise, fault: () => fault };
}

async function isOwnNetns(path: string): Promise<boolean> {
  return (await import("../linux/netns.ts")).isOwnNetns(path);
}

let hasLogged = false;

/** Where a log goes that has no file. */
export function writeLog(text: string): void {
  hasLogged = true;
  process.stderr.write(text);
}

/** As `endProcess`, at once where all goes well: nothing is left that would need an orderly end. */
async function endServed(answer: Answer): Promise<never> {
  const [{ exitNow, writeToStream }, { wasClosedAtStart }] = await Promise.all([
    import("../linux/standard-streams.ts"),
    import("./descriptors.ts"),
  ]);
  if (hasLogged || answer.stderr !== "" || (wiredSomething(answer) && wasClosedAtStart(1))) return endProcess(answer);
  stopListening();
  const rest = writeToStream(1, new TextEncoder().encode(answer.stdout));
  if (rest.length > 0) return endProcess({ ...answer, stdout: new TextDecoder().decode(rest) });
  process.emit("exit", answer.exitCode);
  exitNow(answer.exitCode);
  return process.exit(answer.exitCode);
}

/** Writes the answer, completely, and ends. */
export async function endProcess(answer: Answer): Promise<never> {
  stopListening();
  await writeToStderr(answer.stderr);
  try {
    // `process.stdout` would lose what a pipe does not take at once; this waits until all is taken.
    if (answer.stdout !== "") await Bun.write(Bun.stdout, answer.stdout);
    if (wiredSomething(answer) && (await import("./descriptors.ts")).wasClosedAtStart(1))
      throw new Error("it is closed");
  } catch (failure) {
    await writeToStderr(`Cannot write the answer to stdout: ${failure}\n`);
    process.exit(1);
  }
  process.exit(answer.exitCode);
}

/** A reader that does not read must not make the process immune to signals. */
function stopListening(): void {
  for (const name of STOP_SIGNALS) process.removeAllListeners(name);
}

/** An ADD whose result nobody got is a failure. The look at stdout would double the time of a VERSION, and nobody misses its answer. */
function wiredSomething(answer: Answer): boolean {
  return answer.exitCode === 0 && answer.stdout !== "" && process.env["CNI_COMMAND"] === "ADD";
}

/** A log that nobody can read is no reason to fail. */
async function writeToStderr(text: string): Promise<void> {
  if (text !== "") await Bun.write(Bun.stderr, text).catch(() => {});
}
