/** Starts a node agent, waits until it enforces its load, and measures what changes and idleness cost. */
import { readFileSync } from "node:fs";
import { localEndpoint, policyOf, remoteEndpoint } from "../../test/support/policy-load.ts";
import { deleteRecord, putRecord } from "./etcd-records.ts";
import type { IsEnforced, LoadChange, PolicySystem } from "./policy-system.ts";
import { type TreeMemory, treeCpuMilliseconds, treeMemory } from "./process-tree.ts";

export interface Start {
  readonly wallMilliseconds: number;
  readonly cpuMilliseconds: number;
}

export interface RunningSystem extends AsyncDisposable {
  readonly pid: number;
  readonly start: Start;
}

export interface ChangeTimes {
  readonly wallMilliseconds: readonly number[];
  readonly cpuMilliseconds: number;
}

/** Of the daemon that runs now. */
const LOG = "/run/vt/policy.log";
const LONGEST_START = 30_000;
const LONGEST_CHANGE = 20_000;
const START_INTERVAL = 10;
const CHANGE_INTERVAL = 0.5;
/** Changes do not follow each other so closely that they are merged. */
const PAUSE_MILLISECONDS = 100;
/** Numbers of resources that the load does not have. */
const FIRST_NEW = 20_000;

export async function startSystem(system: PolicySystem): Promise<RunningSystem> {
  const { command, environment = {} } = system.daemon;
  const started = performance.now();
  const log = Bun.file(LOG);
  const child = Bun.spawn([...command], { env: { ...environment }, stdin: "ignore", stdout: log, stderr: log });
  const isStarted = () => child.exitCode !== null || system.isLoaded();
  if (!(await isTrueWithin(LONGEST_START, isStarted, START_INTERVAL)) || child.exitCode !== null) {
    child.kill("SIGKILL");
    throw new Error(`${system.name} does not enforce its load:\n${readFileSync(LOG, "utf8").slice(0, 2_000)}`);
  }
  const wallMilliseconds = performance.now() - started;
  const start = { wallMilliseconds, cpuMilliseconds: treeCpuMilliseconds(child.pid) };
  system.prepare();
  return {
    pid: child.pid,
    start,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      // Its children end with it, but not at once.
      await Bun.sleep(PAUSE_MILLISECONDS);
      system.clear();
    },
  };
}

export interface MeasurementPlan {
  readonly rounds: number;
  readonly idleSeconds: number;
  readonly locals: number;
  readonly policies: number;
  readonly etcdEndpoint: string;
}

export interface WorkResult {
  readonly memory: TreeMemory;
  readonly memoryAfterwards: TreeMemory;
  /** The share of one core, after the changes: a daemon compiles its code while it works. */
  readonly idle: number;
  readonly changes: Readonly<Record<LoadChange["kind"], ChangeTimes>>;
}

/** Of changes that take Felix most of a second. */
const SLOW_ROUNDS = 40;
const SETTLING_MILLISECONDS = 5_000;

/** Starts it once more. */
export async function measureSystem(system: PolicySystem, plan: MeasurementPlan): Promise<WorkResult> {
  await using running = await startSystem(system);
  const { pid } = running;
  await Bun.sleep(SETTLING_MILLISECONDS);
  const memory = treeMemory(pid);
  const time = async (kind: LoadChange["kind"]) => {
    const rounds = kind === "remote" ? plan.rounds : Math.min(plan.rounds, SLOW_ROUNDS);
    const times = await timeChanges(system, pid, { ...plan, rounds, kind });
    await undoChanges(system, { ...plan, rounds, kind });
    await Bun.sleep(SETTLING_MILLISECONDS);
    return times;
  };
  const changes = { remote: await time("remote"), policy: await time("policy"), local: await time("local") };
  const memoryAfterwards = treeMemory(pid);
  return { memory, changes, memoryAfterwards, idle: await idleShare(pid, plan.idleSeconds) };
}

async function idleShare(pid: number, seconds: number): Promise<number> {
  const before = treeCpuMilliseconds(pid);
  await Bun.sleep(seconds * 1000);
  return (treeCpuMilliseconds(pid) - before) / (seconds * 1000);
}

interface ChangePlan extends Pick<MeasurementPlan, "rounds" | "locals" | "policies" | "etcdEndpoint"> {
  readonly kind: LoadChange["kind"];
}

/** The time of each change from sending it to etcd until the kernel enforces it. */
async function timeChanges(system: PolicySystem, pid: number, plan: ChangePlan): Promise<ChangeTimes> {
  const wallMilliseconds: number[] = [];
  const cpuBefore = treeCpuMilliseconds(pid);
  for (let round = 0; round < plan.rounds; round++) {
    const change = changeOf(plan, round);
    const isEnforced = system.observe(change);
    await Bun.sleep(PAUSE_MILLISECONDS);
    wallMilliseconds.push(await timeOf(() => putRecord(plan.etcdEndpoint, system.record(change.after)), isEnforced));
  }
  await Bun.sleep(PAUSE_MILLISECONDS);
  return { wallMilliseconds, cpuMilliseconds: (treeCpuMilliseconds(pid) - cpuBefore) / plan.rounds };
}

/** Undoes the changes, so that the next system starts with the same load. */
async function undoChanges(system: PolicySystem, plan: ChangePlan): Promise<void> {
  for (let round = 0; round < plan.rounds; round++) {
    const change = changeOf(plan, round);
    if (change.kind === "policy") await putRecord(plan.etcdEndpoint, system.record(change.before));
    else await deleteRecord(plan.etcdEndpoint, system.record(change.after).key);
  }
}

/** Each concerns another application. */
function changeOf({ kind, policies, locals }: ChangePlan, round: number): LoadChange {
  switch (kind) {
    case "remote":
      return { kind, after: remoteEndpoint(FIRST_NEW + round, round), like: remoteEndpoint(round, round) };
    case "local":
      // The links of these exist already.
      return { kind, after: localEndpoint(locals + round, round) };
    case "policy":
      return { kind, before: policyOf(round, { policies }), after: policyOf(round, { policies, port: 81 }) };
  }
}

async function timeOf(write: () => Promise<void>, isEnforced: IsEnforced): Promise<number> {
  const started = performance.now();
  const writing = write();
  const isDone = await isTrueWithin(LONGEST_CHANGE, isEnforced, CHANGE_INTERVAL);
  const milliseconds = performance.now() - started;
  if (!isDone) throw new Error("A change is not enforced");
  await writing;
  return milliseconds;
}

const SLEEPER = new Int32Array(new SharedArrayBuffer(4));

/** Sleeps in between, because the measured system has the same cores. */
async function isTrueWithin(limit: number, condition: () => boolean, interval: number): Promise<boolean> {
  const end = performance.now() + limit;
  while (!condition()) {
    if (performance.now() > end) return false;
    // Timers of the event loop are not that fine.
    if (interval < 1) Atomics.wait(SLEEPER, 0, 0, interval);
    else await Bun.sleep(interval);
  }
  return true;
}
