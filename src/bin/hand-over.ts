/**
 * Hands a call over to the node agent of this host, where one runs.
 *
 * Loaded, compiled and connected, the agent does in a few milliseconds what a
 * fresh process needs some twenty for (docs/node-agent.md). This side loads as
 * little as can be: it carries bytes, which the kernel reads and writes where
 * they lie, and begins with nothing else that the language offers. Whatever is
 * not as it should be, the call is done in this process, as if there were no
 * agent.
 */
import { framePlaces, NUMBERS_BYTES } from "../agent/frame.ts";
import { greetingOf, isGreeting } from "../agent/greeting.ts";
import { callHead, encodeCall, putHead, roomForHead } from "../agent/handed-call.ts";
import { enlarged } from "../bytes.ts";
import type { Environment } from "../cni/environment.ts";
import { identity } from "../identity.ts";
import { putLinkTarget } from "../linux/link-target.ts";
import { isReadyWithin, POLL_IN } from "../linux/poll.ts";
import { holdStopSignals, letStopSignalsThrough } from "../linux/signals.ts";
import { type ReadSoFar, readReadyStdin } from "../linux/standard-streams.ts";
import { closeStream, connectUnix, endSending, receiveSome, sendAll } from "../linux/unix-stream.ts";
import { VERSION } from "../version.ts";
import { callSocketPath } from "./agent-socket.ts";
import { GRACE_MILLISECONDS, STOP_SIGNALS, type WrittenAnswer, written } from "./end.ts";
import type { PluginPart } from "./programs.ts";

/** An agent that neither greets nor takes the call within this time is frozen. */
const PATIENCE_MILLISECONDS = 1_000;
/** A runtime has written the config by now; a person at a terminal has not. */
const STDIN_MILLISECONDS = 100;
/** How long an answer is awaited before somebody looks for signals. */
const SLICE_MILLISECONDS = 50;
/** An answer, with room to spare. */
const FIRST_BYTES = 8 * 1024;

export interface Handed {
  /** `undefined`: the call is still to be done. */
  readonly answer?: WrittenAnswer;
  /** What was read of stdin meanwhile. */
  readonly stdin?: ReadSoFar;
}

/** No promise where it need not be: to begin with them takes a process a tenth of a millisecond. */
export function handOver(program: PluginPart): Handed | Promise<Handed> {
  const environment: Environment = process.env;
  if (isDoneHere(environment)) return {};
  const agent = connectUnix(callSocketPath(environment));
  if (agent === undefined) return {};
  holdStopSignals();

  // All of this is done while the greeting is on its way.
  const greeting = greetingOf(VERSION, putLinkTarget);
  const head = callHead(program, environment);
  const stdin = readReadyStdin(STDIN_MILLISECONDS, roomForHead(head));
  if (!isGiven(stdin) || !isGreeted(agent, greeting) || !isTaken(agent, head, stdin, { program, environment })) {
    return doHere(agent, stdin);
  }
  const reception: Reception = { agent, bytes: new Uint8Array(FIRST_BYTES), count: 0 };
  const received = receive(reception);
  return typeof received === "object" ? { answer: received } : waitOn(reception, received, stdin);
}

function doHere(agent: number, stdin: ReadSoFar): Handed {
  closeStream(agent);
  letStopSignalsThrough();
  return { stdin };
}

/** Phases are told of this process; and paths that do not begin with a slash lead elsewhere from the agent's folder. */
function isDoneHere(environment: Environment): boolean {
  const { CNI_NETNS = "", CNI_PATH = "" } = environment;
  return environment[`${identity.environmentPrefix}TRACE`] === "1" || isRelative(CNI_NETNS) || isRelative(CNI_PATH);
}

/** One of several folders is enough. */
function isRelative(paths: string): boolean {
  let isBegin = true;
  for (let index = 0; index < paths.length; index++) {
    const letter = paths[index];
    if (isBegin && letter !== "/" && letter !== ":") return true;
    isBegin = letter === ":";
  }
  return false;
}

/** An empty config may be a closed stdin, of which the plugin itself tells. */
function isGiven({ isAll, from, to }: ReadSoFar): boolean {
  return isAll && to > from;
}

function isGreeted(agent: number, greeting: Uint8Array): boolean {
  const bytes = new Uint8Array(greeting.length + 1);
  return (
    isReadyWithin(agent, POLL_IN, PATIENCE_MILLISECONDS) && isGreeting(bytes, receiveSome(agent, bytes, 0), greeting)
  );
}

interface Call {
  readonly program: PluginPart;
  readonly environment: Environment;
}

function isTaken(agent: number, head: string, { bytes, from, to }: ReadSoFar, call: Call): boolean {
  if (putHead(bytes, head, to - from)) return sendAll(agent, bytes, to, PATIENCE_MILLISECONDS);
  const encoded = encodeCall({ ...call, stdin: bytes.subarray(from, to) });
  return sendAll(agent, encoded, encoded.length, PATIENCE_MILLISECONDS);
}

interface Reception {
  readonly agent: number;
  /** What has come of the answer. */
  bytes: Uint8Array;
  count: number;
}

/** The answer; or that the agent has gone without one; or that some time has passed, or a signal has come. */
function receive(reception: Reception): WrittenAnswer | "gone" | "not yet" {
  while (isReadyWithin(reception.agent, POLL_IN, SLICE_MILLISECONDS)) {
    const count = receiveSome(reception.agent, reception.bytes, reception.count);
    if (count === 0) return "gone";
    reception.count += count;
    const places = framePlaces(reception.bytes, reception.count);
    if (places === undefined) continue;
    const { number: exitCode, bodyAt: stdoutAt, end } = places;
    if (reception.count >= end) return { exitCode, bytes: reception.bytes, stderrAt: NUMBERS_BYTES, stdoutAt, end };
    if (end > reception.bytes.length) reception.bytes = enlarged(reception.bytes, end);
  }
  return "not yet";
}

/** Where the agent has gone without an answer, the call can be given again. */
async function waitOn(reception: Reception, first: "gone" | "not yet", stdin: ReadSoFar): Promise<Handed> {
  const stopping = listenForStop();
  letStopSignalsThrough();
  let received: ReturnType<typeof receive> = first;
  let endsAt: number | undefined;
  while (received === "not yet") {
    // Here the handlers of signals run.
    await Bun.sleep(0);
    if (stopping.by() !== undefined) {
      if (endsAt === undefined) endSending(reception.agent);
      endsAt ??= performance.now() + GRACE_MILLISECONDS;
      if (performance.now() > endsAt) return { answer: await interrupted(stopping) };
    }
    received = receive(reception);
  }
  if (received !== "gone") return { answer: received };
  return stopping.by() === undefined ? doHere(reception.agent, stdin) : { answer: await interrupted(stopping) };
}

interface Stopping {
  /** The signal that came, if one did. */
  by(): string | undefined;
}

function listenForStop(): Stopping {
  let came: string | undefined;
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      came ??= name;
    });
  }
  return { by: () => came };
}

async function interrupted(stopping: Stopping): Promise<WrittenAnswer> {
  const { interruptedAnswer } = await import("./interrupted.ts");
  return written(interruptedAnswer(stopping.by() ?? ""));
}
