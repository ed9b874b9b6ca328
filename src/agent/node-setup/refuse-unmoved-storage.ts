/**
 * Releases up to v3.28 stored their resources elsewhere on the orchestrator's API. An agent that starts before
 * `vendorctl upgrade` has moved them would know of no address in use and of no policy. The upgrade locks the former storage
 * for ever, so an unlocked one was not moved; if this release has blocks all the same, somebody has unlocked it since.
 */
import { PluginError } from "../../errors.ts";
import { API_VERSION, apiVersionOf, FORMER_API, identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { CLUSTER_INFORMATION } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";

const FORMER_INFORMATION = `/apis/${apiVersionOf(FORMER_API)}/${CLUSTER_INFORMATION.plural}/default`;

/** One request, unless there is a former storage. */
export async function refuseUnmovedStorage(client: Pick<KubeClient, "request">): Promise<void> {
  const objects = clusterObjects(client);
  const former = await objects.read(FORMER_INFORMATION);
  if (former === undefined || isLocked(former["spec"])) return;
  const blocks = await objects.read(`/apis/${API_VERSION}/ipamblocks`, { limit: "1" });
  if (Array.isArray(blocks?.["items"]) && blocks["items"].length > 0) return;
  throw new PluginError(
    "not-ready",
    `Cannot start on this cluster: the resources of its earlier release are in ${FORMER_API.group}, and were not moved`,
    {
      details:
        `this release would assign addresses that are in use. Run "${identity.adminTool} upgrade plan" and then ` +
        `"${identity.adminTool} upgrade apply"; if nothing of the earlier release is needed, delete its definitions`,
    },
  );
}

function isLocked(spec: unknown): boolean {
  return isObject(spec) && spec["datastoreReady"] === false;
}
