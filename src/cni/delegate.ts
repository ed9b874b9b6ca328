/**
 * Runs another plugin, an IPAM or a chained one, and returns its result.
 *
 * It is searched for in CNI_PATH only. It gets the caller's environment with its own
 * CNI_COMMAND and without BUN_* variables, which would make an executable of ours act
 * as a bare runtime. Its stderr is our caller's stderr; its error keeps its own code.
 */
import { ForeignError, PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import { type CniCommand, type Environment, pluginDirectories } from "./environment.ts";
import { isJsonObject } from "./json.ts";
import type { CniResult } from "./result.ts";
import { decodeResult } from "./result-conversion.ts";
import type { CniVersion } from "./version.ts";

export interface DelegateRequest {
  /** The plugin's `type`. */
  readonly type: string;
  readonly command: CniCommand;
  readonly environment: Environment;
  /** The config, byte for byte. */
  readonly stdin: Uint8Array;
  /** After this time the child is killed, with all processes that it started. */
  readonly limitMilliseconds: number;
  /** Called with what the child writes to stderr; if absent, the child inherits this process's stderr. */
  readonly stderr?: ((text: string) => void) | undefined;
  /** When aborted, the child is asked to stop, and killed if it does not. */
  readonly signal: AbortSignal;
}

/** How long a child may take to undo its work after it was asked to stop. */
const STOP_MILLISECONDS = 1_000;

/** How long to wait for the rest of a child's stderr after the child has ended. */
/** A result is some kilobytes long. */
const MOST_OUTPUT_BYTES = 16 * 1024 * 1024;
const MOST_LOG_CHARACTERS = 1024 * 1024;
const STDERR_MILLISECONDS = 50;

/** A file that is still being written cannot be executed (ETXTBSY): as in other runtimes, it is tried again. */
const BUSY_TRIES = 6;
const BUSY_MILLISECONDS = 1_000;

/** Runs the delegate's ADD and reads its result; one without a version is read as `version`. */
export async function delegateAdd(request: DelegateRequest, version: CniVersion): Promise<CniResult> {
  const output = await runDelegate(request);
  try {
    const result: unknown = parseJson(output);
    return decodeResult(result, version, `the result of plugin ${quoted(request.type)}`);
  } catch (cause) {
    const details = cause instanceof Error ? cause.message : String(cause);
    throw failed(request, "its output is not a CNI result", { details, cause });
  }
}

/** Runs any command; returns what the delegate printed. */
export async function runDelegate(request: DelegateRequest): Promise<string> {
  const program = findPlugin(request.type, request.environment);
  const { exitCode, stdout } = await execute(program.path, request);
  if (exitCode === 0) return stdout;
  throw reportedError(request, exitCode, stdout);
}

export interface FoundPlugin {
  readonly path: string;
  /** Device and inode, as text for comparison. */
  readonly place: string;
}

/** The first regular file of that name in the directories of CNI_PATH. */
export function findPlugin(type: string, environment: Environment): FoundPlugin {
  if (type === "" || type.includes("/")) {
    throw new PluginError("config-invalid", `Cannot run plugin ${quoted(type)}: a type must be a plain file name`);
  }
  const directories = pluginDirectories(environment);
  for (const directory of directories) {
    const path = `${directory}/${type}`;
    const status = statusAt(path);
    if (status?.isRegular) return { path, place: status.place };
  }
  const state =
    directories.length === 0 ? "CNI_PATH contains no directory" : `it was not found in ${directories.join(", ")}`;
  throw new PluginError("delegate-failed", `Cannot run plugin ${quoted(type)}: ${state}`);
}

interface Executed {
  readonly exitCode: number;
  readonly stdout: string;
}

async function execute(program: string, request: DelegateRequest): Promise<Executed> {
  const child = await start(program, request);
  const limit = Promise.withResolvers<never>();
  const kill = (state: string) => {
    killGroup(child);
    limit.reject(failed(request, state));
  };
  let timer = setTimeout(kill, request.limitMilliseconds, `it did not finish within ${request.limitMilliseconds} ms`);
  const stop = () => {
    child.kill("SIGTERM");
    clearTimeout(timer);
    timer = setTimeout(kill, STOP_MILLISECONDS, "it did not stop when asked to");
  };
  request.signal.addEventListener("abort", stop, { once: true });
  if (request.signal.aborted) stop();
  try {
    // A grandchild may keep stdout open after the child has ended: the limit applies to both.
    const logged = passOnStderr(child, request);
    const both = Promise.all([child.exited, readLimited(child.stdout, kill)]);
    const [exitCode, stdout] = await Promise.race([both, limit.promise]);
    // Does not wait for a grandchild that has only stderr open: what the child itself wrote has arrived by now.
    await Promise.race([logged, Bun.sleep(STDERR_MILLISECONDS)]);
    return { exitCode, stdout };
  } finally {
    clearTimeout(timer);
    request.signal.removeEventListener("abort", stop);
  }
}

/** Reads to the end. A delegate that prints more than a result can have is stopped. */
async function readLimited(stdout: ReadableStream<Uint8Array>, stop: (state: string) => void): Promise<string> {
  const pieces: Uint8Array[] = [];
  let count = 0;
  for await (const piece of stdout) {
    count += piece.length;
    if (count > MOST_OUTPUT_BYTES) {
      stop(`it printed more than ${MOST_OUTPUT_BYTES} bytes to stdout`);
      return "";
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

async function passOnStderr({ stderr }: Bun.Subprocess, request: DelegateRequest): Promise<void> {
  if (!(stderr instanceof ReadableStream)) return;
  let left = MOST_LOG_CHARACTERS;
  for await (const text of stderr.pipeThrough(new TextDecoderStream())) {
    // What is beyond the limit is read and dropped: a full pipe would stop the delegate.
    if (left > 0) request.stderr?.(text.slice(0, left));
    left -= text.length;
  }
}

/** The child leads a process group, so that every process it started is killed too. */
function killGroup(child: Bun.Subprocess): void {
  try {
    // biome-ignore lint/style/noRestrictedGlobals: the child's own `kill` reaches only the child
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The whole group has ended already.
  }
}

async function start(program: string, request: DelegateRequest) {
  for (let tries = 1; ; tries += 1) {
    try {
      return spawn(program, request);
    } catch (cause) {
      const isBusy = cause instanceof Error && "code" in cause && cause.code === "ETXTBSY";
      if (!isBusy || tries === BUSY_TRIES || request.signal.aborted) {
        const details = cause instanceof Error ? cause.message : String(cause);
        throw failed(request, `${quoted(program)} cannot be executed`, { details, cause });
      }
      await Bun.sleep(BUSY_MILLISECONDS);
    }
  }
}

function spawn(program: string, request: DelegateRequest) {
  return Bun.spawn([program], {
    env: delegateEnvironment(request),
    stdin: request.stdin,
    stdout: "pipe",
    stderr: request.stderr === undefined ? "inherit" : "pipe",
    detached: true,
  });
}

function delegateEnvironment(request: DelegateRequest): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.environment)) {
    if (value !== undefined && !name.startsWith("BUN_")) kept[name] = value;
  }
  return { ...kept, CNI_COMMAND: request.command };
}

function reportedError(request: DelegateRequest, exitCode: number, stdout: string): Error {
  const state = `it ended with exit code ${exitCode}`;
  const error = parsed(stdout);
  if (!isJsonObject(error))
    return failed(request, `${state} and did not print a CNI error`, { details: quoted(stdout) });

  const { code, msg, details } = error;
  if (typeof code !== "number" || !Number.isSafeInteger(code) || code < 1 || typeof msg !== "string") {
    return failed(request, `${state} and did not print a CNI error`, { details: quoted(stdout) });
  }
  return new ForeignError(code, msg, typeof details === "string" ? details : "");
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function failed(
  request: DelegateRequest,
  state: string,
  more: { readonly details?: string; readonly cause?: unknown } = {},
): PluginError {
  return new PluginError(
    "delegate-failed",
    `Cannot run ${request.command} of plugin ${quoted(request.type)}: ${state}`,
    more,
  );
}
