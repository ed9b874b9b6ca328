/**
 * Measures controllers on an etcd of their own: every revision of it is a write of theirs.
 *
 *   start ──> first sync: until the last write ──> idle ──> policies created one by one ──> started again with nothing to do
 */
import { DYING_WITH_PARENT } from "../../test/support/etcd.ts";
import type { ApiServer } from "../../test/support/kube-apiserver.ts";
import type { KubeObjects } from "../../test/support/kube-objects.ts";
import { policyObject } from "./controllers-load.ts";
import type { ControllersSystem } from "./controllers-systems.ts";
import { treeCpuMilliseconds, treeMemory } from "./process-tree.ts";

export interface ControllersPlan {
  readonly server: ApiServer;
  readonly objects: KubeObjects;
  readonly endpoint: string;
  readonly policies: number;
  readonly rounds: number;
  readonly idleSeconds: number;
}

export interface ControllersResult {
  readonly name: string;
  readonly syncMilliseconds: number;
  readonly syncCpuMilliseconds: number;
  readonly syncWrites: number;
  readonly memoryBytes: number;
  /** The share of one core. */
  readonly idle: number;
  readonly idleWrites: Writes;
  /** From the response of the API to the record in etcd. */
  readonly copyMilliseconds: readonly number[];
  /** Started again when nothing has to be done, with a full reconcile each second. */
  readonly restartWrites: Writes;
}

/** Without those of the Lease. */
export interface Writes {
  readonly datastore: number;
  readonly api: readonly string[];
}

const QUIET_MILLISECONDS = 5_000;
const SETTLING_MILLISECONDS = 15_000;
const LIMIT_MILLISECONDS = 900_000;
const COPY_LIMIT_MILLISECONDS = 30_000;
const USER_AGENTS = /^(vendor-controllers|kube-controllers)/;

export async function measureControllers(system: ControllersSystem, plan: ControllersPlan): Promise<ControllersResult> {
  const { endpoint, policies, objects, rounds } = plan;
  const before = await revisionOf(endpoint);
  const started = performance.now();
  const controllers = start(system, plan);
  const synced = await untilSynced(system, plan);
  const cpu = treeCpuMilliseconds(controllers.pid);
  const memoryBytes = treeMemory(controllers.pid).residentBytes;
  const idleStart = treeCpuMilliseconds(controllers.pid);
  const idleWrites = await writesWithin(plan.idleSeconds, plan);
  const idle = (treeCpuMilliseconds(controllers.pid) - idleStart) / (plan.idleSeconds * 1_000);
  const copyMilliseconds: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const object = policyObject(policies + round, "team-0");
    const { namespace = "", name } = object.metadata;
    await objects.apply("NetworkPolicy", object);
    const applied = performance.now();
    const key = system.policyKey(namespace, name);
    await untilCount(endpoint, key, 1);
    copyMilliseconds.push(performance.now() - applied);
    await objects.remove("NetworkPolicy", { namespace, name });
    await untilCount(endpoint, key, 0);
  }
  controllers.kill("SIGTERM");
  await controllers.exited;
  const again = start(system, plan, { RECONCILER_PERIOD: "1s" });
  // It writes its new settings to its status, and compares everything with the datastore.
  await Bun.sleep(SETTLING_MILLISECONDS);
  const restartWrites = await writesWithin(plan.idleSeconds, plan);
  again.kill("SIGTERM");
  await again.exited;
  return {
    name: system.name,
    syncMilliseconds: synced.at - started,
    syncCpuMilliseconds: cpu,
    syncWrites: synced.revision - before,
    ...{ memoryBytes, idle, idleWrites, copyMilliseconds, restartWrites },
  };
}

function start(
  { command, environment }: ControllersSystem,
  { server, endpoint }: ControllersPlan,
  more: Readonly<Record<string, string>> = {},
) {
  return Bun.spawn([...DYING_WITH_PARENT, ...command], {
    env: {
      ...{ PATH: process.env["PATH"] ?? "", KUBECONFIG: server.adminKubeconfig },
      ...{ DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: endpoint, ...environment, ...more },
    },
    stdio: ["ignore", "ignore", "ignore"],
  });
}

/** When the last write was, once all policies are there and nothing was written for some seconds. */
async function untilSynced({ name, policiesPrefix }: ControllersSystem, { endpoint, policies }: ControllersPlan) {
  const end = performance.now() + LIMIT_MILLISECONDS;
  let last = { revision: await revisionOf(endpoint), at: performance.now() };
  for (;;) {
    await Bun.sleep(20);
    const revision = await revisionOf(endpoint);
    if (revision !== last.revision) last = { revision, at: performance.now() };
    const isQuiet = performance.now() - last.at > QUIET_MILLISECONDS;
    if (isQuiet && (await countOf(endpoint, policiesPrefix)) >= policies) return last;
    if (performance.now() > end) throw new Error(`${name} does not end its first sync`);
  }
}

async function untilCount(endpoint: string, key: string, count: number): Promise<void> {
  const end = performance.now() + COPY_LIMIT_MILLISECONDS;
  while ((await countOf(endpoint, key, "key")) !== count) {
    if (performance.now() > end) throw new Error(`${key} was not ${count === 0 ? "deleted" : "written"}`);
    await Bun.sleep(1);
  }
}

async function writesWithin(seconds: number, { server, endpoint }: ControllersPlan): Promise<Writes> {
  const audit = server.startAudit();
  const before = await revisionOf(endpoint);
  await Bun.sleep(seconds * 1_000);
  const requests = audit.requests().filter(({ userAgent }) => USER_AGENTS.test(userAgent));
  const writes = requests.filter(
    ({ verb, resource }) => !["get", "list", "watch"].includes(verb) && resource !== "leases",
  );
  const api = writes.map(({ verb, resource }) => `${verb} ${resource}`);
  return { datastore: (await revisionOf(endpoint)) - before, api };
}

async function revisionOf(endpoint: string): Promise<number> {
  const { header } = await ask<{ header: { revision: string } }>(endpoint, "maintenance/status", {});
  return Number(header.revision);
}

async function countOf(endpoint: string, key: string, kind: "key" | "prefix" = "prefix"): Promise<number> {
  const range = kind === "key" ? {} : { range_end: btoa(`${key}\xff`) };
  const found = await ask<{ count?: string }>(endpoint, "kv/range", { key: btoa(key), ...range, count_only: true });
  return Number(found.count ?? 0);
}

async function ask<Reply>(endpoint: string, path: string, body: object): Promise<Reply> {
  const response = await fetch(`${endpoint}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd refused "${path}": ${await response.text()}`);
  return (await response.json()) as Reply;
}
