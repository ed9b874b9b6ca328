/**
 * Hands a call over to the node agent of this host, if one runs.
 *
 * Loaded, compiled and connected, the agent does in a few milliseconds what
 * takes a fresh process about twenty (docs/node-agent.md). This side loads as
 * little as possible: it passes bytes on without copying them, and avoids
 * language features that take time on first use. If anything is unexpected, the
 * call is done in this process, as if there were no agent.
 */
import { frameLayout, MOST_FRAME_BYTES, NUMBERS_BYTES } from "../agent/calls/frame.ts";
import { greetingOf, isGreeting } from "../agent/calls/greeting.ts";
import { callHead, encodeCall, putHead, roomForHead } from "../agent/calls/handed-call.ts";
import { enlarged } from "../bytes.ts";
import type { Environment } from "../cni/environment.ts";
import { dependsOnProcess } from "../cni/process-path.ts";
import { callSocketPath } from "../config/run-directory.ts";
import { identity } from "../identity.ts";
import { putLinkTarget } from "../linux/link-target.ts";
import { isReadyWithin, POLL_IN } from "../linux/poll.ts";
import { blockStopSignals, unblockStopSignals } from "../linux/signals.ts";
import { type ReadSoFar, readReadyStdin } from "../linux/standard-streams.ts";
import { closeStream, connectUnix, endSending, isPeerOfSameUser, receiveSome, sendAll } from "../linux/unix-stream.ts";
import { VERSION } from "../version.ts";
import type { PluginPart } from "./programs.ts";
import { type EncodedReply, encodedReply, GRACE_MILLISECONDS, STOP_SIGNALS } from "./write-and-exit.ts";

/** An agent that does not greet, or does not accept the call, within this time is frozen. */
const AGENT_LIMIT_MILLISECONDS = 1_000;
/** By then a runtime has written the config; a person at a terminal has not. */
const STDIN_MILLISECONDS = 100;
/** How long to wait for a reply before checking for signals. */
const SIGNAL_CHECK_MILLISECONDS = 50;
/** Larger than usual replies. */
const FIRST_BYTES = 8 * 1024;

export interface Handed {
  /** `undefined`: the call must be done in this process. */
  readonly reply?: EncodedReply;
  /** What was already read from stdin. */
  readonly stdin?: ReadSoFar;
}

/** Returns a promise only if it must wait: the first promise of a process takes a tenth of a millisecond. */
export function handOver(program: PluginPart): Handed | Promise<Handed> {
  const environment: Environment = process.env;
  if (isDoneHere(environment)) return {};
  const agent = connectUnix(callSocketPath(environment));
  if (agent === undefined) return {};
  if (!isPeerOfSameUser(agent)) {
    closeStream(agent);
    return {};
  }
  blockStopSignals();

  // All of this is done while the agent sends its greeting.
  const greeting = greetingOf(VERSION, putLinkTarget);
  const head = callHead(program, environment);
  const stdin = readReadyStdin(STDIN_MILLISECONDS, roomForHead(head));
  if (!isComplete(stdin) || !isGreeted(agent, greeting) || !isSent(agent, head, stdin, { program, environment })) {
    return doHere(agent, stdin);
  }
  const reception: Reception = { agent, bytes: new Uint8Array(FIRST_BYTES), count: 0 };
  const received = receive(reception);
  return typeof received === "object" ? { reply: received } : keepWaiting(reception, received, stdin);
}

function doHere(agent: number, stdin: ReadSoFar): Handed {
  closeStream(agent);
  unblockStopSignals();
  return { stdin };
}

/** A trace is about this process, and the agent would resolve some paths to other files. */
function isDoneHere(environment: Environment): boolean {
  const { CNI_NETNS = "", CNI_PATH = "" } = environment;
  if (environment[`${identity.environmentPrefix}TRACE`] === "1" || dependsOnProcess(CNI_NETNS)) return true;
  for (const directory of CNI_PATH.split(":")) if (dependsOnProcess(directory)) return true;
  return false;
}

/** An empty config may mean that stdin is closed, which the plugin itself reports. */
function isComplete({ isAll, from, to }: ReadSoFar): boolean {
  return isAll && to > from;
}

function isGreeted(agent: number, greeting: Uint8Array): boolean {
  const bytes = new Uint8Array(greeting.length + 1);
  return (
    isReadyWithin(agent, POLL_IN, AGENT_LIMIT_MILLISECONDS) && isGreeting(bytes, receiveSome(agent, bytes, 0), greeting)
  );
}

interface Call {
  readonly program: PluginPart;
  readonly environment: Environment;
}

function isSent(agent: number, head: string, { bytes, from, to }: ReadSoFar, call: Call): boolean {
  if (putHead(bytes, head, to - from)) return sendAll(agent, bytes, to, AGENT_LIMIT_MILLISECONDS);
  const encoded = encodeCall({ ...call, stdin: bytes.subarray(from, to) });
  return sendAll(agent, encoded, encoded.length, AGENT_LIMIT_MILLISECONDS);
}

interface Reception {
  readonly agent: number;
  /** What has been received of the reply. */
  bytes: Uint8Array;
  count: number;
}

/** Returns the reply, or "gone" if the agent disconnected without one, or "not yet" after some time or a signal. */
function receive(reception: Reception): EncodedReply | "gone" | "not yet" {
  while (isReadyWithin(reception.agent, POLL_IN, SIGNAL_CHECK_MILLISECONDS)) {
    const count = receiveSome(reception.agent, reception.bytes, reception.count);
    if (count === 0) return "gone";
    reception.count += count;
    const layout = frameLayout(reception.bytes, reception.count);
    if (layout === undefined) continue;
    const { number: exitCode, bodyAt: stdoutAt, end } = layout;
    if (reception.count >= end) return { exitCode, bytes: reception.bytes, stderrAt: NUMBERS_BYTES, stdoutAt, end };
    if (end > MOST_FRAME_BYTES) return "gone";
    if (end > reception.bytes.length) reception.bytes = enlarged(reception.bytes, end);
  }
  return "not yet";
}

/** If the agent disconnects without a reply, the call can safely be repeated here. */
async function keepWaiting(reception: Reception, first: "gone" | "not yet", stdin: ReadSoFar): Promise<Handed> {
  const stopping = listenForStop();
  unblockStopSignals();
  let received: ReturnType<typeof receive> = first;
  let endsAt: number | undefined;
  while (received === "not yet") {
    // Lets signal handlers run.
    await Bun.sleep(0);
    if (stopping.by() !== undefined) {
      if (endsAt === undefined) endSending(reception.agent);
      endsAt ??= performance.now() + GRACE_MILLISECONDS;
      if (performance.now() > endsAt) return { reply: await interrupted(stopping) };
    }
    received = receive(reception);
  }
  if (received !== "gone") return { reply: received };
  return stopping.by() === undefined ? doHere(reception.agent, stdin) : { reply: await interrupted(stopping) };
}

interface Stopping {
  /** The signal that was received, if any. */
  by(): string | undefined;
}

function listenForStop(): Stopping {
  let first: string | undefined;
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      first ??= name;
    });
  }
  return { by: () => first };
}

async function interrupted(stopping: Stopping): Promise<EncodedReply> {
  const { interruptedReply } = await import("./interrupted.ts");
  return encodedReply(interruptedReply(stopping.by() ?? ""));
}
