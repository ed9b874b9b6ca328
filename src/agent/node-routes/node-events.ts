/** Tells people what the agent found out about its node, by an Event of the orchestrator (`kubectl get events`). */
import { identity } from "../../identity.ts";
import type { FollowedNetwork } from "../network/followed-network.ts";

const LONGEST_MESSAGE = 1_000;
const [CONFLICT, FIRST_REFUSAL] = [409, 300];

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
    const body = JSON.stringify(eventOf(message, { node, now: means.clock.now() }));
    try {
      const client = await means.openKubeClient(access, warn);
      try {
        const { status } = await client.request({
          method: "POST",
          path: "/api/v1/namespaces/default/events",
          body,
          signal,
        });
        if (status >= FIRST_REFUSAL && status !== CONFLICT) warn(`the API returned status ${status}`);
      } finally {
        await client.close();
      }
    } catch (failure) {
      if (!signal.aborted) warn(failure instanceof Error ? failure.message : failure);
    }
  };
}

/** Pure. The same message within the time that events are kept is the same event. */
function eventOf(message: string, { node, now }: { readonly node: string; readonly now: Date }) {
  const digest = new Bun.CryptoHasher("sha256").update(`${node}\n${message}`).digest("hex").slice(0, 16);
  const time = now.toISOString().replace(/\.\d+Z$/, "Z");
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: "default", name: `${identity.product}-tunnel-${digest}` },
    involvedObject: { apiVersion: "v1", kind: "Node", name: node, uid: node },
    type: "Warning",
    reason: "TunnelPath",
    message: message.slice(0, LONGEST_MESSAGE),
    source: { component: identity.nodeAgent, host: node },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}
