/** Tells people what the agent found out about its node. */
import type { FollowedNetwork } from "../network/followed-network.ts";
import { sendEvent, warningEvent } from "../warning-events.ts";

/** Nothing is sent if the orchestrator is not the datastore. Never rejects. */
export function nodeEvents(
  { means, network, store, log }: Pick<FollowedNetwork, "means" | "network" | "store" | "log">,
  signal: AbortSignal,
): (message: string) => Promise<void> {
  const { node, orchestrator } = network;
  const { agentAccess: access } = orchestrator;
  if (store.isOrchestratorApi !== true || access === undefined) return async () => {};
  const warn = (reason: unknown) => log(`Cannot write an event about this node: ${reason}`, "WARNING");
  return async (message) => {
    const warning = {
      // The same message within the time that events are kept is the same event.
      ...{ topic: "tunnel", distinction: `${node}\n${message}`, message },
      ...{ about: { apiVersion: "v1", kind: "Node", name: node, uid: node }, reason: "TunnelPath" },
    };
    const event = warningEvent(warning, { node, now: means.clock.now() });
    const failure = await sendEvent(() => means.openKubeClient(access, warn), event, signal);
    if (failure !== undefined && !signal.aborted) warn(failure);
  };
}
