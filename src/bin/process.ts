/**
 * Runs a CNI plugin in this process: connects `serve()` with stdin, signals and
 * uncaught exceptions.
 */
import { type EnterPhase, startPhaseClock } from "../cni/phase.ts";
import type { Reply } from "../cni/reply.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { identity } from "../identity.ts";
import { type ReadSoFar, writeToStream } from "../linux/standard-streams.ts";
import type { CallContext } from "../plugin/call-context.ts";
import { interruptedBy } from "./interrupted.ts";
import { processHost } from "./process-host.ts";
import { removeUntrustedVariables } from "./trusted-environment.ts";
import {
  encodedReply,
  GRACE_MILLISECONDS,
  STOP_SIGNALS,
  writeBytesAndExit,
  writeTextAndExit,
} from "./write-and-exit.ts";

/** Runs the plugin, prints its reply and exits. */
export async function runPlugin(load: () => Promise<CniPlugin>, stdin?: ReadSoFar): Promise<never> {
  // stdout is reserved for the reply: what a library prints there goes to stderr.
  console.log = console.error;
  console.info = console.error;
  console.debug = console.error;

  const stopping = stopOnSignalsAndFaults();
  const reply = await Promise.race([serveLoaded(stopping.signal, load, stdin), stopping.graceOver]);
  return endProcess((await stopping.fault()) ?? reply);
}

/** Whether something may still be unwritten in the runtime's stream. */
let hasLogged = false;

/** Writes at once, unless stderr does not block and its reader is slow. */
function writeLog(text: string): void {
  const bytes = new TextEncoder().encode(text);
  const written = hasLogged ? 0 : writeToStream(2, bytes, 0, bytes.length);
  if (written === bytes.length) return;
  hasLogged = true;
  process.stderr.write(bytes.subarray(written));
}

/** Exits at once, unless log lines must be flushed first. */
export function endProcess({ exitCode, stdout, stderr }: Reply): Promise<never> {
  // A reader that does not read must not keep signals from ending the process.
  for (const name of STOP_SIGNALS) process.removeAllListeners(name);
  if (hasLogged) return writeTextAndExit({ exitCode, stdout, stderr }, (code) => process.exit(code));
  process.emit("exit", exitCode);
  return writeBytesAndExit(encodedReply({ exitCode, stdout, stderr }));
}

/** The context of a call that is done in the process that was called. */
export function ownProcess(): CallContext {
  return {
    environment: process.env,
    stderr: writeLog,
    host: processHost,
    enterPhase: tracePhases(),
    milliseconds: () => performance.now(),
  };
}

async function serveLoaded(signal: AbortSignal, load: () => Promise<CniPlugin>, soFar?: ReadSoFar): Promise<Reply> {
  const env = removeUntrustedVariables();
  const [{ serve }, { readStdin }, plugin] = await Promise.all([
    import("../cni/serve.ts"),
    import("./stdin.ts"),
    load(),
  ]);
  return serve({ env, readStdin: () => readStdin(signal, soFar), isOwnNetns, signal }, plugin);
}

async function errorReply(failure: unknown): Promise<Reply> {
  return (await import("../cni/reply.ts")).errorReply(failure, NEWEST_VERSION, process.env["CNI_COMMAND"]);
}

interface Stopping {
  /** Aborted by the first signal or fault: the handler undoes its work. */
  readonly signal: AbortSignal;
  /** Resolves with the reply for a handler that does not end in time. */
  readonly graceOver: Promise<Reply>;
  /** The reply for an uncaught exception. It takes precedence over the handler's reply: half of the work may be missing. */
  fault(): Promise<Reply> | undefined;
}

function stopOnSignalsAndFaults(): Stopping {
  const controller = new AbortController();
  const graceOver = Promise.withResolvers<Reply>();
  let fault: Promise<Reply> | undefined;
  const stop = (failure: unknown) => {
    if (controller.signal.aborted) return;
    setTimeout(() => graceOver.resolve(errorReply(failure)), GRACE_MILLISECONDS);
    controller.abort(failure);
  };
  const crash = (failure: unknown) => {
    fault ??= errorReply(failure);
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

/**
 * Measures where the time of the call goes. Prints it in one line on stderr if the variable TRACE (with the product's
 * prefix) is 1:
 *
 *   trace ADD: boot 4.2, decode 1.0, datastore 3.1, kernel 2.4, exit 0.3, all 11.0 ms
 *
 * The time until now counts as `boot`, the start of the process. The node agent logs the others for every call.
 */
function tracePhases(): EnterPhase {
  if (process.env[`${identity.environmentPrefix}TRACE`] !== "1") return () => {};
  const boot = performance.now();
  const clock = startPhaseClock();
  process.on("exit", () => {
    const parts = [...new Map([["boot", boot], ...clock.spent()])].map(
      ([phase, milliseconds]) => `${phase} ${milliseconds.toFixed(1)}`,
    );
    console.error(`trace ${process.env["CNI_COMMAND"]}: ${parts.join(", ")}, all ${performance.now().toFixed(1)} ms`);
  });
  return clock.enter;
}
