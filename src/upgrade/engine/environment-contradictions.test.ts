import { describe, expect, test } from "bun:test";
import { contradictionPatch } from "./environment-contradictions.ts";

const workload = (env: readonly object[]) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "a", resourceVersion: "3" },
  spec: { template: { spec: { containers: [{ name: "first" }, { name: "agent", env }] } } },
});
const FROM_FIELD = { fieldRef: { fieldPath: "metadata.name" } };

describe("contradictionPatch()", () => {
  test("removes a value that the new object gets from elsewhere, and the other way round", () => {
    const live = workload([
      { name: "OTHER", value: "1" },
      { name: "POD_NAME", value: "edited" },
      { name: "LEVEL", valueFrom: FROM_FIELD },
    ]);
    const wanted = workload([
      { name: "POD_NAME", valueFrom: FROM_FIELD },
      { name: "LEVEL", value: "INFO" },
    ]);

    expect(contradictionPatch(live, wanted)).toEqual([
      { op: "test", path: "/metadata/resourceVersion", value: "3" },
      { op: "remove", path: "/spec/template/spec/containers/1/env/1/value" },
      { op: "remove", path: "/spec/template/spec/containers/1/env/2/valueFrom" },
    ]);
  });

  test("is empty if values only differ", () => {
    expect(contradictionPatch(workload([{ name: "A", value: "1" }]), workload([{ name: "A", value: "2" }]))).toEqual(
      [],
    );
  });
});
