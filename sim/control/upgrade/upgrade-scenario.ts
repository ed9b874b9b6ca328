/**
 * A cluster of an earlier release is upgraded by the real tool, while pods come and the controllers of this release start:
 * killed anywhere, frozen, cut off, continued by another process, or rolled back. It must end as an undisturbed upgrade does,
 * or as if there had been none; nothing stays locked, and no address is lost or has two owners.
 */
import { identity } from "../../../src/identity.ts";
import type { SimulatedApi } from "../../datastore/simulated-api.ts";
import { FaultyNetwork } from "../../faults/network.ts";
import { Random } from "../../schedule/random.ts";
import { Scheduler } from "../../schedule/scheduler.ts";
import { asProgram } from "../api/as-program.ts";
import { openApi } from "../api/open-api.ts";
import { type Contents, clusterContents, differences } from "../cluster-contents.ts";
import type { ScenarioOutcome } from "../controllers-scenario.ts";
import { ImitatedOrchestrator } from "../imitated-orchestrator.ts";
import { SimulatedControllers } from "../simulated-controllers.ts";
import { AddressUsers } from "./address-users.ts";
import { Administrator } from "./administrator.ts";
import { layOutOlderCluster } from "./older-cluster.ts";

const SETTLE = 60_000;
const LOOK = 5_000;
const MOST_ATTEMPTS = 14;
const MOST_FINAL_ATTEMPTS = 6;

/** Records of addresses depend on the pods that came meanwhile; those of the upgrade itself on its history. */
const UNCOMPARED = new RegExp(
  `/(ipamblocks|ipamhandles|blockaffinities)/|/namespaces/kube-system/(configmaps|secrets)/${identity.product}-upgrade`,
);
/** What a rollback says that it leaves. */
const STAYING = new RegExp(`/(customresourcedefinitions|apiservices)/[^ ]*${identity.apiGroup}(:|$)`);

interface Played {
  readonly before: Contents;
  readonly after: Contents;
  readonly phase: string;
  readonly violations: readonly string[];
  readonly steps: number;
  readonly trace: string;
}

let undisturbed: Promise<Played> | undefined;

/** The same for all seeds: it is what a disturbed one is compared with. */
export function undisturbedUpgrade(): Promise<Pick<Played, "after" | "violations">> {
  undisturbed ??= play(0, undefined);
  return undisturbed;
}

export async function runUpgradeScenario(seed: number): Promise<ScenarioOutcome> {
  const wanted = await undisturbedUpgrade();
  const found = await play(seed, new Random(seed).fork("faults"));
  const undone = () => differences(found.before, found.after).filter((line) => !STAYING.test(line));
  const differing = found.phase === "rolled-back" ? undone() : differences(wanted.after, found.after);
  return {
    violations: [
      ...wanted.violations.map((each) => `undisturbed: ${each}`),
      ...found.violations,
      ...differing.map((line) => `${found.phase}, and not as undisturbed: ${line}`),
    ],
    steps: found.steps,
    trace: found.trace,
  };
}

/** `faults`: absent if it is not disturbed. */
async function play(seed: number, faults: Random | undefined): Promise<Played> {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const api = openApi(network);
  await layOutOlderCluster(api);
  new ImitatedOrchestrator(api, scheduler, random.fork("orchestrator"));
  await scheduler.runUntil(SETTLE);
  const before = contentsOf(api);
  const users = new AddressUsers(api, scheduler, random.fork("users"));
  const controllers = runControllers(api, scheduler, random.fork("controllers"));
  const administrator = new Administrator({ api, network }, random.fork("administrator"));
  const violations: string[] = [];
  lookAtAddresses(users, scheduler, violations);

  const planned = await administrator.succeed("upgrade", "plan", "--lock-time=30s", "--stall-limit=3m");
  if (planned.code !== 0) violations.push(`there is no plan: ${planned.stderr}`);
  const goal = faults?.chance(0.3) === true ? "rolled-back" : "complete";
  await disturbed(administrator, goal, faults);
  administrator.calm();
  await scheduler.runUntil(scheduler.now + SETTLE);
  await administrator.untilIdle();
  violations.push(...(await finish(administrator, goal)));
  await scheduler.runUntil(scheduler.now + 2 * SETTLE);
  users.end();
  await scheduler.runUntil(scheduler.now + 3 * SETTLE);
  const { phase } = administrator;
  violations.push(...lockProblems(api, phase), ...administrator.givenUp);
  if (phase === "complete") violations.push(...(await users.problems()));
  if (phase === "complete" && users.assigned.size === 0) violations.push("no pod has got an address");
  violations.push(...controllers.failures.map((failure) => `the controllers failed: ${failure}`));
  const trace = JSON.stringify([scheduler.steps, administrator.history, [...users.assigned]]);
  return { before, after: contentsOf(api), phase, violations, steps: scheduler.steps, trace };
}

