/** Events of the Installation: what `kubectl describe` shows of the changes of its conditions. */
import { effectOf } from "../effect.ts";
import { identity } from "../identity.ts";
import type { KubeClient, KubeRequest } from "../kube/api.ts";
import type { LiveObject } from "../release/live-object.ts";
import type { Condition } from "./conditions.ts";

/** Of objects without a namespace. */
const NAMESPACE = "default";
const LONGEST_MESSAGE = 1_000;

export interface InstallationEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** What is new since the last conditions. Pure. */
export function eventsOf(before: readonly Condition[], after: readonly Condition[]): readonly InstallationEvent[] {
  return after.flatMap(({ type, status, reason, message }): readonly InstallationEvent[] => {
    const previous = before.find((condition) => condition.type === type);
    if (type === "Degraded" && status === "True") {
      return previous?.status === status && previous.message === message ? [] : [{ type: "Warning", reason, message }];
    }
    if (previous?.status === status || status !== "True") return [];
    if (type === "Ready") return [{ type: "Normal", reason: "Ready", message }];
    return type === "Progressing" ? [{ type: "Normal", reason: "Progressing", message }] : [];
  });
}

export interface EventOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly now: () => Date;
  readonly newName: () => string;
  readonly warn: (message: string) => void;
}

/** An event that cannot be written is only logged: it says nothing that the status does not. */
export async function sendEvent(
  { client, now, newName, warn }: EventOptions,
  { apiVersion, kind, metadata: { name, uid, resourceVersion } }: LiveObject,
  { type, reason, message }: InstallationEvent,
): Promise<void> {
  const time = now()
    .toISOString()
    .replace(/\.\d+Z$/, "Z");
  const event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: NAMESPACE, name: `${name}.${newName()}` },
    involvedObject: { apiVersion, kind, name, uid, resourceVersion },
    type,
    reason,
    message: message.slice(0, LONGEST_MESSAGE),
    source: { component: identity.operator },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
  const path = `/api/v1/namespaces/${NAMESPACE}/events`;
  const request: KubeRequest = { method: "POST", path, body: JSON.stringify(event) };
  try {
    const { status, text } = await effectOf("send event", () => client.request(request));
    if (status >= 300) warn(`Cannot write an event: the API returned status ${status}: ${text.slice(0, 200)}`);
  } catch (failure) {
    warn(`Cannot write an event: ${failure instanceof Error ? failure.message : String(failure)}`);
  }
}
