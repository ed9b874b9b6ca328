import { describe, expect, test } from "bun:test";
import type { LiveObject } from "../release/live-object.ts";
import { AVAILABLE } from "./conditions.ts";
import { workloadState } from "./workload-state.ts";

const LABELS = { app: "agent" };

function object(kind: string, name: string, members: object = {}, more: object = {}): LiveObject {
  const metadata = { name, namespace: "ns", uid: name, resourceVersion: "1", ...more };
  return { apiVersion: "v1", kind, metadata, ...members };
}

function daemonSet(status: object, generation = 1): LiveObject {
  const counts = { observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 };
  const members = { spec: { selector: { matchLabels: LABELS } }, status: { ...counts, ...status } };
  return object("DaemonSet", "agent", members, { generation });
}

const pod = (status: object, name = "agent-1") =>
  object("Pod", name, { spec: { nodeName: "node-1" }, status }, { labels: LABELS });
const waiting = (reason: string, message = "") =>
  pod({
    containerStatuses: [
      { name: "main", image: "registry/it:v1", restartCount: 4, state: { waiting: { reason, message } } },
    ],
  });
const node = (status: string, message: string) =>
  object("Node", "node-1", { status: { conditions: [{ type: "Ready", status, message }] } });

const NOWHERE = { pods: [], nodes: [] };

describe("workloadState()", () => {
  test("is available if all pods are of the present version and available", () => {
    expect(workloadState(daemonSet({}), NOWHERE)).toEqual(AVAILABLE);
    const deployment = object("Deployment", "controllers", {
      spec: { replicas: 2, selector: { matchLabels: LABELS } },
      status: { updatedReplicas: 2, availableReplicas: 2 },
    });
    expect(workloadState(deployment, NOWHERE)).toEqual(AVAILABLE);
  });

  test.each([
    ["was changed and not taken note of", daemonSet({}, 2), "has not taken note of it"],
    ["rolls out", daemonSet({ updatedNumberScheduled: 1 }), "1 of 2 pods are of the present version"],
    ["has pods that are not available", daemonSet({ numberAvailable: 1 }), "1 of 2 pods are available"],
    ["selects no node", daemonSet({ desiredNumberScheduled: 0 }), "there is none that it selects"],
  ])("progresses if it %s", (_, workload, message) => {
    const { available, progressing, degraded } = workloadState(workload, NOWHERE);

    expect([available.status, progressing.status, degraded.status]).toEqual(["False", "True", "False"]);
    expect(progressing.message).toContain(message);
  });

  test.each([
    [
      waiting("ImagePullBackOff", "not found"),
      'Pod "agent-1" on node "node-1": image "registry/it:v1" cannot be pulled (ImagePullBackOff: not found); check registry',
    ],
    [waiting("CrashLoopBackOff"), 'see "kubectl logs --namespace ns agent-1 --container main --previous"'],
    [
      waiting("CreateContainerConfigError", 'secret "x" not found'),
      'cannot be created (CreateContainerConfigError: secret "x"',
    ],
    [
      pod({ initContainerStatuses: [{ name: "install", state: { terminated: { exitCode: 1 } } }] }),
      'container "install" crashes',
    ],
    [pod({ phase: "Failed", reason: "Evicted", message: "disk pressure" }), "has failed: Evicted: disk pressure"],
    [
      pod({ conditions: [{ type: "PodScheduled", reason: "Unschedulable", message: "0/3 nodes are available" }] }),
      "fits no node: 0/3 nodes are available",
    ],
  ])("is degraded by a pod that cannot run: %#", (broken, message) => {
    const state = workloadState(daemonSet({ numberAvailable: 1 }), { pods: [broken], nodes: [] });

    expect([state.degraded.status, state.degraded.reason, state.progressing.status]).toEqual([
      "True",
      "PodFailure",
      "True",
    ]);
    expect(state.degraded.message).toContain(message);
  });

  test("is not degraded by pods that start, end, or belong to others", () => {
    const ending = object(
      "Pod",
      "old",
      { status: { phase: "Failed" } },
      { labels: LABELS, deletionTimestamp: "2026-01-01T00:00:00Z" },
    );
    const pods = [
      waiting("ContainerCreating"),
      waiting("PodInitializing"),
      ending,
      object("Pod", "other", { status: { phase: "Failed" } }),
    ];

    expect(workloadState(daemonSet({}), { pods, nodes: [] }).degraded.status).toBe("False");
  });

  test("names the nodes that are not ready, but not those that only wait for this network", () => {
    const missing = daemonSet({ numberAvailable: 1 });
    const stopped = workloadState(missing, {
      pods: [pod({})],
      nodes: [node("Unknown", "Kubelet stopped posting node status.")],
    });
    expect([stopped.degraded.reason, stopped.degraded.message]).toEqual([
      "NodeNotReady",
      'Node "node-1" is not ready: Kubelet stopped posting node status.',
    ]);

    const message = "container runtime network not ready: NetworkReady=false message:cni plugin not initialized";
    const fresh = workloadState(missing, { pods: [pod({})], nodes: [node("False", message)] });
    expect(fresh.degraded.status).toBe("False");
  });

  test.each([
    ["while a node waits for this network", "False", "cni plugin not initialized", false],
    ["while a node that has it is still tainted", "True", "", false],
    ["if the node does not respond", "Unknown", "Kubelet stopped posting node status.", true],
  ])("is degraded by a pod that fits no node, but not in a new cluster: %s", (_, ready, message, isDegraded) => {
    const unscheduled = pod({ conditions: [{ type: "PodScheduled", reason: "Unschedulable", message: "tainted" }] });
    const taints = [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }];
    const tainted = { ...node(ready, message), spec: { taints } };
    const state = workloadState(daemonSet({ numberAvailable: 0 }), { pods: [unscheduled], nodes: [tainted] });

    expect([state.degraded.status, state.progressing.status]).toEqual([isDegraded ? "True" : "False", "True"]);
  });

  test("names three of many problems", () => {
    const pods = [1, 2, 3, 4, 5].map((index) => pod({ phase: "Failed" }, `agent-${index}`));
    const { message } = workloadState(daemonSet({}), { pods, nodes: [] }).degraded;

    expect(message).toContain("agent-3");
    expect(message).toEndWith("; and 2 more");
  });
});
