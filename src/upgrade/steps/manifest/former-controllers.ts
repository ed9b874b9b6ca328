/** The controllers of an earlier release end before those of this one act: both would change the same resources. */
import { PluginError } from "../../../errors.ts";
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import type { StepSite } from "../../engine/step.ts";
import { NAMESPACE, PATHS } from "../../manifest-install/live-manifest.ts";
import { rolloutPace } from "../../nodes/pace.ts";
import { nameOf } from "../../nodes/pods.ts";
import { fieldsIn, textIn } from "../../object-fields.ts";

const POLL_MILLISECONDS = 1_000;

export async function areFormerControllersStopped(objects: ClusterObjects): Promise<boolean> {
  const deployment = await objects.read(PATHS.formerControllers);
  return deployment === undefined || fieldsIn(deployment, "spec")["replicas"] === 0;
}

/**
 * Returns when their last pod is gone. While the datastore is locked, one on a node that does not come back is not waited for:
 * it uses only the former storage, which stays locked, and ends with its node.
 */
export async function stopFormerControllers(site: StepSite): Promise<void> {
  const { objects, options } = site;
  const deployment = await objects.read(PATHS.formerControllers);
  if (deployment === undefined) return;
  if (fieldsIn(deployment, "spec")["replicas"] !== 0) {
    site.progress("The controllers of the earlier release are stopped");
    await objects.patch(PATHS.formerControllers, { spec: { replicas: 0 } });
  }
  const labels = Object.entries(fieldsIn(deployment, "spec", "selector", "matchLabels"));
  const labelSelector = labels.map(([name, value]) => `${name}=${value}`).join(",");
  const { nodeSeconds } = rolloutPace(site, 0, undefined);
  const limit = site.now().getTime() + Math.min(options.stallSeconds, nodeSeconds ?? options.stallSeconds) * 1_000;
  for (;;) {
    const pods = await objects.list(`/api/v1/namespaces/${NAMESPACE}/pods`, { labelSelector });
    if (pods.length === 0) return;
    site.signal.throwIfAborted();
    if (site.now().getTime() >= limit) {
      if (nodeSeconds === undefined) throw unended(labelSelector);
      site.progress(
        `${describePods(pods)}: the upgrade goes on without it, since it can change only the former storage`,
      );
      return;
    }
    await site.wait(POLL_MILLISECONDS);
  }
}

function describePods(pods: readonly Fields[]): string {
  const names = pods.map((pod) => `pod ${nameOf(pod)} on node ${textIn(pod["spec"], "nodeName")}`);
  return `The controllers of the earlier release do not end (${names.join(", ")})`;
}

function unended(labelSelector: string): PluginError {
  return new PluginError("not-ready", "The pods of the earlier release's controllers do not end", {
    details: `look at the pods with "kubectl --namespace ${NAMESPACE} get pods --selector ${labelSelector}"`,
  });
}
