/**
 * Replicas of the controllers, while users change the orchestrator's objects and the copies of them, and the replicas are
 * killed, ended, frozen and started again.
 */
import { orchestratorMapping } from "../../src/datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { SimulatedApi } from "../datastore/simulated-api.ts";
import { SimulatedStore } from "../datastore/simulated-store.ts";
import { FaultyNetwork } from "../faults/network.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { dueChanges } from "./controllers-at-rest.ts";
import { disturb, heal, LONGEST_FREEZE } from "./faults.ts";
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
/** Longer than the longest pause of a work queue, and than a period of reconciliation. */
const UNTIL_REST = 15 * 60_000;

export async function runControllersScenario(seed: number): Promise<ScenarioOutcome> {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const api = new SimulatedApi(network);
  const store = new SimulatedStore(network, { atomicity: "all changes" });
  const { table } = store;
  const replicas = Array.from({ length: REPLICAS }, (_, index) => {
    const name = `controllers-${index + 1}`;
    return new SimulatedControllers({
      name,
      scheduler,
      random: random.fork(name),
      openStore: (process) => store.connect(process, name),
      openApi: (process) => api.connect(process, name),
      isEtcd: true,
    });
  });
  const site = { network, api, replicas };

  const violations = new Set<string>();
  const check = () => {
    const leading = replicas.filter(({ isLeading }) => isLeading).map(({ name }) => name);
    if (leading.length > 1) violations.add(`${leading.join(" and ")} write at the same time`);
  };
  const { user } = api;
  const choices = random.fork("choices");
  const acts = [
    () => disturb(site, choices),
    () => disturb(site, choices),
    () => void changeSomeObject(user, choices),
    () => void changeSomeObject(user, choices),
    () => changeSomeRecord(table, choices),
    () => store.restart(choices.below(20_000)),
    () => store.compact(),
    () => store.stallWatches(choices.pick(replicas).name, choices.below(60_000)),
  ];
  for (const replica of replicas) replica.start();
  for (let count = 0; count < 80; count++) {
    await scheduler.runUntil(scheduler.now + choices.below(15_000), check);
    choices.pick(acts)();
  }
  heal(site);
  await scheduler.runUntil(scheduler.now + LONGEST_FREEZE, check);
  heal(site);
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
