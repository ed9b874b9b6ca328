/**
 * A cluster of an earlier release is upgraded by the real tool. A node stalls or goes down in the middle, so that no pod
 * starts or ends on it, and a colleague unlocks one of the storages by hand. The lock must end nevertheless, the former
 * storage must stay locked for the agent of that node, and what was assigned meanwhile must stay assigned. When the node is
 * back, the upgrade ends as an undisturbed one does. Sometimes it is to go back instead: that must be completed, or refused
 * and followed by the whole upgrade if a pod has an address of the present storage by then.
 */
import type { SimulatedApi } from "../../datastore/simulated-api.ts";
import { FaultyNetwork } from "../../faults/network.ts";
import { Random } from "../../schedule/random.ts";
import { Scheduler } from "../../schedule/scheduler.ts";
import { openApi } from "../api/open-api.ts";
import { type Contents, differences } from "../cluster-contents.ts";
import type { ScenarioOutcome } from "../controllers-scenario.ts";
import { ImitatedOrchestrator } from "../imitated-orchestrator.ts";
import { AddressUsers } from "./address-users.ts";
import { Administrator } from "./administrator.ts";
import { LateAdd } from "./late-add.ts";
import { layOutOlderCluster, NODES } from "./older-cluster.ts";
import {
  contentsOf,
  INFORMATIONS,
  isUnlocked,
  lookAtAddresses,
  runControllers,
  undisturbedUpgrade,
} from "./upgrade-scenario.ts";

const SETTLE = 60_000;
const LOOK = 1_000;
/** From the start of the tool: the node halts before, within or after its own update. */
const LATEST_HALT = 30_000;
const LATEST_HAND = 150_000;
/** By a run that has the Lease: it looks every two seconds. */
const NOTICED_WITHIN = 15_000;
const MOST_ATTEMPTS = 4;
const GOING_BACK = 0.3;
const LATEST_TURN = 90_000;
const LATEST_HAND_BACK = 30_000;

interface Stage {
  readonly api: SimulatedApi;
  readonly scheduler: Scheduler;
  readonly orchestrator: ImitatedOrchestrator;
  readonly administrator: Administrator;
  readonly random: Random;
  readonly violations: string[];
  /** Until then a storage may be unlocked because of the colleague. */
  excusedUntil: number;
}

export async function runStalledScenario(seed: number): Promise<ScenarioOutcome> {
  const wanted = await undisturbedUpgrade();
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const api = openApi(network);
  await layOutOlderCluster(api);
  const orchestrator = new ImitatedOrchestrator(api, scheduler, random.fork("orchestrator"));
  await scheduler.runUntil(SETTLE);
  const users = new AddressUsers(api, scheduler, random.fork("users"));
  const controllers = runControllers(api, scheduler, random.fork("controllers"));
  const administrator = new Administrator({ api, network }, random.fork("administrator"));
  const violations: string[] = [];
  const stage: Stage = {
    ...{ api, scheduler, orchestrator, administrator, violations, excusedUntil: 0 },
    random: random.fork("trouble"),
  };
  lookAtAddresses(users, scheduler, violations);
  lookAtLocks(stage);
  const late = stage.random.chance(0.5) ? new LateAdd(api, scheduler, stage.random.fork("late")) : undefined;

  await upgradeWithTrouble(stage, late);
  await scheduler.runUntil(scheduler.now + 2 * SETTLE);
  users.end();
  await scheduler.runUntil(scheduler.now + 3 * SETTLE);
  violations.push(...administrator.givenUp);
  violations.push(...controllers.failures.map((failure) => `the controllers failed: ${failure}`));
  if (administrator.phase === "rolled-back") violations.push(...problemsAfterReturn(api, users));
  else violations.push(...(await problemsAfterUpgrade(api, users, late)), ...unlikeUndisturbed(api, wanted.after));
  return {
    violations,
    steps: scheduler.steps,
    trace: JSON.stringify([scheduler.steps, administrator.history, [...users.assigned]]),
  };
}

async function problemsAfterUpgrade(
  api: SimulatedApi,
  users: AddressUsers,
  late: LateAdd | undefined,
): Promise<readonly string[]> {
  return [
    ...(isUnlocked(api, "present") ? [] : ["the present storage is locked at the end"]),
    ...(await users.problems()),
    ...(late?.problems() ?? []),
    ...(users.assigned.size > 0 ? [] : ["no pod has got an address"]),
  ];
}

function unlikeUndisturbed(api: SimulatedApi, wanted: Contents): readonly string[] {
  const differing = differences(wanted, contentsOf(api)).filter((line) => !line.includes(INFORMATIONS.former));
  return differing.map((line) => `not as undisturbed: ${line}`);
}

function problemsAfterReturn(api: SimulatedApi, users: AddressUsers): readonly string[] {
  return [
    ...(isUnlocked(api, "former") ? [] : ["the former storage is locked after the rollback"]),
    ...[...users.assigned].map(([handle, address]) => `${address} of ${handle} was deleted by the rollback`),
  ];
}

