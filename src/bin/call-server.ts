/**
 * The node agent's call server, composed. It serves the calls that plugins hand
 * over: a process that stays has its code loaded and compiled and its
 * connections open. It does nothing else, so that no call waits for other work.
 */
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { type Served, serveCalls } from "../agent/call-server.ts";
import { greetingOf } from "../agent/greeting.ts";
import type { HandedCall } from "../agent/handed-call.ts";
import { type Answer, errorAnswer } from "../cni/answer.ts";
import type { EnterPhase } from "../cni/phase.ts";
import { serve } from "../cni/serve.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { PluginError } from "../errors.ts";
import { lockFile } from "../linux/flock.ts";
import { putLinkTarget } from "../linux/link-target.ts";
import { type HomeNetns, keepHome } from "../linux/netns.ts";
import { fitsUnixAddress } from "../linux/unix-stream.ts";
import { VERSION } from "../version.ts";
import { agentHost } from "./agent-host.ts";
import { agentDirectory, callSocketPath } from "./agent-socket.ts";
import { EXIT_REFUSED } from "./call-server-process.ts";
import { COMPOSERS, isPluginPart } from "./composers.ts";
import { STOP_SIGNALS } from "./end.ts";
import { faceOf } from "./faces.ts";
import type { Host } from "./host.ts";
import { say, sayRefused } from "./node-log.ts";
import { startPhaseClock } from "./phases.ts";
import { forgetProxies } from "./proxies.ts";

declare const FAULTS: boolean | undefined;

/** How long an agent before this one may take to end, once it was told to or killed. */
const TAKE_OVER_MILLISECONDS = 1_000;

/** Returns the exit code of a call server that was told to stop, or that cannot serve. */
export async function serveUntilStopped(): Promise<number> {
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  const environment = forgetProxies();
  const path = callSocketPath(environment);
  if (!fitsUnixAddress(path)) return refuse(`"${path}" is too long for a socket: choose a shorter run directory`);

  const directory = agentDirectory(environment);
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o700);
  if (!(await isOnlyServer(directory))) return refuse(`another one serves this host ("${directory}")`);
  rmSync(path, { force: true });

  const stopped = stopSignal();
  const home = keepHome();
  const server = serveCalls({
    path,
    greeting: greetingOf(VERSION, putLinkTarget),
    answer: answerFrom(home, agentHost()),
  });
  say(`serves the plugins' calls at ${path}`);
  say(`ends on ${await stopped}, after the calls under way`);
  await server.stop();
  rmSync(path, { force: true });
  // Who stood in line has left a timer behind, for which nobody waits any more.
  process.exit(0);
}

function refuse(reason: string): number {
  sayRefused(reason);
  return EXIT_REFUSED;
}

/** The kernel gives the lock back when its holder ends, however that happens. */
async function isOnlyServer(directory: string): Promise<boolean> {
  try {
    await lockFile(`${directory}/lock`, { limitMilliseconds: TAKE_OVER_MILLISECONDS });
    return true;
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind === "try-again-later") return false;
    throw failure;
  }
}

function stopSignal(): Promise<string> {
  const stopped = Promise.withResolvers<string>();
  for (const name of STOP_SIGNALS) process.on(name, () => stopped.resolve(name));
  return stopped.promise;
}

function answerFrom(home: HomeNetns, host: Host): (call: HandedCall, signal: AbortSignal) => Promise<Served> {
  return async (call, signal) => {
    const clock = startPhaseClock();
    const answer = await answerCall(call, { home, host, signal, enterPhase: clock.enter });
    // Lost in a container's namespace, every later call would wire the wrong host. Whoever waits does its call itself.
    if (!home.isHere()) process.exit(1);
    const spent = clock.spent();
    return { answer, afterwards: () => sayServed(call, answer, spent) };
  };
}

function sayServed(
  { program, environment }: HandedCall,
  { exitCode }: Answer,
  spent: ReadonlyMap<string, number>,
): void {
  const phases = [...spent].map(([phase, milliseconds]) => [phase, milliseconds.toFixed(1)] as const);
  say(`${program} ${environment["CNI_COMMAND"]}: exit code ${exitCode}`, {
    container: environment["CNI_CONTAINERID"] ?? "",
    ...Object.fromEntries(phases),
  });
}

interface Serving {
  readonly home: HomeNetns;
  readonly host: Host;
  readonly signal: AbortSignal;
  readonly enterPhase: EnterPhase;
}

async function answerCall(
  { program, environment, stdin }: HandedCall,
  { home, host, signal, enterPhase }: Serving,
): Promise<Answer> {
  if (!isPluginPart(program)) {
    return errorAnswer(new PluginError("internal", `Cannot serve "${program}": no such plugin`), NEWEST_VERSION);
  }
  // What is done for a caller that has gone before would stay: the DEL that follows it may have been done already.
  await Bun.sleep(0);
  if (signal.aborted) return errorAnswer(signal.reason, NEWEST_VERSION);
  let logged = "";
  const stderr = (text: string) => {
    logged += text;
  };
  const { compose } = await COMPOSERS[program]();
  // The agent's own stderr is not the caller's: what another plugin writes there arrives with the answer.
  const means = { environment, stderr, delegateStderr: stderr, host, enterPhase };
  const plugin = await compose(faceOf(program), means);
  const process = {
    env: environment,
    readStdin: async () => stdin,
    isOwnNetns: async (path: string) => home.isNamedBy(path),
    signal,
  };
  const answer = await serve(process, plugin);
  return { ...answer, stderr: logged + answer.stderr };
}
