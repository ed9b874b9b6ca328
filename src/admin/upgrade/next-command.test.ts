import { expect, test } from "bun:test";
import type { StepPlan } from "../../upgrade/engine/step.ts";
import { nextCommand } from "./next-command.ts";

const STEP: StepPlan = { step: "rollout", changes: [], obstacles: [], notes: [], estimatedSeconds: 1, data: {} };
const OBSTACLE = { message: "two edits conflict", remedy: "add --on-conflict" };

test.each([
  ["a plan", [STEP], "Carry it out: vendorctl upgrade apply --plan upgrade.json\n"],
  ["a blocked plan", [{ ...STEP, obstacles: [OBSTACLE] }], "then plan again: vendorctl upgrade plan\n"],
  ["a plan without steps", [], "The plan is saved in upgrade.json.\n"],
])("the next command after %s", (_, steps, text) => {
  expect(nextCommand({ steps }, "upgrade.json")).toEndWith(text);
});
