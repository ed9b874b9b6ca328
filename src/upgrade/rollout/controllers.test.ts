import { describe, expect, test } from "bun:test";
import { deploymentProblems } from "./controllers.ts";

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
const pod = (status: object) => ({
  metadata: { name: `${NAME}-1` },
  spec: { containers: [{ name: NAME }] },
  status: { phase: "Running", containerStatuses: [{ name: NAME, ready: false, ...status }] },
});

describe("deploymentProblems()", () => {
  test("finds nothing if all replicas are of this release, and ready", () => {
    expect(deploymentProblems({ deployment: deployment({}), pods: [] }, VERSION)).toEqual([]);
  });

  test("an image by its digest says nothing about the release", () => {
    const pinned = deployment({}, "registry.example/product@sha256:0123");
    expect(deploymentProblems({ deployment: pinned, pods: [] }, VERSION)).toEqual([]);
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
  ])("names %s", (_, given, one, text) => {
    expect(deploymentProblems({ deployment: given as never, pods: [one as never] }, VERSION)).toEqual([
      expect.stringMatching(text),
    ]);
  });
});
