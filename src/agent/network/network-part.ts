/**
 * The part of the node agent that enforces network policy and routes between nodes, with the datastore and the node name of
 * the installed network config. Waits until one is installed, and starts again when it changes. Whatever happens to this
 * part, the kernel keeps the rules and routes that it has.
 */

import type { Watch } from "../../health/watchdog.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import { onceEach } from "../../log/once-each.ts";
import type { AgentProcess } from "../agent-process.ts";
import type { StartedFeature } from "../features.ts";
import type { AgentPart } from "../supervise.ts";
import type { AgentNetwork } from "./agent-network.ts";

/** How often an installed network is looked for. */
const INSTALLED_MILLISECONDS = 2_000;
/** How often it is looked whether the network in use has changed. */
const CHANGED_MILLISECONDS = 3_000;

interface Means extends Pick<AgentProcess, "environment" | "say"> {
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
  /** A kubeconfig: the account of the pod that the agent runs in. */
  readonly account: string | undefined;
  /** Gets a function that returns whether pods are routed, each time that the network changes. */
  readonly routed: (arePodsRouted: () => boolean) => void;
  readonly watch: Pick<Watch, "ask" | "patiently">;
  readonly features: readonly StartedFeature[];
  /** The arguments that start a collector of flows. */
  readonly collector: readonly string[];
}

export function networkPart(means: Means): AgentPart {
  const { wait } = means;
  return {
    name: "the enforcement of network policy",
    // An ADD in progress may wait for the endpoint status that this part writes.
    endsLast: true,
    async run(signal) {
      const reader = networkReader(means);
      let netfilter: NetfilterAccess | undefined;
      while (!signal.aborted) {
        const network = await reader();
        if (network === undefined) await wait(INSTALLED_MILLISECONDS, signal);
        else {
          netfilter ??= await openNetfilter();
          await enforceUntilChanged(network, { ...means, signal, reader, netfilter });
        }
      }
    },
  };
}

type ReadNetwork = () => Promise<AgentNetwork | undefined>;

interface EnforceMeans extends Omit<Means, "account"> {
  readonly signal: AbortSignal;
  readonly reader: ReadNetwork;
  readonly netfilter: NetfilterAccess;
}

/** Loaded only if a network is installed. */
async function openNetfilter(): Promise<NetfilterAccess> {
  const [{ shareNetfilter }, { ownSockets }] = await Promise.all([
    import("../../linux/shared-netfilter.ts"),
    import("../../linux/netlink-socket.ts"),
  ]);
  return shareNetfilter(ownSockets);
}

async function enforceUntilChanged(
  network: AgentNetwork,
  { environment, say, signal, wait, reader, netfilter, routed, watch, features, collector }: EnforceMeans,
): Promise<void> {
  const { runNetwork } = await import("./run-network.ts");
  const { ownAgentMeans } = await import("../means.ts");
  const means = ownAgentMeans({ environment, watch, collector });
  const changed = new AbortController();
  const stop = AbortSignal.any([signal, changed.signal]);
  const log = (message: string, level: "INFO" | "WARNING" | "ERROR") => say(message, {}, level);
  const running = runNetwork(network, { means, signal: stop, log, netfilter, routed, features }).finally(() =>
    changed.abort(),
  );
  while (!stop.aborted) {
    await wait(CHANGED_MILLISECONDS, stop);
    const now = stop.aborted ? network : await reader();
    // A config that was removed or damaged does not open anything.
    if (now !== undefined && !Bun.deepEquals(now, network)) changed.abort();
  }
  await running;
}

/** What cannot be read is reported once. */
function networkReader({ environment, say, account }: Pick<Means, "environment" | "say" | "account">): ReadNetwork {
  const problems = onceEach((message) => say(message, {}, "ERROR"));
  return async () => {
    const { ownNetworkFiles, readAgentNetwork } = await import("./agent-network.ts");
    try {
      const report = (text: string) => problems.report(text.trim());
      return await readAgentNetwork(report, account, ownNetworkFiles(environment));
    } catch (failure) {
      problems.report(failure instanceof Error ? failure.message : String(failure));
      return undefined;
    }
  };
}
