import { describe, expect, test } from "bun:test";
import { driftSincePlan } from "./drift.ts";
import { observedObjects } from "./observe-objects.ts";
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
