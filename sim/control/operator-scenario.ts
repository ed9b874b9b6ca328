/**
 * Replicas of the operator, while users change the Installation and spoil what the operator made of it. The same users'
 * changes are made in a run without faults: both must end in the same state of the cluster.
 */

import { identity } from "../../src/identity.ts";
import { FaultyNetwork } from "../faults/network.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { asProgram } from "./api/as-program.ts";
import { openApi } from "./api/open-api.ts";
import { clusterContents, clusterVersions, differences } from "./cluster-contents.ts";
import type { ScenarioOutcome } from "./controllers-scenario.ts";
import { disturb, type FaultSite, heal, LONGEST_FREEZE } from "./faults.ts";
import { ImitatedOrchestrator } from "./imitated-orchestrator.ts";
import { layOutCluster, type PlannedChange, planChanges } from "./installation-changes.ts";
import { SimulatedOperator } from "./simulated-operator.ts";

const NODES = ["node-1", "node-2", "node-3"];
const REPLICAS = 2;
const LENGTH = 6 * 60_000;
/** Longer than the longest pause between two passes. */
const UNTIL_REST = 5 * 60_000;

interface Played {
  readonly contents: Readonly<Record<string, unknown>>;
  readonly violations: readonly string[];
  readonly steps: number;
  readonly trace: string;
}

export async function runOperatorScenario(seed: number): Promise<ScenarioOutcome> {
  const undisturbed = await play(seed, () => {});
  const disturbed = await play(seed, disturb);
  const differing = differences(undisturbed.contents, disturbed.contents).map((line) => `not as undisturbed: ${line}`);
  return {
    violations: [
      ...undisturbed.violations.map((each) => `undisturbed: ${each}`),
      ...disturbed.violations,
      ...differing,
    ],
    steps: undisturbed.steps + disturbed.steps,
    trace: `${undisturbed.trace}\n${disturbed.trace}`,
  };
}

interface Site extends FaultSite {
  readonly scheduler: Scheduler;
}

type Disturb = (site: Site, random: Random) => void;

async function play(seed: number, disturbOnce: Disturb): Promise<Played> {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const api = openApi(network);
  layOutCluster(api, NODES);
  new ImitatedOrchestrator(api, scheduler, random.fork("orchestrator"));
  const operators = Array.from({ length: REPLICAS }, (_, index) => {
    const name = `operator-${index + 1}`;
    return new SimulatedOperator({
      name,
      scheduler,
      random: random.fork(name),
      openApi: (process) => asProgram(api.connect(process, name), identity.operator),
    });
  });
  const site = { scheduler, network, api, replicas: operators };
  const violations = new Set<string>();
  const check = () => {
    const leading = operators.filter(({ isLeading }) => isLeading).map(({ name }) => name);
    if (leading.length > 1) violations.add(`${leading.join(" and ")} write at the same time`);
  };
  const users = followPlan(site, planChanges(random.fork("users"), LENGTH));
  const faults = random.fork("faults");
  for (const operator of operators) operator.start();
  while (scheduler.now < LENGTH) {
    await scheduler.runUntil(scheduler.now + faults.below(15_000), check);
    disturbOnce(site, faults);
  }
  heal(site);
  await scheduler.runUntil(scheduler.now + LONGEST_FREEZE, check);
  heal(site);
  while (!users.isDone() && scheduler.now < LENGTH + 120 * 60_000)
    await scheduler.runUntil(scheduler.now + 60_000, check);
  if (!users.isDone()) violations.add(`users cannot ${users.next()}`);
  await scheduler.runUntil(scheduler.now + UNTIL_REST, check);
  const before = clusterVersions(api);
  await scheduler.runUntil(scheduler.now + UNTIL_REST, check);
  for (const line of differences(before, clusterVersions(api))) violations.add(`writes at rest: ${line}`);
  if (!operators.some(({ isLeading }) => isLeading)) violations.add("no replica leads");
  for (const { name, failures } of operators) for (const each of failures) violations.add(`${name} failed: ${each}`);
  return {
    contents: clusterContents(api),
    violations: [...violations],
    steps: scheduler.steps,
    trace: JSON.stringify([scheduler.steps, operators.map(({ logged }) => logged)]),
  };
}

/** Each change after the one before it has been possible. */
function followPlan({ scheduler, api }: Site, plan: readonly PlannedChange[]) {
  let done = 0;
  const look = () => {
    for (let next = plan[done]; next !== undefined && next.at <= scheduler.now && next.act(api); next = plan[done])
      done += 1;
    if (done < plan.length) scheduler.after(1_000, look);
  };
  look();
  return { isDone: () => done === plan.length, next: () => plan[done]?.what ?? "" };
}
