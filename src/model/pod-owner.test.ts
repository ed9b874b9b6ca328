import { describe, expect, test } from "bun:test";
import { identity } from "../identity.ts";
import { OWNER_ANNOTATION, ownerOfEndpoint, ownerOfPod } from "./pod-owner.ts";
import { workloadEndpoint } from "./workload-endpoint.ts";

function pod(kind: string, name: string, labels: object = {}, controller = true) {
  return { labels, ownerReferences: [{ apiVersion: "v1", kind, name, uid: "1", controller }] };
}

function ofGroup(apiVersion: string, kind: string, name: string) {
  return { ownerReferences: [{ apiVersion, kind, name, controller: true }] };
}

describe("ownerOfPod()", () => {
  test.each([
    [
      "a Deployment",
      pod("ReplicaSet", "web-6d4c", { "pod-template-hash": "6d4c" }),
      { kind: "Deployment", name: "web" },
    ],
    ["a ReplicaSet alone", pod("ReplicaSet", "web"), { kind: "ReplicaSet", name: "web" }],
    [
      "a ReplicaSet whose name does not end with the hash",
      pod("ReplicaSet", "web", { "pod-template-hash": "6d4c" }),
      { kind: "ReplicaSet", name: "web" },
    ],
    [
      "a ReplicaSet named as the hash",
      pod("ReplicaSet", "-a", { "pod-template-hash": "a" }),
      { kind: "ReplicaSet", name: "-a" },
    ],
    ["a StatefulSet", ofGroup("apps/v1", "StatefulSet", "db"), { kind: "StatefulSet", name: "db" }],
    [
      "a StatefulSet of another project",
      ofGroup("apps.example.org/v1", "StatefulSet", "db"),
      { kind: "StatefulSet.apps.example.org", name: "db" },
    ],
    ["a StatefulSet of no group", ofGroup("v1", "StatefulSet", "db"), { kind: "StatefulSet.core", name: "db" }],
    [
      "a virtual machine",
      ofGroup("kubevirt.io/v1", "VirtualMachineInstance", "desktop"),
      { kind: "VirtualMachineInstance", name: "desktop" },
    ],
    [
      "a virtual machine of another project",
      ofGroup("kubevirt.io.example.org/v1", "VirtualMachineInstance", "desktop"),
      { kind: "VirtualMachineInstance.kubevirt.io.example.org", name: "desktop" },
    ],
    ["a node", ofGroup("v1", "Node", "n1"), { kind: "Node", name: "n1" }],
    ["a node of another project", ofGroup("example.org/v1", "Node", "n1"), { kind: "Node.example.org", name: "n1" }],
    ["a DaemonSet", pod("DaemonSet", "log"), { kind: "DaemonSet", name: "log" }],
    ["a Job", pod("Job", "nightly-1"), { kind: "Job", name: "nightly-1" }],
    ["another kind", pod("Rollout", "web"), { kind: "Rollout", name: "web" }],
  ])("%s", (_, metadata, owner) => {
    expect(ownerOfPod(metadata)).toEqual(owner);
  });

  test("nothing of a pod that nothing controls", () => {
    expect([ownerOfPod({}), ownerOfPod(pod("Node", "one", {}, false)), ownerOfPod({ ownerReferences: "x" })]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

function endpoint(metadata: object) {
  return workloadEndpoint.make({ name: "one-k8s-web-eth0", namespace: "shop", ...metadata }, {});
}

describe("ownerOfEndpoint()", () => {
  const ofShop = { [`${identity.labelPrefix}namespace`]: "shop" };

  test.each([
    [
      "annotated",
      { annotations: { [OWNER_ANNOTATION]: "Rollout/web" }, generateName: "x-" },
      { kind: "Rollout", name: "web" },
    ],
    [
      "a Deployment",
      { generateName: "web-6d4c-", labels: { ...ofShop, "pod-template-hash": "6d4c" } },
      { kind: "Deployment", name: "web" },
    ],
    [
      "a StatefulSet",
      {
        generateName: "db-",
        labels: { "controller-revision-hash": "db-1", "statefulset.kubernetes.io/pod-name": "db-0" },
      },
      { kind: "StatefulSet", name: "db" },
    ],
    [
      "a DaemonSet",
      { generateName: "log-", labels: { "controller-revision-hash": "5c" } },
      { kind: "DaemonSet", name: "log" },
    ],
    ["a Job", { generateName: "nightly-1-", labels: { "job-name": "nightly-1" } }, { kind: "Job", name: "nightly-1" }],
    ["not known", { generateName: "web-" }, undefined],
    ["not a pod", { labels: ofShop }, undefined],
    ["badly annotated", { annotations: { [OWNER_ANNOTATION]: "web" } }, undefined],
  ])("%s", (_, metadata, owner) => {
    expect(ownerOfEndpoint(endpoint(metadata))).toEqual(owner);
  });
});
