/**
 * The process around a CNI plugin that does its work itself: the only place
 * where `serve()` meets stdin, signals and faults.
 */
import type { Answer } from "../cni/answer.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import type { ReadSoFar } from "../linux/standard-streams.ts";
import type { CallMeans } from "./call-means.ts";
import { endReady, endWritten, GRACE_MILLISECONDS, STOP_SIGNALS, written } from "./end.ts";
import { interruptedBy } from "./interrupted.ts";
import { tracePhases } from "./phases.ts";
import { processHost } from "./process-host.ts";
import { forgetProxies } from "./proxies.ts";

/** Runs the plugin to its end, and the process with it. */
export async function runPlugin(load: () => Promise<CniPlugin>, stdin?: ReadSoFar): Promise<never> {
  // stdout belongs to the answer: what a library prints there goes to the log.
  console.log = console.error;
  console.info = console.error;
  console.debug = console.error;

  const stopping = stopOnSignalsAndFaults();
  const answer = await Promise.race([serveLoaded(stopping.signal, load, stdin), stopping.graceOver]);
  return endProcess((await stopping.fault()) ?? answer);
}

let hasLogged = false;

/** Where a log goes that has no file. */
function writeLog(text: string): void {
  hasLogged = true;
  process.stderr.write(text);
}

/** At once, where nothing is left that would need an orderly end. */
export function endProcess({ exitCode, stdout, stderr }: Answer): Promise<never> {
  // A reader that does not read must not make the process immune to signals.
  for (const name of STOP_SIGNALS) process.removeAllListeners(name);
  if (hasLogged) return endReady({ exitCode, stdout, stderr }, (code) => process.exit(code));
  process.emit("exit", exitCode);
  return endWritten(written({ exitCode, stdout, stderr }));
}

/** What a call finds that is done in the process that was called. */
export function ownProcess(): CallMeans {
  return { environment: process.env, stderr: writeLog, host: processHost, enterPhase: tracePhases() };
}

async function serveLoaded(signal: AbortSignal, load: () => Promise<CniPlugin>, soFar?: ReadSoFar): Promise<Answer> {
  const env = forgetProxies();
  const [{ serve }, { readStdin }, plugin] = await Promise.all([
    import("../cni/serve.ts"),
    import("./stdin.ts"),
    load(),
  ]);
  return serve({ env, readStdin: () => readStdin(signal, soFar), isOwnNetns, signal }, plugin);
}

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
  for (const name of STOP_SIGNALS) process.on(name, () => stop(interruptedBy(name)));
  process.on("uncaughtException", crash);
  process.on("unhandledRejection", crash);
  return { signal: controller.signal, graceOver: graceOver.promise, fault: () => fault };
}

async function isOwnNetns(path: string): Promise<boolean> {
  return (await import("../linux/netns.ts")).isOwnNetns(path);
}
