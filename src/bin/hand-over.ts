/**
 * Hands a call over to the node agent of this host, where one runs.
 *
 * Loaded, compiled and connected, the agent does in a few milliseconds what a
 * fresh process needs some twenty for (docs/node-agent.md). This side loads as
 * little as can be: it carries bytes. Whatever is not as it should be, the call
 * is done in this process, as if there were no agent.
 */

import { decodeFrame, encodeFrame, type Frame, joined } from "../agent/frame.ts";
import { greetingOf } from "../agent/greeting.ts";
import type { Environment } from "../cni/environment.ts";
import { identity } from "../identity.ts";
import { linkTarget, textOf } from "../linux/link-target.ts";
import { type ReadSoFar, readReadyStdin } from "../linux/standard-streams.ts";
import { closeStream, connectUnix, endSending, isReadableWithin, receiveSome, sendAll } from "../linux/unix-stream.ts";
import { VERSION } from "../version.ts";
import { callSocketPath } from "./agent-socket.ts";
import { STOP_SIGNALS, type WrittenAnswer } from "./end.ts";
import type { PluginPart } from "./programs.ts";

/** An agent that neither greets nor takes the call within this time is frozen. */
const PATIENCE_MILLISECONDS = 1_000;
/** A runtime has written the config by now; a person at a terminal has not. */
const STDIN_MILLISECONDS = 100;
/** A signal ends a wait early, save one that comes just before it. */
const SLICE_MILLISECONDS = 100;
/** How long the agent may undo its work after a signal. */
const GRACE_MILLISECONDS = 2_000;

export interface Handed {
  /** `undefined`: the call is still to be done. */
  readonly answer?: WrittenAnswer;
  /** What was read of stdin meanwhile. */
  readonly stdin?: ReadSoFar;
}

export async function handOver(program: PluginPart): Promise<Handed> {
  // Phases are told of this process; there are none where the agent does the work.
  if (process.env[`${identity.environmentPrefix}TRACE`] === "1") return {};
  if (needsOwnFolder(process.env)) return {};
  const agent = connectUnix(callSocketPath(process.env));
  if (agent === undefined) return {};
  try {
    // All of this is done while the greeting is on its way.
    const greeting = greetingOf(VERSION, linkTarget);
    const stdin = readReadyStdin(STDIN_MILLISECONDS);
    const call = encodeFrame({ header: { program, environment: process.env }, body: stdin.bytes });
    // An empty config may be a closed stdin, of which the plugin itself tells.
    if (!stdin.isAll || stdin.bytes.length === 0 || receiveGreeting(agent) !== greeting) return { stdin };

    const stopping = listenForStop();
    if (!sendAll(agent, call, PATIENCE_MILLISECONDS)) return { stdin };
    const answer = await receiveAnswer(agent, stopping);
    return answer === undefined ? { stdin } : { answer };
  } finally {
    closeStream(agent);
  }
}

/** Paths that do not begin with a slash lead elsewhere from the agent's folder. */
function needsOwnFolder({ CNI_NETNS = "", CNI_PATH = "" }: Environment): boolean {
  return [CNI_NETNS, ...CNI_PATH.split(":")].some((path) => path !== "" && !path.startsWith("/"));
}

function receiveGreeting(agent: number): string {
  if (!isReadableWithin(agent, PATIENCE_MILLISECONDS)) return "";
  return textOf(receiveSome(agent));
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

/** `undefined` where the agent has gone without an answer: the call can be given again. */
async function receiveAnswer(agent: number, stopping: Stopping): Promise<WrittenAnswer | undefined> {
  let received: Uint8Array = new Uint8Array(0);
  let endsAt: number | undefined;
  for (;;) {
    if (isReadableWithin(agent, SLICE_MILLISECONDS)) {
      const more = receiveSome(agent);
      if (more.length === 0) return stopping.by() === undefined ? undefined : interrupted(stopping);
      received = joined(received, more);
      const frame = decodeFrame(received);
      if (frame !== undefined) return answerOf(frame);
      continue;
    }
    // Here the handlers of signals run.
    await Bun.sleep(0);
    if (stopping.by() === undefined) continue;
    if (endsAt === undefined) endSending(agent);
    endsAt ??= performance.now() + GRACE_MILLISECONDS;
    if (performance.now() > endsAt) return interrupted(stopping);
  }
}

function answerOf({ header: { exitCode, stderr }, body }: Frame): WrittenAnswer {
  return { exitCode: Number(exitCode), stdout: body, stderr: String(stderr) };
}

async function interrupted(stopping: Stopping): Promise<WrittenAnswer> {
  const { interruptedAnswer } = await import("./interrupted.ts");
  const answer = interruptedAnswer(stopping.by() ?? "");
  return { ...answer, stdout: new TextEncoder().encode(answer.stdout) };
}
