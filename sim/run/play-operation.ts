/** Makes an operation of a script happen in a cluster. What it is about may be gone: then nothing happens. */
import { UNDISTURBED } from "../faults/network.ts";
import type { Action, FaultAction, RuntimeAction, UserAction } from "../script/operation.ts";
import { isFault } from "../script/operation.ts";
import type { Cluster } from "./cluster.ts";
import { COVERED_OPERATIONS, type CoveredOperation } from "./coverage.ts";
import { changeKernel } from "./foreign-change.ts";

/** How long something that is over at once counts as in progress. */
const SHORT_WHILE = 5_000;

export async function playOperation(cluster: Cluster, action: Action): Promise<void> {
  if (isFault(action)) return playFault(cluster, action);
  if (isCovered(action.kind)) cluster.scheduler.after(SHORT_WHILE, cluster.coverage.begin(action.kind));
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
      if (action.how === "gracefully") orchestrator.deletePod(pod);
      else orchestrator.forgetPod(pod);
      return machine?.kubelet.hear();
    }
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
      return cluster.deletePool(action.name);
    case "join node":
      return cluster.joinNode(action.node);
    case "delete node":
      return cluster.deleteNode(action.node);
  }
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

async function playFault(cluster: Cluster, fault: FaultAction): Promise<void> {
  const { network, controllers } = cluster;
  const { api } = cluster.servers;
  const store = cluster.servers.store.server;
  const machine = "node" in fault ? cluster.machines.get(fault.node) : undefined;
  const during = (begin: () => void, end: () => void = () => {}) => {
    begin();
    cluster.addFault(fault.kind, "lasts" in fault ? Math.max(fault.lasts, SHORT_WHILE) : SHORT_WHILE, end);
  };
  switch (fault.kind) {
    case "disturb requests": {
      const { delay, lostRequest, lostAnswer } = fault;
      return during(
        () => {
          network.disturbance = { ...UNDISTURBED, delay, lostRequest, lostAnswer };
        },
        () => {
          network.disturbance = UNDISTURBED;
        },
      );
    }
    case "cut":
      return during(
        () => network.cut(fault.place),
        () => network.heal(fault.place),
      );
    case "restart datastore":
      return during(() => store.restart(fault.lasts));
    case "restart API":
      return during(() => api.restart(fault.lasts));
    case "compact datastore":
      return during(() => store.compact());
    case "stall watches":
      return during(() => {
        store.stallWatches(fault.place, fault.lasts);
        api.stallWatches(fault.place, fault.lasts);
      });
    case "kill call":
      return during(() => machine?.node.killNextCall(fault.afterEffects));
    case "reboot node":
      if (machine === undefined || !machine.isOn) return;
      return during(
        () => machine.switchOff(),
        () => {
          if (cluster.machines.get(machine.name) === machine) machine.switchOn();
        },
      );
    case "compact API":
      return during(() => api.compact());
    case "kill controllers": {
      const killed = controllers.get(fault.place);
      return during(
        () => killed?.process?.killAfter(fault.afterEffects),
        () => {
          killed?.process?.killAfter(Number.POSITIVE_INFINITY);
          killed?.start();
        },
      );
    }
    // Whoever had not so many effects while the fault lasted lives on.
    case "kill agent":
      return during(
        () => machine?.killAgent(fault.afterEffects, fault.lasts),
        () => machine?.heal(),
      );
    case "lose kernel events":
      if (machine === undefined) return;
      return during(
        () => {
          machine.node.host.faults.lostEvents = fault.probability;
        },
        () => {
          machine.node.host.faults.lostEvents = 0;
        },
      );
    case "foreign change":
      if (machine === undefined || !machine.isOn) return;
      return during(() => {
        machine.tamperedAt = cluster.now;
        changeKernel(machine.node.host, fault);
      });
  }
}

function isOfRuntime(action: UserAction | RuntimeAction): action is RuntimeAction {
  return action.kind === "lose sandbox" || action.kind === "repeat call" || action.kind === "collect garbage";
}

function isCovered(kind: string): kind is CoveredOperation {
  return (COVERED_OPERATIONS as readonly string[]).includes(kind);
}
