/**
 * The node agent: processes of this one program.
 *
 *   vendor-node                      keeps its parts running (agent/main.ts)
 *     ├─ vendor-node serve-calls     serves the plugins' calls (agent/calls/serve-plugins.ts), and does nothing else
 *     └─ vendor-node collect-flows   while flows are switched on: collects them (agent/flows/collector)
 *
 * No call waits for the other work of the agent, and neither policy nor calls for the collector. In a container it enters the host's namespaces first
 * (agent/node-setup/enter-host.ts).
 */
import type { AgentProcess } from "../agent/agent-process.ts";
import { beginCallServer, type CallServerOptions, EXIT_REFUSED } from "../agent/calls/call-server-process.ts";
import { beginCollector, type CollectorOptions } from "../agent/flows/collector-process.ts";
import { enterHost } from "../agent/node-setup/enter-host.ts";
import { becomeOnlyAgent } from "../agent/only-agent.ts";
import { StartRefused } from "../agent/supervise.ts";
import type { Environment } from "../cni/environment.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { PluginError } from "../errors.ts";
import { watchOver } from "../health/watchdog.ts";
import { identity } from "../identity.ts";
import { nameProcess } from "../linux/own-process.ts";
import { quoted } from "../quote.ts";
import { VERSION } from "../version.ts";
import {
  COLLECT_FLOWS,
  EXIT_IN_USE,
  KEEP_FILES,
  PARENT,
  readNodeArguments,
  SERVE_CALLS,
  STAY,
  type UninstallOptions,
} from "./node-arguments.ts";
import { say, sayRefused } from "./node-log.ts";
import { nodeUsage } from "./node-usage.ts";
import { installedNames } from "./programs.ts";
import { removeUntrustedVariables } from "./trusted-environment.ts";
import { STOP_SIGNALS } from "./write-and-exit.ts";

const { wait } = SYSTEM_CLOCK;
/** The longest time that a timer takes: 24 days. */
const LONGEST_MILLISECONDS = 2 ** 31 - 1;

declare const FAULTS: boolean | undefined;

export async function run(args: readonly string[]): Promise<number> {
  // The executable starts with little JIT compilation, which suits the plugins; a long-running process benefits from more.
  Bun.unsafe.setJITPolicy(1);
  const request = readNodeArguments(args);
  switch (request.kind) {
    case "version":
      console.log(`${identity.nodeAgent} ${VERSION}`);
      return 0;
    case "help":
      console.log(nodeUsage());
      return 0;
    case "wrong":
      console.error(`${identity.nodeAgent}: unknown or invalid argument ${quoted(request.argument)}\n\n${nodeUsage()}`);
      return 2;
    case "call server":
      return runCallServer(request);
    case "flow collector":
      return runFlowCollector(request);
    case "agent":
      return runAgent(request);
    case "install":
      return onHost(request, async (own) => (await import("../agent/node-setup/install-node.ts")).installNode(own));
    case "uninstall":
      return onHost(request, async (own) => {
        await uninstall(own, request);
        if (request.stays) await stopped();
      });
  }
}

interface HostWork extends UninstallOptions {
  readonly kind: string;
  readonly hostNamespaces?: string;
}

/** Without the files it is part of another program's work, whose output it belongs to. */
async function uninstall(own: AgentProcess, { keepsFiles }: UninstallOptions): Promise<void> {
  const { uninstallNode, uninstallWithoutFiles } = await import("../agent/node-setup/uninstall-node.ts");
  if (!keepsFiles) return uninstallNode(own);
  const plain = (message: string) => console.error(`${identity.nodeAgent}: ${message}`);
  return uninstallWithoutFiles({ ...own, say: plain }, stopSignal());
}

/** The pod of a DaemonSet must not end. */
async function stopped(): Promise<void> {
  say("Done; waiting for SIGTERM");
  await wait(LONGEST_MILLISECONDS, stopSignal());
}