/**
 * From the first pod that has an address on, the new storage is in use: whatever happens to the upgrade, nobody loses an
 * address there or gets that of another. Until then it may be copied to half.
 */
export function lookAtAddresses(users: AddressUsers, scheduler: Scheduler, violations: string[]): void {
  const look = async () => {
    if (violations.length > 0) return;
    if (users.assigned.size > 0) {
      violations.push(...(await users.problems()).map((problem) => `after ${scheduler.now / 1_000} s: ${problem}`));
    }
    scheduler.after(LOOK, () => void look());
  };
  void look();
}

async function disturbed(administrator: Administrator, goal: string, faults: Random | undefined): Promise<void> {
  if (faults === undefined) return;
  const attempts = 1 + faults.below(MOST_ATTEMPTS);
  for (let count = 0; count < attempts && administrator.phase !== goal; count++) {
    const goesBack = goal === "rolled-back" && faults.chance(0.4) && administrator.phase !== "none";
    if (goesBack) await administrator.attempt("upgrade", "rollback", "--yes");
    else await administrator.attempt("upgrade", "apply");
    if (administrator.phase === "rolled-back") return;
  }
}

/** Without faults: back if that is wanted and still possible, otherwise to the end. */
async function finish(administrator: Administrator, goal: string): Promise<readonly string[]> {
  const isOver = () => ["complete", "rolled-back"].includes(administrator.phase);
  for (let count = 0; count < MOST_FINAL_ATTEMPTS && !isOver(); count++) {
    const isBegun = administrator.phase !== "none";
    const back = isBegun && (goal === "rolled-back" || administrator.phase === "rolling-back");
    const ended = await administrator.succeed("upgrade", ...(back ? ["rollback", "--yes"] : ["apply"]));
    if (ended.code === 0) continue;
    const isTooLate = back && ended.stderr.includes("is unlocked");
    if (!isTooLate) return [`upgrade ${back ? "rollback" : "apply"} failed without a fault: ${ended.stderr}`];
    const applied = await administrator.succeed("upgrade", "apply");
    if (applied.code !== 0) return [`upgrade apply failed without a fault: ${applied.stderr}`];
  }
  return isOver() ? [] : [`the upgrade does not end: ${administrator.phase}`];
}

export function contentsOf(api: SimulatedApi): Contents {
  const all = clusterContents(api);
  return Object.fromEntries(Object.entries(all).filter(([path]) => !UNCOMPARED.test(path)));
}

/** Locked is what says so; a storage that is not in use any more stays locked. */
function lockProblems(api: SimulatedApi, phase: string): readonly string[] {
  const storage = phase === "complete" ? "present" : "former";
  return isUnlocked(api, storage) ? [] : [`the ${storage} storage is locked at the end`];
}

export const INFORMATIONS = {
  present: `/apis/${identity.apiGroup}/v3/clusterinformations/default`,
  former: `/apis/crd.${identity.apiGroup}/v1/clusterinformations/default`,
} as const;

/** One that does not exist is not. */
export function isUnlocked(api: SimulatedApi, storage: keyof typeof INFORMATIONS): boolean {
  const spec = api.object(INFORMATIONS[storage])?.["spec"];
  return (spec as Readonly<Record<string, unknown>> | undefined)?.["datastoreReady"] === true;
}

/** They run as long as there is a Deployment of this release. */
export function runControllers(api: SimulatedApi, scheduler: Scheduler, random: Random): SimulatedControllers {
  const controllers = new SimulatedControllers({
    name: "controllers-1",
    scheduler,
    random,
    openStore: (process) => api.connectStore(process, "controllers-1"),
    openApi: (process) => asProgram(api.connect(process, "controllers-1"), identity.controllers),
    isEtcd: false,
  });
  const look = () => {
    const isWanted =
      api.object(`/apis/apps/v1/namespaces/kube-system/deployments/${identity.controllers}`) !== undefined;
    if (isWanted) controllers.start();
    else controllers.end();
    scheduler.after(2_000, look);
  };
  look();
  return controllers;
}
