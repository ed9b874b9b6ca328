import { expect, test } from "bun:test";
import { NO_OPTIONS, OPERATOR_FACTS, settingStep } from "../../../test/support/setting-steps.ts";
import { planText } from "./plan-text.ts";
import type { StepPlan } from "./step.ts";
import { newPlan } from "./upgrade-plan.ts";

const plain = (text: string) => text;
const PAINT = { bold: plain, red: plain, green: plain, yellow: plain };
const STEPS = [settingStep("first", []), settingStep("second", [])];

function planWith(...steps: readonly Partial<StepPlan>[]) {
  return newPlan({
    run: "1a2b3c4d",
    madeAt: "2026-01-02T03:04:05.000Z",
    facts: OPERATOR_FACTS,
    options: NO_OPTIONS,
    observed: {},
    steps: steps.map((step) => ({
      step: "first",
      changes: [],
      obstacles: [],
      notes: [],
      estimatedSeconds: 20,
      data: {},
      ...step,
    })),
  });
}

test("a plan says what will happen, why, what is taken, what cannot be undone, and how long it takes", () => {
  const lines = Array.from({ length: 20 }, (_, index) => `+line ${index}`);
  const plan = planWith(
    {
      changes: [
        { action: "create", what: "Namespace a", diff: "--- present\n+++ planned\n@@ -0,0 +1 @@\n+kind: Namespace\n" },
        {
          action: "update",
          what: "DaemonSet a/b",
          diff: `--- present\n+++ planned\n@@ -1 +1 @@\n-image: one\n+image: two\n${lines.join("\n")}\n`,
          conflicts: [{ field: ".spec.replicas", manager: "argocd", value: "3" }],
        },
        { action: "create", what: "Installation default", isUnverified: true },
      ],
      notes: ["nothing restarts", "Kept: spec.x"],
    },
    { step: "second", cannotBeUndone: "the old objects", estimatedSeconds: 300 },
  );

  expect(planText(plan, STEPS, { ...PAINT, isFull: false })).toBe(`\
Upgrade from v3.26.0 to v3.29.0: installed by the operator, datastore the Kubernetes API
2 steps, about 6 min in total. Run 1a2b3c4d.
Your edits that are kept:
- spec.x

1. Set first
   (first, rule 1 of the upgrade procedure, about 20 s)
   Why: The test needs it.
   - create Namespace a
   - update DaemonSet a/b
       takes .spec.replicas from "argocd", which has set 3
       @@ -1 +1 @@
       -image: one
       +image: two
${lines
  .slice(0, 13)
  .map((line) => `       ${line}\n`)
  .join("")}\
       … 7 more lines: --full shows them
   - create Installation default (not tried: its kind or namespace comes with an earlier step)
   Note: nothing restarts
   Note: Kept: spec.x

2. Set second
   (second, rule 1 of the upgrade procedure, about 5 min)
   Why: The test needs it.
   Cannot be undone: the old objects
`);
  const full = planText(plan, STEPS, { ...PAINT, isFull: true });
  expect(full).toContain("+kind: Namespace");
  expect(full).toContain("+line 19");
});

test("neighbours of one kind are one line, and long values are shortened", () => {
  const created = ["a", "b", "c"].map(
    (name) => ({ action: "create", what: `Namespace ${name}`, diff: "+x\n" }) as const,
  );
  const taken = { field: ".rules", manager: "kubectl", value: "x".repeat(200) };
  const changes = [...created, { action: "update", what: "Role r", conflicts: [taken] } as const];
  const text = planText(planWith({ changes }), STEPS, { ...PAINT, isFull: false });

  expect(text).toContain("\n   - create 3 × Namespace: a, b, c\n   - update Role r\n");
  expect(text).toContain(`which has set ${"x".repeat(80)}…\n`);
  expect(planText(planWith({ changes }), STEPS, { ...PAINT, isFull: true })).toContain(
    "\n   - create Namespace b\n       +x\n",
  );
});

test("a plan that has to be decided says what, and by which option", () => {
  const obstacles = [{ message: "two edits conflict", remedy: "add --on-conflict" }];

  expect(planText(planWith({ obstacles }), STEPS, { ...PAINT, isFull: false })).toEndWith(
    "This plan cannot be applied yet:\n- first: two edits conflict\n  add --on-conflict\n",
  );
});

test("the head says how long pods cannot be started, and which step is the point of no return", () => {
  const steps = [
    settingStep("definitions", []),
    settingStep("storage", []),
    settingStep("rollout", []),
    settingStep("unlock", [], { isPointOfNoReturn: true }),
  ];
  const moved = planWith(
    { step: "definitions", estimatedSeconds: 500 },
    { step: "storage", estimatedSeconds: 10 },
    { step: "rollout", estimatedSeconds: 40 },
    { step: "unlock", estimatedSeconds: 30 },
  );
  const head = (plan: typeof moved) => planText(plan, steps, { ...PAINT, isFull: false }).split("\n\n")[0];

  expect(head(moved)).toBe(`\
Upgrade from v3.26.0 to v3.29.0: installed by the operator, datastore the Kubernetes API
4 steps, about 10 min in total. Run 1a2b3c4d.
Pods cannot be started or removed from step 2 (storage) to step 4 (unlock): about 80 s. Running pods keep their network.
Point of no return: step 4 (unlock). Until then rollback undoes everything but what a step below names as "Cannot be undone".`);
  expect(head(planWith({ step: "storage" }, { step: "rollout" }))).not.toContain("Pods cannot");
  expect(head(planWith({ step: "rollout" }))).not.toContain("Point of no return");
});

test("the head of a plan that cannot be applied says so", () => {
  const obstacles = [{ message: "two edits conflict", remedy: "add --on-conflict" }];
  const text = planText(planWith({ obstacles }), STEPS, { ...PAINT, isFull: false });

  expect(text.split("\n\n")[0]).toEndWith(
    "\nBLOCKED: 1 question has to be decided before it can be applied; see the end of the plan.",
  );
});