/** Work that ends, in the namespaces of the host. A failure leaves the node as it was, or is repaired by the next run. */
async function onHost(
  { kind, hostNamespaces, stays, keepsFiles }: HostWork,
  work: (own: AgentProcess) => Promise<void>,
): Promise<number> {
  try {
    if (hostNamespaces !== undefined) {
      const options = [...(stays ? [STAY] : []), ...(keepsFiles ? [KEEP_FILES] : [])];
      throw new Error(enterHost(process.env, hostNamespaces, [kind, ...options]));
    }
    nameProcess(identity.nodeAgent);
    removeUntrustedVariables();
    await work(ownProcess(process.env));
    return 0;
  } catch (failure) {
    const details = failure instanceof PluginError && failure.details !== "" ? ` (${failure.details})` : "";
    console.error(`${identity.nodeAgent} ${kind}: ${failure instanceof Error ? failure.message : failure}${details}`);
    return failure instanceof PluginError && failure.kind === "resource-in-use" ? EXIT_IN_USE : 1;
  }
}

/** Without an agent, which is for tests, it must be the only one itself. */
async function runCallServer(options: CallServerOptions): Promise<number> {
  if (!beginCallServer(options)) return EXIT_REFUSED;
  if (options.parent === undefined && !(await isOnlyAgent(stopSignal()))) return EXIT_REFUSED;
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  const [{ serveUntilStopped }, { servedPlugin }] = await Promise.all([
    import("../agent/calls/serve-plugins.ts"),
    import("./plugin-loaders.ts"),
  ]);
  const stopped = Promise.withResolvers<string>();
  for (const name of STOP_SIGNALS) process.on(name, () => stopped.resolve(name));
  return serveUntilStopped({
    ...ownProcess(removeUntrustedVariables()),
    pluginFor: servedPlugin,
    stopped: stopped.promise,
    exit: process.exit,
  });
}

/** Reads and writes the messages of src/flows/collector-messages.ts. */
async function runFlowCollector(options: CollectorOptions): Promise<number> {
  if (!beginCollector(options)) return EXIT_REFUSED;
  const { runFlowCollector: collect } = await import("../agent/flows/collector/flow-collector.ts");
  const write = (text: string) => void process.stdout.write(text);
  try {
    await collect({ environment: removeUntrustedVariables(), say, input: Bun.stdin.stream(), write }, stopSignal());
    return 0;
  } finally {
    // Also after a failure: as long as the agent keeps stdin open, reading it would keep this process running.
    setImmediate(() => process.exit());
  }
}

async function runAgent({ hostNamespaces }: { readonly hostNamespaces?: string }): Promise<number> {
  if (hostNamespaces !== undefined) {
    sayRefused(enterHost(process.env, hostNamespaces));
    return 1;
  }
  nameProcess(identity.nodeAgent);
  const limit = typeof FAULTS === "undefined" || !FAULTS ? {} : (await import("./blocking-part.ts")).watchLimit();
  const watch = watchOver({ warn: (message) => say(message, {}, "WARNING"), ...limit });
  const signal = stopSignal();
  try {
    // Before any part runs: two agents would write one policy table.
    if (!(await isOnlyAgent(signal))) return 1;
    await (await import("../agent/main.ts")).runAgent({
      own: ownProcess(process.env),
      signal,
      wait,
      watch,
      callServer: [SERVE_CALLS, PARENT, String(process.pid)],
      collector: [COLLECT_FLOWS, PARENT, String(process.pid)],
      furtherParts:
        typeof FAULTS === "undefined" || !FAULTS ? [] : (await import("./blocking-part.ts")).blockingParts(),
    });
    return 0;
  } catch (failure) {
    if (signal.aborted && failure === signal.reason) return 0;
    if (failure instanceof StartRefused) return 1;
    throw failure;
  } finally {
    watch.end();
  }
}

async function isOnlyAgent(signal: AbortSignal): Promise<boolean> {
  const refused = await becomeOnlyAgent(ownProcess(removeUntrustedVariables()), signal);
  if (refused !== undefined) sayRefused(refused);
  return refused === undefined;
}

function ownProcess(environment: Environment): AgentProcess {
  return {
    environment,
    pid: process.pid,
    isRoot: process.getuid?.() === 0,
    say,
    signalProcess: (pid, signal) => void process.kill(pid, signal),
    programNames: installedNames(identity),
  };
}

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) process.on(name, () => stop.abort());
  return stop.signal;
}
