/**
 * Pods of StatefulSets, whose addresses are kept, and other pods contend for few addresses that rest by a setting. Users
 * delete, scale, rename and recreate the StatefulSets, pods are deleted by force, nodes are cut off, switched off and
 * return, and no two machines agree on the time. The allocator, the searches of the nodes and the collector of the
 * controllers are the product's.
 */
import { findProblems } from "../../../src/ipam/invariants.ts";
import { resourceKey } from "../../../src/model/keys.ts";
import { nodeChange, poolChange, seed as seedRecords } from "../../../test/support/ipam.ts";
import { DATASTORES, type DatastoreKind, type DatastoreServer, startDatastore } from "../../datastore/servers.ts";
import { SimulatedApi } from "../../datastore/simulated-api.ts";
import { FaultyNetwork } from "../../faults/network.ts";
import { type IpamState, ipamReader } from "../../judge/ipam-state.ts";
import { KeptAddressJudge } from "../../judge/kept-addresses.ts";
import { Random } from "../../schedule/random.ts";
import { Scheduler } from "../../schedule/scheduler.ts";
import type { ScenarioOutcome } from "../controllers-scenario.ts";
import { KEEP_SECONDS, keepHandleOf, Runtime } from "./runtime.ts";
import { CONTROLLERS, GRACE_MILLISECONDS, SimulatedCollector } from "./simulated-collector.ts";
import { SETS, Workloads } from "./workloads.ts";

const NODES = ["node-1", "node-2", "node-3"];
const HOUR = 3_600_000;
const CLOCK_ERRORS = new Map([
  ["node-2", 5 * HOUR],
  ["node-3", -7 * HOUR],
  [CONTROLLERS, 2 * HOUR],
]);
const COOLDOWN_SECONDS = 10 * 60;
const OPERATIONS = 80;
const STEP_MILLISECONDS = 5_000;
const SEARCH_MILLISECONDS = 3 * 60_000;
/** What all waits for something: rests, searches for leaks, grace periods, the brake on removals. */
const UNTIL_REST = 40 * 60_000;

export interface KeptOutcome extends ScenarioOutcome {
  readonly assigned: number;
  /** How often a pod got back what had waited for it. */
  readonly again: number;
  /** Addresses that were freed since nobody will come for them. */
  readonly freed: number;
}

/** The datastores take turns. */
export function runKeptScenario(seed: number): Promise<KeptOutcome> {
  return new KeptScenario(seed, DATASTORES[seed % DATASTORES.length] ?? "etcd").run();
}

class KeptScenario {
  private readonly scheduler: Scheduler;
  private readonly random: Random;
  private readonly network: FaultyNetwork;
  private readonly datastore: DatastoreServer;
  private readonly workloads: Workloads;
  private readonly runtime: Runtime;
  private readonly collector: SimulatedCollector;
  private readonly violations = new Set<string>();
  private readonly readState = ipamReader();
  private readonly judge = new KeptAddressJudge({
    keepMilliseconds: KEEP_SECONDS * 1_000,
    graceMilliseconds: GRACE_MILLISECONDS,
    restOf: (address) => (address.includes(":") ? 0 : COOLDOWN_SECONDS * 1_000),
  });
  private checked: IpamState | undefined;
  private trace = 0;

  constructor(
    seed: number,
    private readonly kind: DatastoreKind,
  ) {
    const random = new Random(seed);
    const scheduler = new Scheduler(random.fork("order"));
    const network = new FaultyNetwork(scheduler, random.fork("network"));
    const datastore = startDatastore(kind, network);
    const workloads = new Workloads(NODES, random.fork("workloads"));
    scheduler.onEvent = (time, label) => {
      this.trace = Bun.hash.murmur32v3(`${time} ${label} ${datastore.records.revision}`, this.trace);
    };
    const means = { scheduler, network, datastore, workloads, clockErrors: CLOCK_ERRORS };
    this.runtime = new Runtime({ ...means, random: random.fork("runtime") });
    this.collector = new SimulatedCollector({
      ...{ ...means, random: random.fork("collector"), isEtcd: kind !== "orchestrator" },
      onCrash: (what) => this.violations.add(what),
    });
    this.random = random.fork("choices");

    [this.scheduler, this.network, this.datastore, this.workloads] = [scheduler, network, datastore, workloads];
  }

  async run(): Promise<KeptOutcome> {
    const { random, workloads, collector, runtime } = this;
    await seedRecords(
      this.datastore.user,
      poolChange("blue", "10.0.0.0/28", { blockSize: 30, cooldownSeconds: COOLDOWN_SECONDS }),
      poolChange("six", "fd00::/124", { blockSize: 126 }),
    );
    for (const node of NODES) await this.createNode(node);
    for (const set of SETS) workloads.apply(set);
    await collector.catchUp();
    collector.start();
    this.repeat(STEP_MILLISECONDS, () => this.step());
    this.repeat(SEARCH_MILLISECONDS, () => this.search());
    for (let count = 0; count < OPERATIONS; count++) {
      await this.pass(random.below(60_000));
      if (random.chance(0.7)) await collector.catchUp();
      await this.act();
    }
    await this.settle();
    if (!workloads.areReady)
      this.violations.add(`not every pod is ready at rest: ${runtime.latestFailure} (${this.kind})`);
    workloads.sets.clear();
    await this.settle();
    const left = [...this.state.holdings.values()].map(({ address, handle }) => `${address} of ${handle}`);
    if (left.length > 0) this.violations.add(`kept or leaked at rest, without any pod: ${left.join(", ")}`);
    const { assigned, again } = runtime;
    const outcome = { violations: [...this.violations], steps: this.scheduler.steps, trace: String(this.trace) };
    return { ...outcome, assigned, again, freed: collector.freed };
  }

