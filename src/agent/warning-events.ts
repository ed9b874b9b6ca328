/** Warnings to people as Events of the orchestrator (`kubectl get events`). */
import { identity } from "../identity.ts";
import type { KubeClient } from "../kube/api.ts";
import type { FollowedNetwork } from "./network/followed-network.ts";

export type EventClient = Pick<KubeClient, "request" | "close">;

/** `undefined` if the orchestrator, which alone has events, is not the datastore, or without access to its API. */
export function eventClient(
  { means, network, store }: Pick<FollowedNetwork, "means" | "network" | "store">,
  warn: (message: string) => void,
): (() => Promise<EventClient>) | undefined {
  const { agentAccess: access } = network.orchestrator;
  if (store.isOrchestratorApi !== true || access === undefined) return undefined;
  return () => means.openKubeClient(access, warn);
}

export interface Warning {
  /** In the name of the event. */
  readonly topic: string;
  /** Tells events of a topic apart: the API refuses a second one with the same, until it forgets the first. */
  readonly distinction: string;
  readonly about: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
  };
  /** In one word. */
  readonly reason: string;
  readonly message: string;
}

const LONGEST_MESSAGE = 1_000;
const [CONFLICT, FIRST_REFUSAL] = [409, 300];

/** Pure. Events about what has no namespace are in the default one. */
export function warningEvent(warning: Warning, { node, now }: { readonly node: string; readonly now: Date }) {
  const { topic, distinction, about, reason, message } = warning;
  const digest = new Bun.CryptoHasher("sha256").update(distinction).digest("hex").slice(0, 16);
  const time = now.toISOString().replace(/\.\d+Z$/, "Z");
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: about.namespace ?? "default", name: `${identity.product}-${topic}-${digest}` },
    involvedObject: about,
    type: "Warning",
    reason,
    message: message.slice(0, LONGEST_MESSAGE),
    source: { component: identity.nodeAgent, host: node },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

/** One that exists already counts as sent. Returns why it failed, without what can be different for each event. Never rejects. */
export async function sendEvent(
  openClient: () => Promise<EventClient>,
  event: ReturnType<typeof warningEvent>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const path = `/api/v1/namespaces/${encodeURIComponent(event.metadata.namespace)}/events`;
  try {
    const client = await openClient();
    try {
      const { status } = await client.request({ method: "POST", path, body: JSON.stringify(event), signal });
      return status === CONFLICT || status < FIRST_REFUSAL ? undefined : `the API returned status ${status}`;
    } finally {
      await client.close();
    }
  } catch (failure) {
    return failure instanceof Error ? failure.message : String(failure);
  }
}

/** Tells people what the agent found out about its node, if there are events. Never rejects. */
export function nodeEvents(
  given: Pick<FollowedNetwork, "means" | "network" | "store" | "log">,
  signal: AbortSignal,
): (message: string) => Promise<void> {
  const { node } = given.network;
  const warn = (reason: unknown) => given.log(`Cannot write an event about this node: ${reason}`, "WARNING");
  const openClient = eventClient(given, warn);
  if (openClient === undefined) return async () => {};
  return async (message) => {
    const warning = {
      // The same message within the time that events are kept is the same event.
      ...{ topic: "tunnel", distinction: `${node}\n${message}`, message },
      ...{ about: { apiVersion: "v1", kind: "Node", name: node, uid: node }, reason: "TunnelPath" },
    };
    const event = warningEvent(warning, { node, now: given.means.clock.now() });
    const failure = await sendEvent(openClient, event, signal);
    if (failure !== undefined && !signal.aborted) warn(failure);
  };
}
