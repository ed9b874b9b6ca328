/**
 * Runs another plugin, an IPAM or a chained one, and takes over its answer.
 *
 * It is searched in CNI_PATH and nowhere else. It gets the caller's environment
 * with CNI_COMMAND set anew and without BUN_*, which would turn an executable
 * of ours into a bare runtime. Its stderr is our caller's stderr; its error
 * keeps its own code.
 */
import { ForeignError, PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
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
  /** After this the child is killed, with all it started. */
  readonly limitMilliseconds: number;
  /** Gets what the child writes to stderr; without it, it is this process's own. */
  readonly stderr?: ((text: string) => void) | undefined;
  /** Aborted: the child is asked to stop, and killed when it does not. */
  readonly signal: AbortSignal;
}

/** How long a child may take to undo its work once it was asked to stop. */
const STOP_MILLISECONDS = 1_000;

/** How long what a child wrote to stderr may be on its way once the child has ended. */
const STDERR_MILLISECONDS = 50;

/** An executable that is just being installed cannot be executed: as runtimes do, it is tried again. */
const BUSY_TRIES = 6;
const BUSY_MILLISECONDS = 1_000;

/** Runs the delegate's ADD and reads its result; one without a version is read as `version`. */
export async function delegateAdd(request: DelegateRequest, version: CniVersion): Promise<CniResult> {
  const output = await runDelegate(request);
  try {
    const answer: unknown = JSON.parse(output);
    return decodeResult(answer, version, `the result of plugin "${request.type}"`);
  } catch (cause) {
    const details = cause instanceof Error ? cause.message : String(cause);
    throw failed(request, "its answer to ADD is not a CNI result", { details, cause });
  }
}

/** Runs any command; answers what the delegate printed. */
export async function runDelegate(request: DelegateRequest): Promise<string> {
  const program = findPlugin(request.type, request.environment);
  const { exitCode, stdout } = await execute(program.path, request);
  if (exitCode === 0) return stdout;
  throw reportedError(request, exitCode, stdout);
}

export interface FoundPlugin {
  readonly path: string;
  /** Device and inode, as text to compare. */
  readonly place: string;
}

/** The first regular file of that name in the directories of CNI_PATH. */
export function findPlugin(type: string, environment: Environment): FoundPlugin {
  if (type === "" || type.includes("/")) {
    throw new PluginError("config-invalid", `Cannot run plugin ${JSON.stringify(type)}: a type is a plain file name`);
  }
  const directories = pluginDirectories(environment);
  for (const directory of directories) {
    const path = `${directory}/${type}`;
    const status = statusAt(path);
    if (status?.isRegular) return { path, place: status.place };
  }
  const state = directories.length === 0 ? "CNI_PATH names no directory" : `it is not in ${directories.join(", ")}`;
  throw new PluginError("delegate-failed", `Cannot run plugin "${type}": ${state}`);
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
  let timer = setTimeout(kill, request.limitMilliseconds, `no answer within ${request.limitMilliseconds} ms`);
  const stop = () => {
    child.kill("SIGTERM");
    clearTimeout(timer);
    timer = setTimeout(kill, STOP_MILLISECONDS, "it was asked to stop and did not");
  };
  request.signal.addEventListener("abort", stop, { once: true });
  if (request.signal.aborted) stop();
  try {
    // A grandchild may hold stdout open after the child has gone: the limit bounds both.
    const logged = passOnStderr(child, request);
    const both = Promise.all([child.exited, new Response(child.stdout).text()]);
    const [exitCode, stdout] = await Promise.race([both, limit.promise]);
    // A grandchild that has only stderr open is not waited for: what the child itself wrote is there by now.
    await Promise.race([logged, Bun.sleep(STDERR_MILLISECONDS)]);
    return { exitCode, stdout };
  } finally {
    clearTimeout(timer);
    request.signal.removeEventListener("abort", stop);
  }
}

async function passOnStderr({ stderr }: Bun.Subprocess, request: DelegateRequest): Promise<void> {
  if (!(stderr instanceof ReadableStream)) return;
  for await (const text of stderr.pipeThrough(new TextDecoderStream())) request.stderr?.(text);
}

/** The child leads a process group: whatever it started itself goes with it. */
function killGroup(child: Bun.Subprocess): void {
  try {
    // biome-ignore lint/style/noRestrictedGlobals: the child's own `kill` reaches the child alone
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The whole group has gone already.
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
        throw failed(request, `"${program}" cannot be executed`, { details, cause });
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
  const answer = parsed(stdout);
  if (!isJsonObject(answer))
    return failed(request, `${state} and without a CNI error`, { details: stdout.slice(0, 500) });

  const { code, msg, details } = answer;
  if (typeof code !== "number" || !Number.isSafeInteger(code) || code < 1 || typeof msg !== "string") {
    return failed(request, `${state} and without a CNI error`, { details: stdout.slice(0, 500) });
  }
  return new ForeignError(code, msg, typeof details === "string" ? details : "");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
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
    `Cannot run ${request.command} of plugin "${request.type}": ${state}`,
    more,
  );
}
