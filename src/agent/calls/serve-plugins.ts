/**
 * The node agent's call server with its real dependencies. It serves the calls
 * that plugins hand over, with its code loaded and compiled and its connections
 * open. It does nothing else, so that no call waits for other work.
 */
import { rmSync } from "node:fs";
import { type EnterPhase, startPhaseClock } from "../../cni/phase.ts";
import { errorReply, type Reply } from "../../cni/reply.ts";
import { serve } from "../../cni/serve.ts";
import { NEWEST_VERSION } from "../../cni/version.ts";
import { callSocketPath } from "../../config/run-directory.ts";
import { PluginError } from "../../errors.ts";
import { withinDescriptors } from "../../limited-connections.ts";
import { putLinkTarget } from "../../linux/link-target.ts";
import { type HomeNetns, keepHome } from "../../linux/netns.ts";
import type { ServedPlugin } from "../../plugin/call-context.ts";
import type { Host } from "../../plugin/host.ts";
import { VERSION } from "../../version.ts";
import type { AgentProcess, Say } from "../agent-process.ts";
import { agentHost } from "./agent-host.ts";
import { type Served, serveCalls } from "./call-server.ts";
import { greetingOf } from "./greeting.ts";
import type { HandedCall } from "./handed-call.ts";
import { isResolvedAlike } from "./handed-paths.ts";
import { countServedCalls } from "./served-calls-file.ts";

const MOST_CONNECTIONS = 512;

export interface CallServerProcess extends Pick<AgentProcess, "environment" | "pid" | "say"> {
  /** By what a caller calls it; `undefined` if there is no such plugin. */
  readonly pluginFor: (program: string) => ServedPlugin | undefined;
  /** The name of the signal that ends the process. */
  readonly stopped: Promise<string>;
  /** Ends the process at once. */
  readonly exit: (code: number) => never;
}

/** Does not return. Its agent, or it, is the only one of this host. */
export async function serveUntilStopped(own: CallServerProcess): Promise<never> {
  const { environment, pid, say, stopped, exit } = own;
  const path = callSocketPath(environment);
  rmSync(path, { force: true });
  const home = keepHome();
  const server = serveCalls({
    path,
    greeting: greetingOf(VERSION, putLinkTarget),
    mostConnections: withinDescriptors(MOST_CONNECTIONS, 1 / 4),
    accepts: ({ environment: ofCaller }) => isResolvedAlike(ofCaller, pid),
    serve: replyFrom(own, {
      home,
      host: agentHost(environment, (problem) => say(problem, {}, "WARNING")),
      countCall: countServedCalls(environment),
    }),
  });
  say(`serves the plugins' calls at ${path}`);
  say(`stopping on ${await stopped}, after the calls in progress`);
  await server.stop();
  rmSync(path, { force: true });
  // Calls that waited for their turn may have left timers, which need not run out.
  return exit(0);
}

interface CallHost {
  readonly home: HomeNetns;
  readonly host: Host;
  readonly countCall: ReturnType<typeof countServedCalls>;
}

function replyFrom(
  { pluginFor, say, exit }: CallServerProcess,
  { home, host, countCall }: CallHost,
): (call: HandedCall, signal: AbortSignal) => Promise<Served> {
  return async (call, signal) => {
    const startedAt = performance.now();
    const clock = startPhaseClock();
    const plugin = pluginFor(call.program);
    const reply = await serveCall(call, { plugin, home, host, signal, enterPhase: clock.enter });
    // In a container's namespace every later call would wire the wrong host. Waiting callers do their calls themselves.
    if (!home.isHere()) exit(1);
    const spent = clock.spent();
    const milliseconds = performance.now() - startedAt;
    const afterwards = () => {
      sayServed(call, { reply, spent, say });
      const { program, environment } = call;
      countCall({
        plugin: plugin?.name ?? program,
        command: environment["CNI_COMMAND"] ?? "",
        exitCode: reply.exitCode,
        milliseconds,
      });
    };
    return { reply, afterwards };
  };
}

function sayServed(
  { program, environment }: HandedCall,
  {
    reply: { exitCode, stdout },
    spent,
    say,
  }: { readonly reply: Reply; readonly spent: ReadonlyMap<string, number>; readonly say: Say },
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
  readonly plugin: ServedPlugin | undefined;
  readonly home: HomeNetns;
  readonly host: Host;
  readonly signal: AbortSignal;
  readonly enterPhase: EnterPhase;
}

async function serveCall(
  { program, environment, stdin }: HandedCall,
  { plugin: called, home, host, signal, enterPhase }: Serving,
): Promise<Reply> {
  const startedAt = performance.now();
  if (called === undefined) {
    return errorReply(new PluginError("internal", `Cannot serve "${program}": no such plugin`), NEWEST_VERSION);
  }
  // Lets a disconnect be noticed: if the caller is gone, its DEL may already have run elsewhere, and this call's work would stay.
  await Bun.sleep(0);
  if (signal.aborted) return errorReply(signal.reason, NEWEST_VERSION);
  let logged = "";
  const stderr = (text: string) => {
    logged += text;
  };
  // The agent's own stderr is not the caller's: what another plugin writes to stderr is sent with the reply.
  const milliseconds = () => performance.now() - startedAt;
  const context = { environment, stderr, delegateStderr: stderr, host, enterPhase, milliseconds };
  const plugin = await called.create(context);
  const process = {
    env: environment,
    readStdin: async () => stdin,
    isOwnNetns: async (path: string) => home.isNamedBy(path),
    signal,
  };
  const reply = await serve(process, plugin);
  return { ...reply, stderr: logged + reply.stderr };
}
