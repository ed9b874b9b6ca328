/** Whether every pod of the release's Deployments runs, and why one does not. */
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import { quoted } from "../../../quote.ts";
import { detail, isRunning, nameOf, nodeTrouble, podProblem, unreadyContainers } from "../../nodes/pods.ts";
import { fieldsIn, itemsIn, named, textIn } from "../../object-fields.ts";
import { podSpecOf } from "../../pod-template.ts";

export interface DeploymentView {
  readonly deployment: Fields;
  /** That its selector selects. */
  readonly pods: readonly Fields[];
  /** That they are on. */
  readonly nodes: readonly Fields[];
}

export interface DeploymentState {
  /** What is missing, a line for each; none if all replicas of the present template run and are ready. */
  readonly problems: readonly string[];
  /** How far it is. What is here for the first time is progress: pods that come and go are not. */
  readonly reached: readonly string[];
}

export async function readDeploymentState(
  objects: ClusterObjects,
  path: string,
  version: string,
): Promise<DeploymentState> {
  const deployment = await objects.read(path);
  if (deployment === undefined)
    return { problems: [`Deployment ${path.replace(/^.*\//, "")} does not exist`], reached: [] };
  const { namespace } = fieldsIn(deployment, "metadata");
  const labelSelector = Object.entries(fieldsIn(deployment, "spec", "selector", "matchLabels"))
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
  const pods = await objects.list(`/api/v1/namespaces/${namespace}/pods`, { labelSelector });
  const names = new Set(pods.flatMap((pod) => nodeOf(pod) ?? []));
  const nodes = await Promise.all([...names].map((name) => objects.read(`/api/v1/nodes/${name}`)));
  return deploymentState({ deployment, pods, nodes: nodes.filter((each) => each !== undefined) }, version);
}

/** Pure. `version`: of the release, which the tags of its images have. */
export function deploymentState({ deployment, pods, nodes }: DeploymentView, version: string): DeploymentState {
  const name = `Deployment ${nameOf(deployment)}`;
  const exists = `${name} exists`;
  const own = named(itemsIn(podSpecOf(deployment), "containers"), nameOf(deployment));
  if (isOtherRelease(own, version))
    return { problems: [`${name} still has the image ${quoted(textIn(own, "image") ?? "")}`], reached: [exists] };
  const isNew = `${name} is of this release`;
  const status = fieldsIn(deployment, "status");
  if (numberIn(status, "observedGeneration") < numberIn(deployment["metadata"], "generation"))
    return { problems: [`${name} has not been processed yet`], reached: [exists, isNew] };
  const counts = ["replicas", "updatedReplicas", "readyReplicas"].map(
    (each) => [each, numberIn(status, each)] as const,
  );
  const reached = [exists, isNew, ...counts.map(([each, count]) => `${name} has ${count} ${each}`)];
  const { replicas: wanted = 1 } = fieldsIn(deployment, "spec");
  if (counts.every(([, count]) => count === wanted)) return { problems: [], reached };
  const reasons = pods.flatMap((pod) => podReason(pod, nodes));
  const ready = `${name}: ${numberIn(status, "readyReplicas")} of ${wanted} pods are ready`;
  return { problems: [[ready, ...reasons].join("; ")], reached };
}

/** Our container has the name of the Deployment. An image with a digest alone tells nothing. */
function isOtherRelease(container: Fields | undefined, version: string): boolean {
  const tag = /:([^/:]+)$/.exec(textIn(container, "image")?.replace(/@.*$/, "") ?? "")?.[1];
  return tag !== undefined && tag !== version;
}

/** Nothing of pods that are over, such as evicted ones: others have taken their place. */
function podReason(pod: Fields, nodes: readonly Fields[]): readonly string[] {
  const phase = textIn(pod["status"], "phase") ?? "unknown";
  if (phase === "Succeeded" || phase === "Failed") return [];
  const node = nodeOf(pod);
  const trouble = node === undefined ? "" : nodeTrouble(nodes.find((each) => nameOf(each) === node));
  const parts = [unreadyReason(pod, phase), trouble].filter((part) => part !== "");
  if (parts.length === 0) return [];
  return [`pod ${nameOf(pod)}${node === undefined ? "" : ` on node ${node}`}: ${parts.join(", and ")}`];
}

/** Empty if it is ready. On a node that is down, its containers still have the state that they had last. */
function unreadyReason(pod: Fields, phase: string): string {
  if (fieldsIn(pod, "metadata")["deletionTimestamp"] !== undefined) return "it does not end";
  const problem = podProblem(pod);
  if (problem !== "") return problem;
  if (!isRunning(pod)) return phase;
  const unready = unreadyContainers(pod);
  if (unready.length > 0) return `not ready: ${unready.join(", ")}`;
  const condition = itemsIn(pod["status"], "conditions").find(({ type }) => type === "Ready");
  if (condition === undefined || condition["status"] === "True") return "";
  return `not ready${detail(condition["reason"], condition["message"])}`;
}

function nodeOf(pod: Fields): string | undefined {
  return textIn(pod["spec"], "nodeName");
}

function numberIn(value: unknown, name: string): number {
  return Number(fieldsIn({ value }, "value")[name] ?? 0);
}
