/** Whether every pod of the release's Deployments runs, and why one does not. */
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { quoted } from "../../quote.ts";
import { fieldsIn, itemsIn, named, podSpecOf, textIn } from "../manifest/workload.ts";
import { isRunning, nameOf, podProblem, unreadyContainers } from "./pods.ts";

export interface DeploymentView {
  readonly deployment: Fields;
  /** That its selector selects. */
  readonly pods: readonly Fields[];
}

/** What is missing, a line for each; nothing if all replicas of the present template run and are ready. */
export async function pendingDeployment(
  objects: ClusterObjects,
  path: string,
  version: string,
): Promise<readonly string[]> {
  const deployment = await objects.read(path);
  if (deployment === undefined) return [`Deployment ${path.replace(/^.*\//, "")} does not exist`];
  const { namespace } = fieldsIn(deployment, "metadata");
  const labelSelector = Object.entries(fieldsIn(deployment, "spec", "selector", "matchLabels"))
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
  const pods = await objects.list(`/api/v1/namespaces/${namespace}/pods`, { labelSelector });
  return deploymentProblems({ deployment, pods }, version);
}

/** Pure. `version`: of the release, which the tags of its images have. */
export function deploymentProblems({ deployment, pods }: DeploymentView, version: string): readonly string[] {
  const name = `Deployment ${nameOf(deployment)}`;
  const own = named(itemsIn(podSpecOf(deployment), "containers"), nameOf(deployment));
  if (isOtherRelease(own, version)) return [`${name} still has the image ${quoted(textIn(own, "image") ?? "")}`];
  const status = fieldsIn(deployment, "status");
  if (numberIn(status, "observedGeneration") < numberIn(deployment["metadata"], "generation"))
    return [`${name} has not been processed yet`];
  const { replicas: wanted = 1 } = fieldsIn(deployment, "spec");
  const [updated, ready] = [numberIn(status, "updatedReplicas"), numberIn(status, "readyReplicas")];
  const isComplete = updated === wanted && ready === wanted && numberIn(status, "replicas") === wanted;
  if (isComplete) return [];
  const reasons = pods.flatMap(podReason);
  return [`${name}: ${ready} of ${wanted} pods are ready${reasons.length === 0 ? "" : `; ${reasons.join("; ")}`}`];
}

/** Our container has the name of the Deployment. An image with a digest alone tells nothing. */
function isOtherRelease(container: Fields | undefined, version: string): boolean {
  const tag = /:([^/:]+)$/.exec(textIn(container, "image")?.replace(/@.*$/, "") ?? "")?.[1];
  return tag !== undefined && tag !== version;
}

function podReason(pod: Fields): readonly string[] {
  const unready = unreadyContainers(pod);
  const problem = podProblem(pod);
  if (problem === "" && unready.length === 0 && isRunning(pod)) return [];
  const phase = textIn(pod["status"], "phase") ?? "unknown";
  return [`pod ${nameOf(pod)}: ${problem || (isRunning(pod) ? `not ready: ${unready.join(", ")}` : phase)}`];
}

function numberIn(value: unknown, name: string): number {
  return Number(fieldsIn({ value }, "value")[name] ?? 0);
}
