import { describe, expect, test } from "bun:test";
import { driftBeforeStep, driftSincePlan } from "./drift.ts";
import { observedObjects } from "./observe-objects.ts";
import type { StepPlan } from "./step.ts";
import type { UpgradePlan } from "./upgrade-plan.ts";

const PATH = "/apis/example.org/v1/things/one";

function drift(before: object, after: object): readonly string[] {
  const step = { step: "a", changes: [{ action: "update", what: "Thing one", path: PATH }] };
  const observed = observedObjects(new Map([[PATH, before as never]]));
  return driftSincePlan({ steps: [step], observed } as unknown as UpgradePlan, new Map([[PATH, after as never]]));
}

describe("driftSincePlan()", () => {
  const object = (resourceVersion: string, spec: object) => ({ metadata: { name: "one", resourceVersion }, spec });

  test("is what somebody has written since", () => {
    expect(drift(object("1", { a: 1 }), object("2", { a: 2 }))).toEqual(["Thing one has been changed"]);
    expect(drift(object("1", { a: 1 }), object("2", { a: 1 }))).toEqual([]);
  });

  test("is not that a new definition of the kind hides fields of an object that nobody has written", () => {
    expect(drift(object("1", { a: 1, dropped: 1 }), object("1", { a: 1 }))).toEqual([]);
  });
});

describe("driftBeforeStep()", () => {
  const written = (spec: object, managers: Readonly<Record<string, string>>) => ({
    metadata: { name: "one", managedFields: Object.entries(managers).map(([manager, time]) => ({ manager, time })) },
    spec,
  });
  const before = written({ a: 1 }, { kubectl: "2026-01-01T00:00:00Z" });
  const [first, second] = [
    { step: "a", changes: [{ action: "update", what: "Thing one", path: PATH }] },
    { step: "chart", changes: [{ action: "update", what: "Thing one", path: PATH }] },
  ];
  const plan = {
    steps: [first, second],
    observed: observedObjects(new Map([[PATH, before as never]])),
  } as unknown as UpgradePlan;

  test.each<[string, string, readonly string[], number]>([
    ["the admin tool, and no step that changes it has begun", "vendorctl", [], 1],
    ["the admin tool, and a step that changes it has begun", "vendorctl", ["a"], 0],
    ["Helm, and the step of the chart has not begun", "helm", ["a"], 1],
    ["Helm, and the step of the chart has begun", "helm", ["a", "chart"], 0],
    ["the operator", "vendor-operator", [], 0],
    ["a person", "kubectl-edit", ["a"], 1],
  ])("an object was changed by %s", (_, manager, begun, lines) => {
    const after = written({ a: 2 }, { kubectl: "2026-01-01T00:00:00Z", [manager]: "2026-01-01T00:01:00Z" });
    const live = new Map([[PATH, after as never]]);

    expect(driftBeforeStep(plan, { step: plan.steps[1] as StepPlan, begun: new Set(begun), live })).toHaveLength(lines);
  });

  test.each([
    ["before its step begins", [], 1],
    ["when its step has begun", ["a"], 0],
  ])("a guarded object was changed by a person %s", (_, begun, lines) => {
    const step = { ...plan.steps[0], changes: [{ ...first?.changes[0], isGuarded: true }] } as unknown as StepPlan;
    const live = new Map([[PATH, written({ a: 2 }, { "kubectl-edit": "2026-01-01T00:01:00Z" }) as never]]);

    expect(driftBeforeStep(plan, { step, begun: new Set(begun), live })).toHaveLength(lines);
  });
});
