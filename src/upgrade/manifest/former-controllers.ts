/** The controllers of an earlier release end before those of this one act: both would change the same resources. */
import { PluginError } from "../../errors.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import type { StepSite } from "../step.ts";
import { NAMESPACE, PATHS } from "./live-manifest.ts";
import { fieldsIn } from "./workload.ts";

const POLL_MILLISECONDS = 1_000;

export async function areFormerControllersStopped(objects: ClusterObjects): Promise<boolean> {
  const deployment = await objects.read(PATHS.formerControllers);
  return deployment === undefined || fieldsIn(deployment, "spec")["replicas"] === 0;
}

/** Returns when their last pod is gone. */
export async function stopFormerControllers(site: StepSite): Promise<void> {
  const { objects } = site;
  const deployment = await objects.read(PATHS.formerControllers);
  if (deployment === undefined) return;
  if (fieldsIn(deployment, "spec")["replicas"] !== 0) {
    site.progress("The controllers of the earlier release are stopped");
    await objects.patch(PATHS.formerControllers, { spec: { replicas: 0 } });
  }
  const labels = Object.entries(fieldsIn(deployment, "spec", "selector", "matchLabels"));
  const labelSelector = labels.map(([name, value]) => `${name}=${value}`).join(",");
  const limit = site.now().getTime() + site.options.stallSeconds * 1_000;
  while ((await objects.list(`/api/v1/namespaces/${NAMESPACE}/pods`, { labelSelector })).length > 0) {
    site.signal.throwIfAborted();
    if (site.now().getTime() >= limit) {
      throw new PluginError("not-ready", "The pods of the earlier release's controllers do not end", {
        details: `look at the pods with "kubectl --namespace ${NAMESPACE} get pods --selector ${labelSelector}"`,
      });
    }
    await site.wait(POLL_MILLISECONDS);
  }
}
