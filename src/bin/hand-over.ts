/**
 * Hands a call over to the node agent of this host, where one runs.
 *
 * Loaded, compiled and connected, the agent does in a few milliseconds what a
 * fresh process needs some twenty for (docs/node-agent.md). This side loads as
 * little as can be: it carries bytes. Whatever is not as it should be, the call
 * is done in this process, as if there were no agent.
 */
import { decodeFrame, type Frame, joined } from "../agent/frame.ts";
import { greetingOf, isSameGreeting } from "../agent/greeting.ts";
import { encodeCall } from "../agent/handed-call.ts";
import type { Environment } from "../cni/environment.ts";
import { identity } from "../identity.ts";
import { linkTarget } from "../linux/link-target.ts";
import { isReadyWithin, POLL_IN } from "../linux/poll.ts";
import { type ReadSoFar, readReadyStdin } from "../linux/standard-streams.ts";
import { closeStream, connectUnix, endSending, receiveSome, sendAll } from "../linux/unix-stream.ts";
import { VERSION } from "../version.ts";
import { callSocketPath } from "./agent-socket.ts";
import { GRACE_MILLISECONDS, STOP_SIGNALS, type WrittenAnswer } from "./end.ts";
import type { PluginPart } from "./programs.ts";

/** An agent that neither greets nor takes the call within this time is frozen. */
const PATIENCE_MILLISECONDS = 1_000;
/** A runtime has written the config by now; a person at a terminal has not. */
const STDIN_MILLISECONDS = 100;
/** A signal ends a wait early, save one that comes just before it. */
const SLICE_MILLISECONDS = 100;

export interface Handed {
  /** `undefined`: the call is still to be done. */
  readonly answer?: WrittenAnswer;
  /** What was read of stdin meanwhile. */
  readonly stdin?: ReadSoFar;
}

/** No promise where it need not be: to begin with them takes a process a tenth of a millisecond. */
export function handOver(program: PluginPart): Handed | Promise<Handed> {
  // Phases are told of this process; there are none where the agent does the work.
  if (process.env[`${identity.environmentPrefix}TRACE`] === "1" || needsOwnFolder(process.env)) return {};
  const agent = connectUnix(callSocketPath(process.env));
  if (agent === undefined) return {};

  // All of this is done while the greeting is on its way.
  const greeting = greetingOf(VERSION, linkTarget);
  const stdin = readReadyStdin(STDIN_MILLISECONDS);
  const call = encodeCall({ program, environment: process.env, stdin: stdin.bytes });
  const stopping = listenForStop();
  // An empty config may be a closed stdin, of which the plugin itself tells.
  const isGiven = stdin.isAll && stdin.bytes.length > 0;
  if (!isGiven || !isGreetedBy(agent, greeting) || !sendAll(agent, call, PATIENCE_MILLISECONDS)) {
    closeStream(agent);
    return { stdin };
  }

  const reception: Reception = { agent, bytes: new Uint8Array(0) };
  const first = receive(reception);
  return typeof first === "string" ? waitOn(reception, first, stopping, stdin) : { answer: answerOf(first) };
}

/** Paths that do not begin with a slash lead elsewhere from the agent's folder. */
function needsOwnFolder({ CNI_NETNS = "", CNI_PATH = "" }: Environment): boolean {
  for (const path of `${CNI_NETNS}:${CNI_PATH}`.split(":")) if (path !== "" && !path.startsWith("/")) return true;
  return false;
}

function isGreetedBy(agent: number, greeting: Uint8Array): boolean {
  return isReadyWithin(agent, POLL_IN, PATIENCE_MILLISECONDS) && isSameGreeting(receiveSome(agent), greeting);
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

interface Reception {
  readonly agent: number;
  /** What has come of the answer. */
  bytes: Uint8Array;
}

/** The answer; or that the agent has gone without one; or that some time has passed, or a signal has come. */
function receive(reception: Reception): Frame | "gone" | "not yet" {
  while (isReadyWithin(reception.agent, POLL_IN, SLICE_MILLISECONDS)) {
    const more = receiveSome(reception.agent);
    if (more.length === 0) return "gone";
    reception.bytes = joined(reception.bytes, more);
    const frame = decodeFrame(reception.bytes);
    if (frame !== undefined) return frame;
  }
  return "not yet";
}

/** Where the agent has gone without an answer, the call can be given again. */
async function waitOn(
  reception: Reception,
  first: "gone" | "not yet",
  stopping: Stopping,
  stdin: ReadSoFar,
): Promise<Handed> {
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
  if (received !== "gone") return { answer: answerOf(received) };
  closeStream(reception.agent);
  return stopping.by() === undefined ? { stdin } : { answer: await interrupted(stopping) };
}

function answerOf({ number, head, body }: Frame): WrittenAnswer {
  return { exitCode: number, stdout: body, stderr: head.length === 0 ? "" : new TextDecoder().decode(head) };
}

async function interrupted(stopping: Stopping): Promise<WrittenAnswer> {
  const { interruptedAnswer } = await import("./interrupted.ts");
  const answer = interruptedAnswer(stopping.by() ?? "");
  return { ...answer, stdout: new TextEncoder().encode(answer.stdout) };
}
