/**
 * The node agent's call server with its real dependencies. It serves the calls
 * that plugins hand over, with its code loaded and compiled and its connections
 * open. It does nothing else, so that no call waits for other work.
 */
import { readFileSync, rmSync } from "node:fs";
import { type Served, serveCalls } from "../agent/calls/call-server.ts";
import { greetingOf } from "../agent/calls/greeting.ts";
import type { HandedCall } from "../agent/calls/handed-call.ts";
import type { EnterPhase } from "../cni/phase.ts";
import { errorReply, type Reply } from "../cni/reply.ts";
import { serve } from "../cni/serve.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { putLinkTarget } from "../linux/link-target.ts";
import { type HomeNetns, keepHome } from "../linux/netns.ts";
import { VERSION } from "../version.ts";
import { agentHost } from "./agent-host.ts";
import { callSocketPath } from "./agent-socket.ts";
import { isResolvedAlike } from "./handed-paths.ts";
import type { Host } from "./host.ts";
import { say } from "./node-log.ts";
import { startPhaseClock } from "./phases.ts";
import { descriptionOf } from "./plugin-descriptions.ts";
import { isPluginPart, PLUGIN_LOADERS } from "./plugin-loaders.ts";
import { programNames } from "./programs.ts";
import { countServedCalls } from "./served-calls-file.ts";
import { removeUntrustedVariables } from "./trusted-environment.ts";
import { STOP_SIGNALS } from "./write-and-exit.ts";

declare const FAULTS: boolean | undefined;

const MOST_CONNECTIONS = 512;

/** Returns the exit code of a call server that was told to stop. Its agent, or it, is the only one of this host. */
export async function serveUntilStopped(): Promise<number> {
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  const environment = removeUntrustedVariables();
  const path = callSocketPath(environment);
  rmSync(path, { force: true });
  const stopped = stopSignal();
  const home = keepHome();
  const server = serveCalls({
    path,
    greeting: greetingOf(VERSION, putLinkTarget),
    mostConnections: mostConnections(),
    accepts: ({ environment: ofCaller }) => isResolvedAlike(ofCaller),
    serve: replyFrom(
      home,
      agentHost((problem) => say(problem, {}, "WARNING")),
      countServedCalls(environment),
    ),
  });
  say(`serves the plugins' calls at ${path}`);
  say(`stopping on ${await stopped}, after the calls in progress`);
  await server.stop();
  rmSync(path, { force: true });
  // Calls that waited for their turn may have left timers, which need not run out.
  process.exit(0);
}

/** A quarter of the descriptors that this process may have: calls need some, too. */
function mostConnections(): number {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 1024);
  return Math.min(MOST_CONNECTIONS, Math.floor(limit / 4));
}

function stopSignal(): Promise<string> {
  const stopped = Promise.withResolvers<string>();
  for (const name of STOP_SIGNALS) process.on(name, () => stopped.resolve(name));
  return stopped.promise;
}

function replyFrom(
  home: HomeNetns,
  host: Host,
  countCall: ReturnType<typeof countServedCalls>,
): (call: HandedCall, signal: AbortSignal) => Promise<Served> {
  return async (call, signal) => {
    const startedAt = performance.now();
    const clock = startPhaseClock();
    const reply = await serveCall(call, { home, host, signal, enterPhase: clock.enter });
    // In a container's namespace every later call would wire the wrong host. Waiting callers do their calls themselves.
    if (!home.isHere()) process.exit(1);
    const spent = clock.spent();
    const milliseconds = performance.now() - startedAt;
    const afterwards = () => {
      sayServed(call, reply, spent);
      const { program, environment } = call;
      const plugin = isPluginPart(program) ? programNames(identity)[program] : program;
      countCall({ plugin, command: environment["CNI_COMMAND"] ?? "", exitCode: reply.exitCode, milliseconds });
    };
    return { reply, afterwards };
  };
}

function sayServed(
  { program, environment }: HandedCall,
  { exitCode, stdout }: Reply,
  spent: ReadonlyMap<string, number>,
): void {
  const phases = [...spent].map(([phase, milliseconds]) => [phase, milliseconds.toFixed(1)] as const);
  const fields = { container: environment["CNI_CONTAINERID"] ?? "", ...Object.fromEntries(phases) };
  const message = `${program} ${environment["CNI_COMMAND"]}: exit code ${exitCode}`;
  if (exitCode === 0) say(message, fields);
  else say(message, { ...fields, ...failureIn(stdout) }, "ERROR");
}

/** Why a call failed, from the CNI error that it printed. */
function failureIn(stdout: string): Readonly<Record<string, string>> {
  const { code, msg, details } = JSON.parse(stdout);
  return { code: String(code), reason: String(msg), ...(details === undefined ? {} : { details: String(details) }) };
}

interface Serving {
  readonly home: HomeNetns;
  readonly host: Host;
  readonly signal: AbortSignal;
  readonly enterPhase: EnterPhase;
}

async function serveCall(
  { program, environment, stdin }: HandedCall,
  { home, host, signal, enterPhase }: Serving,
): Promise<Reply> {
  const startedAt = performance.now();
  if (!isPluginPart(program)) {
    return errorReply(new PluginError("internal", `Cannot serve "${program}": no such plugin`), NEWEST_VERSION);
  }
  // Lets a disconnect be noticed: if the caller is gone, its DEL may already have run elsewhere, and this call's work would stay.
  await Bun.sleep(0);
  if (signal.aborted) return errorReply(signal.reason, NEWEST_VERSION);
  let logged = "";
  const stderr = (text: string) => {
    logged += text;
  };
  const { createPlugin } = await PLUGIN_LOADERS[program]();
  // The agent's own stderr is not the caller's: what another plugin writes to stderr is sent with the reply.
  const milliseconds = () => performance.now() - startedAt;
  const context = { environment, stderr, delegateStderr: stderr, host, enterPhase, milliseconds };
  const plugin = await createPlugin(descriptionOf(program), context);
  const process = {
    env: environment,
    readStdin: async () => stdin,
    isOwnNetns: async (path: string) => home.isNamedBy(path),
    signal,
  };
  const reply = await serve(process, plugin);
  return { ...reply, stderr: logged + reply.stderr };
}