async function upgradeWithTrouble(stage: Stage, late: LateAdd | undefined): Promise<void> {
  const { api, scheduler, orchestrator, administrator, random, violations } = stage;
  const limits = ["--lock-time=30s", "--stall-limit=2m", "--node-limit=40s"];
  const planned = await administrator.succeed("upgrade", "plan", ...limits, ...random.pick(PACES));
  if (planned.code !== 0) violations.push(`there is no plan: ${planned.stderr}`);
  const node = random.pick(NODES);
  scheduler.after(random.below(LATEST_HALT), () => orchestrator.halt(node, random.pick(["down", "stalled"])));
  if (random.chance(0.6)) scheduler.after(random.below(LATEST_HAND), () => unlockByHand(stage));
  if (random.chance(0.3)) await interrupted(stage);
  if (random.chance(GOING_BACK) && ["none", "pending"].includes(administrator.stateOf("unlock"))) {
    await goBack(stage, node);
    if (administrator.phase === "rolled-back") return;
  }
  let ended = await administrator.succeed("upgrade", "apply");
  if (late?.isNamedIn(ended.stderr)) {
    late.deletePod();
    ended = await administrator.succeed("upgrade", "apply");
  }
  if (!isUnlocked(api, "present")) violations.push(`node ${node} holds the lock: ${ended.stderr}`);
  // Because of its agent, or of a pod of the controllers.
  const isNamed = [`Node ${node}: `, `on node ${node}: `].some((text) => ended.stderr.includes(text));
  if (ended.code !== 0 && !isNamed) {
    violations.push(`upgrade apply does not name node ${node}: ${ended.stderr}`);
  }
  await scheduler.runUntil(scheduler.now + SETTLE);
  orchestrator.resume(node);
  for (let count = 0; count < MOST_ATTEMPTS && administrator.phase !== "complete"; count++) {
    const again = await administrator.succeed("upgrade", "apply");
    if (again.code !== 0) violations.push(`upgrade apply failed although node ${node} is back: ${again.stderr}`);
  }
}

/** The tool is killed when some nodes are updated; a colleague unlocks before or during the rollback. Nothing is decided if it is too late for that. */
async function goBack(stage: Stage, node: string): Promise<void> {
  const { scheduler, orchestrator, administrator, random, violations } = stage;
  await administrator.killed(random.below(LATEST_TURN), "upgrade", "apply");
  if (random.chance(0.5)) unlockByHand(stage);
  await scheduler.runUntil(scheduler.now + SETTLE);
  if (administrator.phase !== "running" || administrator.stateOf("unlock") !== "pending") return;
  orchestrator.resume(node);
  scheduler.after(random.below(LATEST_HAND_BACK), () => unlockByHand(stage));
  const isBack = () => administrator.phase === "rolled-back";
  for (let count = 0; count < MOST_ATTEMPTS && !isBack(); count++) {
    const ended = await administrator.succeed("upgrade", "rollback", "--yes");
    if (ended.code === 0) continue;
    if (ended.stderr.includes("continue it with upgrade apply")) return;
    violations.push(`upgrade rollback failed although node ${node} is back: ${ended.stderr}`);
  }
}

/** Whatever has happened to the tool is over afterwards. */
async function interrupted({ administrator, scheduler }: Stage): Promise<void> {
  await administrator.attempt("upgrade", "apply");
  administrator.calm();
  await scheduler.runUntil(scheduler.now + SETTLE);
  await administrator.untilIdle();
}

const PACES: readonly (readonly string[])[] = [[], ["--max-unavailable=1"], ["--max-unavailable=100%"]];

/** Sometimes only for a moment. After the end of the lock, only the former storage is locked. */
function unlockByHand(stage: Stage): void {
  const { api, scheduler, administrator, random } = stage;
  const isLocked = administrator.stateOf("storage") === "done" && administrator.stateOf("unlock") === "pending";
  const isNodeLeft = administrator.stateOf("remaining-nodes") === "running";
  if (!isLocked && !isNodeLeft) return;
  const storage = isLocked ? random.pick(["present", "former"] as const) : "former";
  const step = isLocked ? "rollout" : "remaining-nodes";
  const isGuarded = () => administrator.stateOf(step) === "running" && administrator.isAtWork;
  const set = (datastoreReady: boolean) => api.patch(INFORMATIONS[storage], { spec: { datastoreReady } });
  const wasGuarded = isGuarded();
  stage.excusedUntil = scheduler.now + NOTICED_WITHIN;
  set(true);
  if (isLocked && random.chance(0.3)) {
    scheduler.after(random.below(NOTICED_WITHIN), () => administrator.stateOf("unlock") === "pending" && set(false));
  }
  scheduler.after(NOTICED_WITHIN - 1, () => {
    if (!wasGuarded || !isGuarded() || !isUnlocked(api, storage)) return;
    stage.violations.push(`the ${storage} storage was unlocked by hand, and is not locked again`);
  });
}

function lookAtLocks(stage: Stage): void {
  const { api, scheduler, administrator, violations } = stage;
  const look = () => {
    const areBoth = isUnlocked(api, "present") && isUnlocked(api, "former");
    const isExcused = scheduler.now <= stage.excusedUntil;
    // While no run has the Lease, nobody can notice it; the next run does.
    const isUnattended = administrator.phase !== "complete" && !administrator.isAtWork;
    if (areBoth && isExcused && isUnattended) stage.excusedUntil = scheduler.now + NOTICED_WITHIN;
    if (areBoth && !isExcused) {
      violations.push(`both storages are unlocked after ${scheduler.now / 1_000} s`);
      return;
    }
    scheduler.after(LOOK, look);
  };
  look();
}
