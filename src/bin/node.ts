/**
 * The node agent: two processes of this one program.
 *
 *   vendor-node                    keeps its parts running
 *     └─ vendor-node serve-calls   serves the plugins' calls (call-server.ts), and does nothing else
 *
 * Other work of the agent becomes a part in `agentParts`: it runs in the first
 * process, and no call waits for it. In a container it
 * enters the host's namespaces first (enter-host.ts).
 */
import { type AgentPart, StartRefused, superviseParts } from "../agent/supervise.ts";
import type { Environment } from "../cni/environment.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import { PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import { identity } from "../identity.ts";
import { nameProcess } from "../linux/own-process.ts";
import { DEFAULT_KUBELET_DIRECTORY, KUBELET_DIRECTORY, NO_KUBELET } from "../model/kubelet-directory.ts";
import { quoted } from "../quote.ts";
import { VERSION } from "../version.ts";
import { beginCallServer, type CallServerOptions, callServerPart, EXIT_REFUSED } from "./call-server-process.ts";
import { enterHost } from "./enter-host.ts";
import { HOST_NAMESPACES, INSTALL, readNodeArguments, SERVE_CALLS, STAY, UNINSTALL } from "./node-arguments.ts";
import { say, sayRefused } from "./node-log.ts";
import { becomeOnlyAgent } from "./only-agent.ts";
import { writePodKubeconfig } from "./pod-account.ts";
import { policyPart } from "./policy-part.ts";
import { runAdminTool } from "./run-admin-tool.ts";
import { removeUntrustedVariables } from "./trusted-environment.ts";
import { upkeepPart } from "./upkeep-part.ts";
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
      console.log(usage());
      return 0;
    case "wrong":
      console.error(`${identity.nodeAgent}: unknown or invalid argument ${quoted(request.argument)}\n\n${usage()}`);
      return 2;
    case "call server":
      return runCallServer(request);
    case "agent":
      return runAgent(request);
    case "install":
      return onHost(request, async (environment) => (await import("./install-node.ts")).installNode(environment));
    case "uninstall":
      return onHost(request, async (environment) => {
        await (await import("./uninstall-node.ts")).uninstallNode(environment);
        if (request.stays) await stopped();
      });
  }
}

interface HostWork {
  readonly kind: string;
  readonly hostNamespaces?: string;
  readonly stays?: true;
}

/** The pod of a DaemonSet must not end. */
async function stopped(): Promise<void> {
  say("Done: waits until it is stopped");
  await wait(LONGEST_MILLISECONDS, stopSignal());
}

/** Work that ends, in the namespaces of the host. A failure leaves the node as it was, or is repaired by the next run. */
async function onHost(
  { kind, hostNamespaces, stays }: HostWork,
  work: (environment: Environment) => Promise<void>,
): Promise<number> {
  try {
    if (hostNamespaces !== undefined) throw new Error(enterHost(hostNamespaces, [kind, ...(stays ? [STAY] : [])]));
    nameProcess(identity.nodeAgent);
    removeUntrustedVariables();
    await work(process.env);
    return 0;
  } catch (failure) {
    const details = failure instanceof PluginError && failure.details !== "" ? ` (${failure.details})` : "";
    console.error(`${identity.nodeAgent} ${kind}: ${failure instanceof Error ? failure.message : failure}${details}`);
    return 1;
  }
}

/** Without an agent, which is for tests, it must be the only one itself. */
async function runCallServer(options: CallServerOptions): Promise<number> {
  if (!beginCallServer(options)) return EXIT_REFUSED;
  if (options.parent === undefined && !(await isOnlyAgent(stopSignal()))) return EXIT_REFUSED;
  return (await import("./call-server.ts")).serveUntilStopped();
}

