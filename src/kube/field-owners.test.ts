import { describe, expect, test } from "bun:test";
import { isOfKubectl, removedByTakeOver, takeOverPatch } from "./field-owners.ts";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";

function objectWith(managedFields: readonly object[], annotations: object = {}) {
  return { apiVersion: "apps/v1", kind: "Deployment", metadata: { resourceVersion: "7", annotations, managedFields } };
}

const entry = (manager: string, fieldsV1: object, more: object = {}) => ({
  manager,
  operation: "Update",
  apiVersion: "apps/v1",
  fieldsType: "FieldsV1",
  fieldsV1,
  ...more,
});

describe("takeOverPatch()", () => {
  test("gives what kubectl applied to the manager that applies from now on, without the last applied configuration", () => {
    const kubectl = entry("kubectl-client-side-apply", {
      "f:metadata": { "f:annotations": { ".": {}, [`f:${ANNOTATION}`]: {} }, "f:labels": { "f:app": {} } },
      "f:spec": { "f:replicas": {} },
    });
    const other = entry("gitops", { "f:spec": { "f:paused": {} } });
    const own = entry("vendorctl", { "f:spec": { "f:selector": {} } }, { operation: "Apply" });
    const object = objectWith([kubectl, other, own], { [ANNOTATION]: "{}" });
    const patch = takeOverPatch(object, { manager: "vendorctl", isTaken: isOfKubectl, metadata: "taken" });

    expect(patch).toEqual([
      { op: "test", path: "/metadata/resourceVersion", value: "7" },
      {
        op: "replace",
        path: "/metadata/managedFields",
        value: [
          other,
          {
            ...own,
            fieldsV1: {
              "f:metadata": { "f:labels": { "f:app": {} } },
              "f:spec": { "f:selector": {}, "f:replicas": {} },
            },
          },
        ],
      },
      { op: "remove", path: "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration" },
    ]);
  });

  test("leaves labels, annotations and what controllers report to those who set them", () => {
    const former = entry("operator", { "f:metadata": { "f:labels": {} }, "f:spec": { "f:template": {} } });
    const status = entry("kube-controller-manager", { "f:status": {} }, { subresource: "status" });
    const patch = takeOverPatch(objectWith([former, status]), {
      manager: "vendor-operator",
      isTaken: () => true,
      metadata: "left",
    });

    expect(patch.at(1)).toEqual({
      op: "replace",
      path: "/metadata/managedFields",
      value: [
        { ...former, fieldsV1: { "f:metadata": { "f:labels": {} } } },
        status,
        entry("vendor-operator", { "f:spec": { "f:template": {} } }, { operation: "Apply" }),
      ],
    });
  });

  test("is empty if there is nothing to take", () => {
    const own = entry("vendorctl", { "f:spec": {} }, { operation: "Apply" });
    const takeOver = { manager: "vendorctl", isTaken: isOfKubectl, metadata: "taken" } as const;
    expect(takeOverPatch(objectWith([own]), takeOver)).toEqual([]);
  });
});

describe("removedByTakeOver()", () => {
  test("names fields that only the former manifest has", () => {
    const former = entry("kubectl", {
      "f:metadata": { "f:labels": { "f:app": {}, "f:former": {} }, "f:annotations": { [`f:${ANNOTATION}`]: {} } },
      "f:spec": {
        "f:replicas": {},
        "f:paused": {},
        "f:containers": {
          'k:{"name":"a"}': { ".": {}, "f:image": {}, "f:tty": {} },
          'k:{"name":"b"}': { ".": {}, "f:image": {} },
        },
      },
    });
    const other = entry("gitops", { "f:spec": { "f:paused": {} } });
    const wanted = {
      metadata: { labels: { app: "x" } },
      spec: { replicas: 1, containers: [{ name: "a", image: "new" }] },
    };
    const takeOver = { manager: "vendorctl", isTaken: isOfKubectl, metadata: "taken" } as const;

    expect(removedByTakeOver(objectWith([former, other]), takeOver, wanted)).toEqual([
      '.spec.containers[name="a"].tty',
      '.spec.containers[name="b"]',
      ".metadata.labels.former",
    ]);
  });
});
