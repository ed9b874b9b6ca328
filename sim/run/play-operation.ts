/** Makes an operation of a script happen in a cluster. What it is about may be gone: then nothing happens. */
import type { Action, RuntimeAction, UserAction } from "../script/operation.ts";
import { isFault } from "../script/operation.ts";
import type { Cluster } from "./cluster.ts";
import { COVERED_OPERATIONS, type CoveredOperation, SHORT_WHILE } from "./coverage.ts";
import { playFault } from "./play-fault.ts";

export async function playOperation(cluster: Cluster, action: Action): Promise<void> {
  if (isFault(action)) return playFault(cluster, action);
  if (isCovered(action.kind)) {
    cluster.scheduler.after(SHORT_WHILE, cluster.coverage.begin(action.kind, placesOf(cluster, action)));
  }
  if (isOfRuntime(action)) return playRuntime(cluster, action);
  return playUser(cluster, action);
}

async function playUser(cluster: Cluster, action: UserAction): Promise<void> {
  const { orchestrator, machines } = cluster;
  switch (action.kind) {
    case "create pod":
      orchestrator.createPod(action);
      return machines.get(action.node)?.kubelet.hear();
    case "delete pod": {
      const pod = orchestrator.pods.get(`${action.namespace}/${action.name}`);
      if (pod === undefined) return;
      const machine = machines.get(pod.node);
      if (action.how === "without DEL") machine?.loseSandbox(pod.uid);
      if (action.how === "gracefully") orchestrator.deletePod(pod, cluster.now + (action.grace ?? 0));
      else orchestrator.forgetPod(pod);
      return machine?.kubelet.hear();
    }
    case "lose mirror": {
      const pod = orchestrator.pods.get(`${action.namespace}/${action.name}`);
      if (pod === undefined || pod.isEnding) return;
      machines.get(pod.node)?.kubelet.loseMirror(pod.uid);
      orchestrator.forgetPod(pod);
      return;
    }
    case "annotate pod":
      return orchestrator.annotatePod(action, { ...action.annotations, ...claimOf(cluster, action.withAddressOf) });
    case "open connection":
      return cluster.connections.open(action);
    case "label pod":
      return orchestrator.labelPod(action, action.labels);
    case "apply namespace":
      return orchestrator.applyNamespace(action.name, action.labels);
    case "apply policy":
      return orchestrator.applyPolicy(action.namespace, action.name, action.spec);
    case "delete policy":
      return orchestrator.deletePolicy(action.namespace, action.name);
    case "apply pool":
      return cluster.applyPool(action.pool);
    case "delete pool":
      return action.by === "kubectl" ? cluster.deletePoolByKubectl(action.name) : cluster.deletePool(action.name);
    case "join node":
      return cluster.joinNode(action.node);
    case "delete node":
      return cluster.deleteNode(action.node, action.runsOn);
  }
}

function claimOf(cluster: Cluster, other: { readonly namespace: string; readonly name: string } | undefined) {
  const address = other === undefined ? undefined : cluster.orchestrator.addressOf(other);
  return address === undefined ? {} : { podIP: `${address}/32`, podIPs: `${address}/32` };
}

async function playRuntime(cluster: Cluster, action: RuntimeAction): Promise<void> {
  switch (action.kind) {
    case "lose sandbox": {
      const pod = cluster.pods.get(`${action.namespace}/${action.name}`);
      if (pod !== undefined) cluster.machines.get(pod.node)?.loseSandbox(pod.uid);
      return;
    }
    case "repeat call": {
      const pod = cluster.pods.get(`${action.namespace}/${action.name}`);
      if (pod !== undefined) cluster.machines.get(pod.node)?.repeatCall(pod.uid, action.call);
      return;
    }
    case "collect garbage":
      return cluster.machines.get(action.node)?.collectGarbage();
  }
}

/** Those that an operation concerns; `undefined`: all of them, since they all follow such objects. */
function placesOf(cluster: Cluster, action: UserAction | RuntimeAction): readonly string[] | undefined {
  if (action.kind === "create pod") return [action.node, ...cluster.controllers.keys()];
  if (action.kind !== "delete pod" && action.kind !== "lose sandbox") return undefined;
  const node = cluster.pods.get(`${action.namespace}/${action.name}`)?.node;
  const nodes = node === undefined ? [] : [node];
  return action.kind === "lose sandbox" ? nodes : [...nodes, ...cluster.controllers.keys()];
}

function isOfRuntime(action: UserAction | RuntimeAction): action is RuntimeAction {
  return action.kind === "lose sandbox" || action.kind === "repeat call" || action.kind === "collect garbage";
}

function isCovered(kind: string): kind is CoveredOperation {
  return (COVERED_OPERATIONS as readonly string[]).includes(kind);
}
