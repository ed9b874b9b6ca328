import { describe, expect, test } from "bun:test";
import { orchestratorReference, withOrchestratorReference } from "./node-reference.ts";

const k8s = (nodeName: string) => ({ nodeName, orchestrator: "k8s" });
const OTHER = { nodeName: "vm-7", orchestrator: "openstack" };

describe("orchestratorReference()", () => {
  test.each([
    [[OTHER, k8s("a")], "a"],
    [[OTHER], undefined],
    [[k8s("")], undefined],
    [[{ orchestrator: "k8s" }], undefined],
    [undefined, undefined],
  ])("of %j is %p", (orchRefs, expected) => {
    expect(orchestratorReference(orchRefs === undefined ? {} : { orchRefs })).toBe(expected);
  });
});

describe("withOrchestratorReference()", () => {
  test.each([
    [[], [k8s("a")]],
    [
      [k8s("b"), OTHER, k8s("c")],
      [OTHER, k8s("a")],
    ],
    [
      [k8s("a"), OTHER],
      [k8s("a"), OTHER],
    ],
  ])("in %j gives %j", (orchRefs, expected) => {
    expect(withOrchestratorReference({ orchRefs }, "a")).toEqual({ orchRefs: expected });
  });
});
