import { expect, test } from "bun:test";
import type { CallOutcome } from "../node/simulated-runtime.ts";
import { SimulatedRuntime } from "../node/simulated-runtime.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { JudgedCalls } from "./judged-calls.ts";

const POD = { namespace: "red", name: "web", uid: "uid-1" };
const REFUSED: CallOutcome = { kind: "failed", reason: "refused" };
const LACKING: CallOutcome = {
  kind: "failed",
  reason: 'Cannot confirm: host interface "a" lacks neighbour entry 10.0.0.1',
};

/** A runtime with an attached container, whose further calls have these outcomes. */
async function start() {
  const scheduler = new Scheduler(new Random(1));
  const state = { isQuiet: true, isWanted: true, isAnnotated: false, tamperedAt: undefined as number | undefined };
  const outcomes: CallOutcome[] = [];
  const done: CallOutcome = { kind: "done", stdout: JSON.stringify({ ips: [] }) };
  const namespaces = new Set<string>();
  const runtime = new SimulatedRuntime({
    network: () => JSON.stringify({ name: "net", cniVersion: "1.1.0", plugins: [{}] }),
    call: async () => outcomes.shift() ?? done,
    hasNamespace: (path) => namespaces.has(path),
    makeNamespace: (path) => void namespaces.add(path),
    removeNamespace: (path) => void namespaces.delete(path),
  });
  await runtime.add(POD, "c1");
  const failures: string[] = [];
  const calls = new JudgedCalls({
    ...{ node: "node-1", scheduler, runtime, isOn: () => true, onFailure: (what) => failures.push(what) },
    isQuietSince: () => state.isQuiet,
    isWanted: () => state.isWanted,
    isAnnotated: () => state.isAnnotated,
    tamperedAt: () => state.tamperedAt,
  });
  return { scheduler, state, outcomes, calls, failures };
}

test("a CHECK that fails is judged if nothing disturbed its node and its container", async () => {
  const { state, outcomes, calls, failures } = await start();
  const check = async (outcome: CallOutcome, change: Partial<typeof state> = {}) => {
    Object.assign(state, { isQuiet: true, isWanted: true, isAnnotated: false, tamperedAt: undefined }, change);
    outcomes.push(outcome);
    await calls.check("c1");
    return failures.splice(0);
  };
  expect(await check(REFUSED)).toEqual(["node-1: CHECK of c1 failed: refused"]);
  expect(await check(LACKING)).toHaveLength(1);
  expect(await check(REFUSED, { isQuiet: false })).toEqual([]);
  expect(await check(REFUSED, { isWanted: false })).toEqual([]);
  expect(await check(REFUSED, { isAnnotated: true })).toEqual([]);
  expect(await check({ kind: "died" })).toEqual([]);
  expect(await check(REFUSED, { tamperedAt: 0 })).toEqual([]);
  expect(await check(REFUSED, { tamperedAt: -180_000 })).toHaveLength(1);
  expect(await check(LACKING, { tamperedAt: -180_000 })).toEqual([]);
});

test("a GC that fails is judged, and tried again until it succeeds", async () => {
  const { scheduler, state, outcomes, calls, failures } = await start();
  state.isQuiet = false;
  outcomes.push(REFUSED, REFUSED);
  const collected = calls.collectGarbage();
  await scheduler.runUntil(15_000);
  expect(failures).toEqual([]);
  expect(outcomes).toEqual([]);

  state.isQuiet = true;
  outcomes.push(REFUSED);
  await scheduler.runUntil(35_000);
  await collected;
  expect(failures).toEqual(["node-1: GC failed: refused"]);
});
