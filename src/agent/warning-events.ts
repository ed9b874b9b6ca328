/** Warnings to people as Events of the orchestrator (`kubectl get events`). */
import { identity } from "../identity.ts";
import type { KubeClient } from "../kube/api.ts";

export type EventClient = Pick<KubeClient, "request" | "close">;

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