async function runAgent({ hostNamespaces }: { readonly hostNamespaces?: string }): Promise<number> {
  if (hostNamespaces !== undefined) {
    sayRefused(enterHost(hostNamespaces));
    return 1;
  }
  nameProcess(identity.nodeAgent);
  const signal = stopSignal();
  try {
    // Before any part runs: two agents would write one policy table.
    if (!(await isOnlyAgent(signal))) return 1;
    await superviseParts(await agentParts(writePodKubeconfig(process.env), hostKubeconfig()), {
      signal,
      report: (message) => say(message, {}, "WARNING"),
      elapsed: () => performance.now(),
      wait,
    });
    return 0;
  } catch (failure) {
    if (signal.aborted && failure === signal.reason) return 0;
    if (failure instanceof StartRefused) return 1;
    throw failure;
  }
}

async function isOnlyAgent(signal: AbortSignal): Promise<boolean> {
  const refused = await becomeOnlyAgent(removeUntrustedVariables(), signal);
  if (refused !== undefined) sayRefused(refused);
  return refused === undefined;
}

/** Kubeconfigs for what the agent does itself: the account of its pod, or the one that was made for the host. */
async function agentParts(ofPod: string | undefined, ofHost: string | undefined): Promise<readonly AgentPart[]> {
  const account = ofPod ?? ofHost;
  const run: typeof runAdminTool = (command, signal) => runAdminTool(command, signal, account);
  let arePodsRouted = () => false;
  const routed = (know: () => boolean) => {
    arePodsRouted = know;
  };
  const { csiPart } = await import("./csi-part.ts");
  const { volumes, parts: csiParts } = csiPart(process.env, wait);
  const parts: AgentPart[] = [
    callServerPart(),
    upkeepPart({ wait, run }),
    policyPart({ wait, account, routed, volumes }),
    ...csiParts,
  ];
  if (ofPod !== undefined) parts.push(await podPartFor(ofPod, () => arePodsRouted()));
  else if (ofHost !== undefined) parts.push(await hostTokensPartFor(ofHost));
  if (typeof FAULTS === "undefined" || !FAULTS) return parts;
  return [...parts, ...(await import("./blocking-part.ts")).blockingParts()];
}

async function podPartFor(account: string, arePodsRouted: () => boolean): Promise<AgentPart> {
  const { podPart } = await import("./pod-part.ts");
  return podPart({ environment: process.env, account, wait, arePodsRouted });
}

async function hostTokensPartFor(account: string): Promise<AgentPart> {
  const { hostTokensPart } = await import("./host-tokens-part.ts");
  return hostTokensPart({ environment: process.env, account, wait });
}

/** Of the account that was made for the agent of this host; `undefined` if agent and plugin share one. */
function hostKubeconfig(): string | undefined {
  const path = `${identity.configDirectory}/node-kubeconfig`;
  return statusAt(path) === undefined ? undefined : path;
}

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) process.on(name, () => stop.abort());
  return stop.signal;
}

function usage(): string {
  const { nodeAgent, title, environmentPrefix, runDirectory, csiDriver } = identity;
  return `Usage: ${nodeAgent} [${INSTALL} | ${UNINSTALL} [${STAY}]] [${HOST_NAMESPACES} DIRECTORY] | -v | -h

The node agent of ${title}: enforces network policy on this host, and serves the calls of the CNI plugins, until it is stopped.
If it does not run, the plugins do their work themselves, and the kernel keeps the last rules of the policies.

  ${INSTALL}                       install the plugins and their network config on this node, and end: for the init
                                container of the agent's pod
  ${UNINSTALL}                     remove what was installed, and the tunnels, routes and rules if no pod needs them
  ${STAY}                        afterwards do not end until stopped, as the pod of a DaemonSet must
  ${HOST_NAMESPACES} DIRECTORY   run in the mount, network and UTS namespaces in this directory, for example
                                /proc/1/ns; needed if the agent runs in a container
  -v                            print the version
  -h, --help                    print this help

Environment:
  ${environmentPrefix}RUN_DIRECTORY          directory of the agent's socket, agent/calls.sock (default ${runDirectory})
  ${KUBELET_DIRECTORY}      directory of the kubelet, where the agent serves the CSI driver ${csiDriver} for the
                                volumes of sidecars (default ${DEFAULT_KUBELET_DIRECTORY}); ${NO_KUBELET}: no driver

Calls are served by a separate process, "${nodeAgent} ${SERVE_CALLS}", which the agent starts and stops.`;
}
