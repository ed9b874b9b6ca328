/**
 * Makes a process the only node agent of its host: it holds the lock next to the socket until it ends, and the kernel
 * releases the lock however it ends.
 *
 * A killed process may hold its lock for a while: the kernel gives it processor time to end, which an overloaded
 * machine does not have. So an agent that finds the lock taken refuses to start only if the holder still serves calls.
 */
import { chmodSync, mkdirSync, readFileSync, statSync } from "node:fs";
import type { Environment } from "../cni/environment.ts";
import { reasonOf } from "../config/config-files.ts";
import { agentDirectory, agentLockPath, callSocketPath, runDirectoryOf } from "../config/run-directory.ts";
import { PluginError } from "../errors.ts";
import { lockFile } from "../linux/flock.ts";
import { isReadyWithin, POLL_IN } from "../linux/poll.ts";
import { closeStream, connectUnix, fitsUnixAddress, receiveSome } from "../linux/unix-stream.ts";
import { quoted } from "../quote.ts";
import type { AgentProcess } from "./agent-process.ts";

export interface TakeOverLimits {
  /** How long an agent that still serves calls may take to stop. */
  readonly stopMilliseconds: number;
  /** How long an agent that no longer serves calls may take to end. */
  readonly endMilliseconds: number;
}

const LIMITS: TakeOverLimits = { stopMilliseconds: 1_000, endMilliseconds: 30_000 };
const GREETING_MILLISECONDS = 500;

/** Returns why it cannot be the only agent. Rejects with the reason of the signal if that is aborted while it waits. */
export async function becomeOnlyAgent(
  { environment, isRoot }: Pick<AgentProcess, "environment" | "isRoot">,
  signal: AbortSignal,
  { stopMilliseconds, endMilliseconds }: TakeOverLimits = LIMITS,
): Promise<string | undefined> {
  const path = callSocketPath(environment);
  if (!fitsUnixAddress(path)) return `${quoted(path)} is too long for a socket: choose a shorter run directory`;
  const directory = agentDirectory(environment);
  try {
    makeAgentDirectory(environment);
    const lock = agentLockPath(environment);
    const deadline = performance.now() + endMilliseconds;
    while (performance.now() < deadline) {
      if (await isLocked(lock, { limitMilliseconds: stopMilliseconds, signal })) return undefined;
      if (isServing(path)) return `another agent serves this host (${quoted(directory)})`;
    }
    return (
      `${holderOf(lock)} holds the lock ${quoted(lock)} but serves no calls, ` +
      `and has not ended within ${endMilliseconds / 1000} s: kill it`
    );
  } catch (failure) {
    if (signal.aborted) throw failure;
    const remedy = isRoot ? "" : " (run it as root)";
    return `the directory ${quoted(directory)} cannot be used: ${reasonOf(failure)}${remedy}`;
  }
}

/** Neither the agent's directory nor that of its parent may be writable for other users, whatever the umask is. */
function makeAgentDirectory(environment: Environment): void {
  const directory = agentDirectory(environment);
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  chmodSync(directory, 0o700);
  const parent = runDirectoryOf(environment);
  const { mode } = statSync(parent);
  if ((mode & 0o022) !== 0) chmodSync(parent, mode & 0o7755);
}

/** Whether the lock could be taken in time. It is never given back. */
async function isLocked(path: string, wait: Parameters<typeof lockFile>[1]): Promise<boolean> {
  try {
    await lockFile(path, wait);
    return true;
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind === "try-again-later") return false;
    throw failure;
  }
}

/** A process that is about to end accepts connections until it has ended, but does not greet. */
function isServing(path: string): boolean {
  const stream = connectUnix(path);
  if (stream === undefined) return false;
  const isGreeted =
    isReadyWithin(stream, POLL_IN, GREETING_MILLISECONDS) && receiveSome(stream, new Uint8Array(1), 0) > 0;
  closeStream(stream);
  return isGreeted;
}

/** A line of /proc/locks: `6: FLOCK  ADVISORY  WRITE 20 00:30:25 0 EOF`, with the inode of the file. */
function holderOf(lock: string): string {
  const { ino } = statSync(lock);
  const held = new RegExp(`^\\d+: FLOCK +ADVISORY +WRITE (\\d+) [0-9a-f]+:[0-9a-f]+:${ino} `, "m");
  const pid = held.exec(readFileSync("/proc/locks", "utf8"))?.[1];
  return pid === undefined ? "another process" : `process ${pid}`;
}
