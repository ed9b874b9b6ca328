/** Cloud providers mark a new Node as without network until somebody says otherwise: then no pod is scheduled on it. */
import { identity } from "../../identity.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

const CONDITION = "NetworkUnavailable";

/** Returns whether the condition had to be changed. */
export async function clearNetworkUnavailable(
  client: Pick<KubeClient, "request">,
  node: string,
  { now, signal }: { readonly now: () => Date; readonly signal: AbortSignal },
): Promise<boolean> {
  const path = `/api/v1/nodes/${encodeURIComponent(node)}`;
  const get: KubeRequest = { method: "GET", path, signal };
  if (isCleared(parseJson(requireOk(await client.request(get), get)))) return false;
  const time = now()
    .toISOString()
    .replace(/\.\d+Z$/, "Z");
  const condition = {
    type: CONDITION,
    status: "False",
    reason: `${identity.title}IsUp`,
    message: `${identity.nodeAgent} is running on this node`,
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  };
  const patch: KubeRequest = {
    method: "PATCH",
    path: `${path}/status`,
    contentType: "application/strategic-merge-patch+json",
    body: JSON.stringify({ status: { conditions: [condition] } }),
    attempt: "retry",
    signal,
  };
  requireOk(await client.request(patch), patch);
  return true;
}

function isCleared(node: unknown): boolean {
  const status = isObject(node) ? node["status"] : undefined;
  const conditions: unknown = isObject(status) ? status["conditions"] : undefined;
  const found: unknown = Array.isArray(conditions)
    ? conditions.find((each: unknown) => isObject(each) && each["type"] === CONDITION)
    : undefined;
  return isObject(found) && found["status"] === "False";
}
