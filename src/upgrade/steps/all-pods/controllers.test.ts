import { describe, expect, test } from "bun:test";
import { deploymentState } from "./controllers.ts";

const VERSION = "v3.29.0";
const NAME = "controllers";

function deployment(status: object, image = `registry.example/product:${VERSION}`) {
  return {
    metadata: { name: NAME, namespace: "kube-system", generation: 2 },
    spec: {
      replicas: 2,
      template: {
        spec: {
          containers: [
            { name: NAME, image },
            { name: "other", image: "other:v1" },
          ],
        },
      },
    },
    status: { observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, ...status },
  };
}
/** The kubelet needed its memory; the controller has made another one. */
const EVICTED = { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory" };
const pod = (status: object) => ({
  metadata: { name: `${NAME}-1` },
  spec: { containers: [{ name: NAME }] },
  status: { phase: "Running", containerStatuses: [{ name: NAME, ready: false, ...status }] },
});

const node = (status = "True") => ({
  metadata: { name: "two" },
  status: { conditions: [{ type: "Ready", status, reason: "NodeStatusUnknown", message: "Kubelet stopped" }] },
});
/** As the orchestrator leaves it on a machine that is down: only the condition says so. */
const stranded = (metadata: object = {}) => ({
  metadata: { name: `${NAME}-1`, ...metadata },
  spec: { nodeName: "two", containers: [{ name: NAME }] },
  status: {
    phase: "Running",
    containerStatuses: [{ name: NAME, ready: true }],
    conditions: [{ type: "Ready", status: "False", reason: "NodeNotReady" }],
  },
});

function problems(given: object, pods: readonly object[] = [], nodes: readonly object[] = [node()]) {
  return deploymentState({ deployment: given, pods, nodes } as never, VERSION).problems;
}

describe("deploymentState()", () => {
  test("finds nothing if all replicas are of this release, and ready", () => {
    expect(problems(deployment({}))).toEqual([]);
  });

  test("an image by its digest says nothing about the release", () => {
    const pinned = deployment({}, "registry.example/product@sha256:0123");
    expect(problems(pinned)).toEqual([]);
  });

  test.each<[string, object, object, RegExp]>([
    ["another release", deployment({}, "registry.example/product:v3.28.0"), pod({}), /still has the image/],
    ["a change that was not processed", deployment({ observedGeneration: 1 }), pod({}), /not been processed/],
    ["a pod of the former template", deployment({ replicas: 3 }), pod({ ready: true }), /2 of 2 pods are ready$/],
    [
      "a pod that is not ready",
      deployment({ readyReplicas: 1 }),
      pod({}),
      /1 of 2 .*controllers-1: not ready: controllers/,
    ],
    [
      "a pod that crashes",
      deployment({ readyReplicas: 0 }),
      pod({ state: { waiting: { reason: "CrashLoopBackOff" } } }),
      /0 of 2 .*container controllers: CrashLoopBackOff/,
    ],
    [
      "a pod that does not run",
      deployment({ readyReplicas: 0 }),
      { ...pod({}), status: { phase: "Pending" } },
      /0 of 2 .*controllers-1: Pending/,
    ],
    [
      "a pod without a node that has room",
      deployment({ readyReplicas: 1 }),
      {
        ...pod({}),
        status: {
          phase: "Pending",
          conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "2 Too many pods" }],
        },
      },
      /1 of 2 .*controllers-1: it is not scheduled \(Unschedulable: 2 Too many pods\)$/,
    ],
    [
      "a pod that is not ready although its containers are",
      deployment({ readyReplicas: 1 }),
      stranded(),
      /1 of 2 .*controllers-1 on node two: not ready \(NodeNotReady\)$/,
    ],
    ["no pod that was evicted", deployment({ readyReplicas: 1 }), { ...pod({}), status: EVICTED }, /ready$/],
  ])("names %s", (_, given, one, text) => {
    expect(problems(given, [one])).toEqual([expect.stringMatching(text)]);
  });

  test.each<[string, object, RegExp]>([
    ["of a pod that ran there", {}, /on node two: not ready \(NodeNotReady\), and the Node is not ready/],
    [
      "of a pod that is to end",
      { deletionTimestamp: "2026-01-01T00:00:00Z" },
      /: it does not end, and the Node is not/,
    ],
  ])("names a node that is down, and why, because %s", (_, metadata, text) => {
    const [line] = problems(deployment({ readyReplicas: 1 }), [stranded(metadata)], [node("Unknown")]);
    expect(line).toMatch(text);
    expect(line).toContain("pod controllers-1 on node two: ");
    expect(line).toEndWith("(NodeStatusUnknown: Kubelet stopped)");
  });

  test("a node that exists no more is a reason", () => {
    expect(problems(deployment({ readyReplicas: 1 }), [stranded()], [])).toEqual([
      expect.stringContaining("the Node does not exist"),
    ]);
  });
});