  private get state(): IpamState {
    return this.readState(this.datastore.records);
  }

  private pass(milliseconds: number): Promise<void> {
    const { scheduler } = this;
    return scheduler.runUntil(scheduler.now + milliseconds, () => this.check());
  }

  private repeat(milliseconds: number, work: () => void): void {
    this.scheduler.after(milliseconds, () => {
      work();
      this.repeat(milliseconds, work);
    });
  }

  private step(): void {
    this.workloads.step(this.scheduler.now);
    this.runtime.step();
    this.collector.start();
  }

  private search(): void {
    for (const node of this.workloads.nodes) this.runtime.search(node);
  }

  /** Nothing fails any more, all nodes are there, and what has to come about does. */
  private async settle(): Promise<void> {
    const { workloads, runtime, collector } = this;
    this.network.healAll();
    runtime.isDisturbed = false;
    workloads.goOn();
    collector.kill();
    for (const node of NODES) await this.returnNode(node);
    for (let passed = 0; passed < UNTIL_REST; passed += GRACE_MILLISECONDS / 4) {
      await this.pass(GRACE_MILLISECONDS / 4);
      await collector.catchUp();
    }
  }

  private async act(): Promise<void> {
    const { random, network, datastore, workloads, runtime, scheduler, collector } = this;
    const { server } = datastore;
    const [set, node] = [random.pick(SETS), random.pick(NODES)];
    const acts: readonly (readonly [weight: number, act: () => unknown])[] = [
      [8, () => workloads.apply(set)],
      [5, () => workloads.sets.delete(set)],
      [6, () => runtime.restartSome()],
      [6, () => this.deletePod()],
      [3, () => workloads.stop(scheduler.now + random.below(30 * 60_000))],
      [2, () => workloads.goOn()],
      [2, () => network.cut(node)],
      [6, () => network.healAll()],
      [3, () => network.disturb(random, 0.2)],
      [2, () => this.loseNode(node)],
      [4, () => this.returnNode(node)],
      [1, () => server.restart(random.below(20_000))],
      [1, () => server.hang(random.below(40_000))],
      [1, () => server.compact()],
      [2, () => collector.kill()],
      [2, () => collector.killSoon(random.below(20))],
    ];
    let left = random.below(acts.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, act] of acts) {
      if (left < weight) return void (await act());
      left -= weight;
    }
  }

  /** A user deletes it; some by force, though its container runs on. */
  private deletePod(): void {
    const pods = [...this.workloads.pods.values()];
    if (pods.length === 0) return;
    const pod = this.random.pick(pods);
    if (this.random.chance(0.5)) this.workloads.pods.delete(pod.key);
    else pod.isEnding = true;
  }

  /** The administrator deletes a node that is switched off. */
  private async loseNode(node: string): Promise<void> {
    const { workloads, runtime, datastore } = this;
    if (!workloads.nodes.has(node) || workloads.nodes.size === 1) return;
    runtime.switchOff(node);
    workloads.deleteNode(node);
    if (datastore.server instanceof SimulatedApi) return datastore.server.remove(`/api/v1/nodes/${node}`);
    const key = resourceKey("nodes", { name: node });
    const entry = (await datastore.user.read([{ kind: "key", key }])).answers[0]?.[0];
    if (entry !== undefined) await datastore.user.commit([{ kind: "delete", key, revision: entry.revision }]);
  }

  private async returnNode(node: string): Promise<void> {
    if (this.workloads.nodes.has(node)) return;
    this.workloads.nodes.add(node);
    await this.createNode(node);
  }

  /** On the API it is the kubelet that does. */
  private async createNode(name: string): Promise<void> {
    const { server, user } = this.datastore;
    if (server instanceof SimulatedApi) server.create("/api/v1/nodes", { kind: "Node", metadata: { name } });
    else await seedRecords(user, nodeChange(name));
  }

  private check(): void {
    const { state, workloads, scheduler } = this;
    if (state !== this.checked) {
      const corrupt = findProblems(state).filter(({ severity }) => severity === "corrupt");
      for (const { message } of corrupt) this.violations.add(`${scheduler.now}: ${message}`);
    }
    this.checked = state;
    const keyOf = (handle: string) => PODS_BY_HANDLE.get(handle) ?? "";
    const found = this.judge.check({
      ...{ now: scheduler.now, state, containers: this.runtime.told },
      isWanted: (handle) => workloads.hasOwner(keyOf(handle)) || workloads.pods.has(keyOf(handle)),
      isComing: (handle) => workloads.pods.get(keyOf(handle))?.addresses.length === 0,
    });
    for (const each of found) this.violations.add(`${each} (${this.kind})`);
  }
}

const PODS_BY_HANDLE = new Map(
  SETS.flatMap((set) => [0, 1, 2, 3].map((ordinal) => `${set}-${ordinal}`)).map((key) => [keepHandleOf(key), key]),
);
