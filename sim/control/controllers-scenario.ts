/**
 * Replicas of the controllers, while users change the orchestrator's objects and the copies of them, and the replicas are
 * killed, ended, frozen and started again.
 */
import { startFakeApi } from "../../src/datastore/kube/fake-api.ts";
import { orchestratorMapping } from "../../src/datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { dueChanges } from "./controllers-at-rest.ts";
import { SimulatedControllers } from "./simulated-controllers.ts";
import { changeSomeObject, changeSomeRecord } from "./user-changes.ts";

export interface ScenarioOutcome {
  readonly violations: readonly string[];
  /** Events of the scheduler. */
  readonly steps: number;
  /** The same for the same seed. */
  readonly trace: string;
}

const REPLICAS = 3;
const LONGEST_FREEZE = 60_000;
/** Longer than the longest pause of a work queue, and than a period of reconciliation. */
const UNTIL_REST = 15 * 60_000;

export async function runControllersScenario(seed: number): Promise<ScenarioOutcome> {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const api = startFakeApi();
  const table = new MemoryTable();
  const latency = random.fork("latency");
  const delayed = async <Answer>(process: SimulatedProcess, action: () => Answer): Promise<Answer> => {
    process.effect(() => {});
    await process.wait(latency.below(200));
    const answer = process.effect(action);
    await process.wait(latency.below(200));
    return answer;
  };
  const replicas = Array.from({ length: REPLICAS }, (_, index) => {
    const name = `controllers-${index + 1}`;
    return new SimulatedControllers({
      name,
      scheduler,
      random: random.fork(name),
      openStore: (process) => openMemory(table, { around: (_kind, request) => delayed(process, request) }),
      openApi: (process) => api.connect((_request, send) => delayed(process, send)),
      isEtcd: true,
    });
  });

  const violations = new Set<string>();
  const check = () => {
    const leading = replicas.filter(({ isLeading }) => isLeading).map(({ name }) => name);
    if (leading.length > 1) violations.add(`${leading.join(" and ")} write at the same time`);
  };
  const user = api.connect();
  const choices = random.fork("choices");
  const act = () => {
    const replica = choices.pick(replicas);
    const kinds = ["kill", "end", "freeze", "start", "start", "object", "object", "object", "record"] as const;
    switch (choices.pick(kinds)) {
      case "kill":
        return replica.process?.killAfter(choices.below(5));
      case "end":
        return replica.end();
      case "freeze":
        return replica.freeze(choices.below(LONGEST_FREEZE));
      case "start":
        return replica.start();
      case "object":
        return void changeSomeObject(user, choices);
      case "record":
        return changeSomeRecord(table, choices);
    }
  };
  for (const replica of replicas) replica.start();
  for (let count = 0; count < 60; count++) {
    await scheduler.runUntil(scheduler.now + choices.below(20_000), check);
    act();
  }
  await scheduler.runUntil(scheduler.now + LONGEST_FREEZE, check);
  for (const replica of replicas) replica.start();
  await scheduler.runUntil(scheduler.now + UNTIL_REST, check);

  const truth = openMemory(table);
  const orchestrator = openKubeStore({ api: user, mappings: orchestratorMapping(), close: async () => {} });
  for (const due of await dueChanges({ store: truth, orchestrator, isEtcd: true })) violations.add(due);
  if (!replicas.some(({ isLeading }) => isLeading)) violations.add("no replica leads");
  for (const { name, failures } of replicas) for (const each of failures) violations.add(`${name} failed: ${each}`);
  const before = table.revision;
  await scheduler.runUntil(scheduler.now + UNTIL_REST, check);
  if (table.revision !== before) violations.add(`${table.revision} after ${before}: writes at rest`);
  const trace = JSON.stringify([scheduler.steps, table.revision, replicas.map(({ logged }) => logged)]);
  return { violations: [...violations], steps: scheduler.steps, trace };
}
