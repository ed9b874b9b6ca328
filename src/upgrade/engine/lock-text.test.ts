import { describe, expect, test } from "bun:test";
import type { Ledger, StepState } from "./ledger.ts";
import { leftNodesText, lockedByUpgrade, lockText } from "./lock-text.ts";

const SINCE = "2026-01-02T03:00:00.000Z";
const NOW = new Date("2026-01-02T03:12:00.000Z");

function ledger(phase: Ledger["phase"], states: Readonly<Record<string, StepState>>): Ledger {
  const steps = Object.entries(states).map(([name, state]) => ({ name, state, startedAt: SINCE }));
  return { run: "1", phase, plans: [], from: "v3.28.0", to: "v3.29.0", startedAt: SINCE, steps, notes: {} };
}

describe("the line about the lock", () => {
  test.each<[string, Ledger["phase"], Readonly<Record<string, StepState>>]>([
    ["before the storage moves", "running", { storage: "pending", unlock: "pending" }],
    ["after it was unlocked", "running", { storage: "done", unlock: "done", "remaining-nodes": "running" }],
    ["when it has gone back", "rolling-back", { storage: "rolled-back", unlock: "rolled-back" }],
    ["if no storage moves", "running", { definitions: "done" }],
    ["on etcd, which is not locked", "running", { storage: "running" }],
  ])("is empty %s", (_, phase, states) => {
    expect(lockedByUpgrade(ledger(phase, states))).toBeUndefined();
    expect(lockText(ledger(phase, states), NOW)).toBe("");
  });

  test.each<[string, Ledger["phase"], Readonly<Record<string, StepState>>, RegExp]>([
    ["while it is copied", "running", { storage: "running", unlock: "pending" }, /upgrade apply.*upgrade rollback/],
    ["while nodes are updated", "running", { storage: "done", rollout: "running", unlock: "pending" }, /upgrade apply/],
    ["until the unlock is done", "running", { storage: "done", unlock: "running" }, /upgrade apply/],
    ["until it has gone back", "rolling-back", { storage: "done", unlock: "pending" }, /rollback --yes/],
    ["while it goes back", "rolling-back", { storage: "rolling-back", unlock: "rolled-back" }, /rollback --yes/],
  ])("says since when, and what to do, %s", (_, phase, states, end) => {
    const text = lockText(ledger(phase, states), NOW);

    expect(text).toStartWith(`The datastore is LOCKED since ${SINCE}, about 12 min: no pod starts or ends until `);
    expect(text).toMatch(end);
  });
});

describe("the line about nodes that were left", () => {
  const UNLOCKED = { storage: "done", unlock: "done", "remaining-nodes": "running" } as const;
  const left = { rollout: { left: { two: "the Node is not ready", three: "it has no pod" } } };

  test("names them once the datastore is unlocked, with what a former agent misses and what to do", () => {
    expect(leftNodesText({ ...ledger("running", UNLOCKED), notes: left })).toMatch(
      /^2 nodes were left by the update \(two, three\): .*follows no change.*new policies.*kubectl cordon.*drain/,
    );
  });

  test.each<[string, Readonly<Record<string, StepState>>, Ledger["notes"]]>([
    ["while it is locked", { ...UNLOCKED, unlock: "pending" }, left],
    ["when they are updated", { ...UNLOCKED, "remaining-nodes": "done" }, left],
    ["if there is none", UNLOCKED, { rollout: { enoughForRunOf: "2026-01-02T03:00:00.000Z" } }],
  ])("is empty %s", (_, states, notes) => {
    expect(leftNodesText({ ...ledger("running", states), notes })).toBe("");
  });
});
