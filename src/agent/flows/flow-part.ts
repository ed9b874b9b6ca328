/**
 * The part of the agent that observes flows: while they are switched on for this node, a collector runs, and is started again
 * when it ends. While they are switched off, nothing of it is loaded.
 *
 *   NodeAgentConfiguration ──▶ spec.flows is Enabled ──▶ run-collector.ts ═ starts ═▶ a process of its own
 */
import { describeFailure } from "../../errors.ts";
import { onceEach } from "../../log/once-each.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import type { FollowedNetwork } from "../network/followed-network.ts";
import { type AgentPart, superviseParts } from "../supervise.ts";
import { accountingPath, restoreConnectionAccounting } from "./collector/connection-accounting.ts";
import type { FlowsOfNode } from "./flows-of-node.ts";
import { noteSwitchedOff } from "./history/switched-off.ts";

/** Nothing on a host that cannot have a collector, as a simulated one. */
export function flowParts(followed: FollowedNetwork, flows: FlowsOfNode): readonly AgentPart[] {
  const { startCollector } = followed.means;
  if (startCollector === undefined) return [];
  return [{ name: "the observation of flows", run: (signal) => observe(followed, { flows, startCollector }, signal) }];
}

type Started = { readonly flows: FlowsOfNode } & {
  readonly startCollector: NonNullable<FollowedNetwork["means"]["startCollector"]>;
};

async function observe(followed: FollowedNetwork, started: Started, signal: AbortSignal): Promise<void> {
  const { replica, network } = followed;
  const failed = new AbortController();
  let running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  const end = async () => {
    running?.stop.abort();
    await running?.ended;
    running = undefined;
    started.flows.isOn = false;
  };
  try {
    for await (const { snapshot } of replica
      .part(["configurations"])
      .updates(AbortSignal.any([signal, failed.signal]))) {
      const configurations = Array.from(snapshot.configurations, ([, value]) => value);
      const isOn = nodeAgentSettings(configurations, network.node).flows === "Enabled";
      if (!isOn) {
        // Before it ends: what follows is no time without a collector.
        noteSwitchedOff(followed.means.files.flowHistory, followed.means.clock.now().getTime());
        await end();
        // Also what an agent that was killed has left.
        restoreConnectionAccounting(accountingPath(followed.means.files.runDirectory));
        continue;
      }
      if (started.flows.isOn) continue;
      started.flows.isOn = true;
      const stop = new AbortController();
      const ended = keepCollector(followed, started, AbortSignal.any([signal, stop.signal]));
      running = { stop, ended: ended.catch((failure: unknown) => failed.abort(failure)) };
    }
    // Another kind of error would perhaps end the whole agent.
    if (failed.signal.aborted) throw new Error(describeFailure(failed.signal.reason));
  } finally {
    await end();
  }
}

/** One that ends is replaced by another one, until the signal is aborted. */
async function keepCollector(followed: FollowedNetwork, started: Started, signal: AbortSignal): Promise<void> {
  const { elapsed, wait } = followed.means.clock;
  const { report } = onceEach((message) => followed.log(message, "WARNING"));
  const { runCollector } = await import("./run-collector.ts");
  const part = {
    name: "the collector of flows",
    run: (stop: AbortSignal) => runCollector(followed, { ...started, report }, stop),
  };
  await superviseParts([part], { signal, report: (message) => followed.log(message, "WARNING"), elapsed, wait });
}
