/** How a DaemonSet or a Deployment is, from what the orchestrator reports of it, of its pods and of the nodes. Pure. */
import { counted } from "../counted.ts";
import { type LiveObject, numberAt, textAt, textsAt } from "../release/live-object.ts";
import { describeObject } from "../release/object-kinds.ts";
import { AVAILABLE, type ComponentState, degraded, progressing } from "./conditions.ts";
import { isBecomingReady, nodeProblem } from "./node-readiness.ts";
import { fitsNoNode, podProblem } from "./pod-problems.ts";

/** More would not be read. */
const NAMED = 3;

export interface Surroundings {
  /** Of the namespace of the components. */
  readonly pods: readonly LiveObject[];
  readonly nodes: readonly LiveObject[];
}

export function workloadState(workload: LiveObject, { pods, nodes }: Surroundings): ComponentState {
  const own = podsOf(workload, pods);
  const waiting = waitingFor(workload);
  const isStarting = nodes.some(isBecomingReady);
  const problems = own.filter((pod) => !(isStarting && fitsNoNode(pod))).flatMap((pod) => podProblem(pod) ?? []);
  if (problems.length > 0) return degraded("PodFailure", listed(problems), waiting);
  if (waiting === undefined) return AVAILABLE;
  const used = new Set(own.map((pod) => textAt(pod, "spec", "nodeName")));
  const broken = nodes.filter(({ metadata }) => used.has(metadata.name)).flatMap((node) => nodeProblem(node) ?? []);
  return broken.length > 0 ? degraded("NodeNotReady", listed(broken), waiting) : waiting;
}

export function podsOf(workload: LiveObject, pods: readonly LiveObject[]): readonly LiveObject[] {
  const wanted = Object.entries(textsAt(workload, "spec", "selector", "matchLabels"));
  return pods.filter(({ metadata }) => wanted.every(([name, value]) => metadata.labels?.[name] === value));
}

function waitingFor(workload: LiveObject): ComponentState | undefined {
  const name = describeObject(workload);
  const change = outdated(workload);
  if (change !== undefined) return progressing("ResourceNotReady", change);
  const { desired, available } = countsOf(workload);
  if (desired === 0) {
    return progressing("ResourceNotReady", `${name} runs on no node: there is none that it selects`);
  }
  if (available < desired) {
    return progressing("ResourceNotReady", `${name}: ${available} of ${counted(desired, "pod")} are available`);
  }
  return undefined;
}

/** How far it is from running its present version, ready or not; `undefined` if it runs it everywhere. */
export function outdated(workload: LiveObject): string | undefined {
  const name = describeObject(workload);
  if (numberAt(workload, "status", "observedGeneration") < (workload.metadata.generation ?? 0)) {
    return `${name} has changed, and the orchestrator has not taken note of it yet`;
  }
  const { desired, updated } = countsOf(workload);
  if (updated >= desired) return undefined;
  return `${name}: ${updated} of ${counted(desired, "pod")} are of the present version`;
}

/** Pods of its present version. */
export function updatedPods(workload: LiveObject): number {
  return countsOf(workload).updated;
}

interface Counts {
  readonly desired: number;
  readonly updated: number;
  readonly available: number;
}

function countsOf(workload: LiveObject): Counts {
  return workload.kind === "DaemonSet" ? countsOfDaemonSet(workload) : countsOfDeployment(workload);
}

function countsOfDaemonSet({ status }: LiveObject): Counts {
  return {
    desired: numberAt(status, "desiredNumberScheduled"),
    updated: numberAt(status, "updatedNumberScheduled"),
    available: numberAt(status, "numberAvailable"),
  };
}

function countsOfDeployment({ spec, status }: LiveObject): Counts {
  return {
    desired: numberAt(spec, "replicas"),
    updated: numberAt(status, "updatedReplicas"),
    available: numberAt(status, "availableReplicas"),
  };
}

function listed(problems: readonly string[]): string {
  const more = problems.length - NAMED;
  return [...problems.slice(0, NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}
