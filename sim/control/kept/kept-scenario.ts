/**
 * Pods whose addresses are kept, pods of two Deployments that take theirs from one list, and other pods contend for few
 * addresses that rest by a setting. Users delete, scale, rename and recreate the workloads, pods are deleted by force, nodes
 * are cut off, switched off and return, and no two machines agree on the time. In some seeds no orchestrator is known, and
 * the hosts alone free what has waited long enough. The allocator, the searches of the nodes and the collector of the
 * controllers are the product's.
 */
import { findProblems } from "../../../src/ipam/invariants.ts";
import { NAMESPACE_ATTRIBUTE } from "../../../src/model/ipam-block.ts";
import { keepHandle } from "../../../src/model/kept-address.ts";
import { resourceKey } from "../../../src/model/keys.ts";
import { STATEFUL_SET } from "../../../src/model/stateful-set.ts";
import { listChange, nodeChange, poolChange, seed as seedRecords } from "../../../test/support/ipam.ts";
import { DATASTORES, type DatastoreKind, type DatastoreServer, startDatastore } from "../../datastore/servers.ts";
import { SimulatedApi } from "../../datastore/simulated-api.ts";
import { FaultyNetwork } from "../../faults/network.ts";
import { type Holding, type IpamState, ipamReader } from "../../judge/ipam-state.ts";
import { KeptAddressJudge } from "../../judge/kept-addresses.ts";
import { Random } from "../../schedule/random.ts";
import { Scheduler } from "../../schedule/scheduler.ts";
import type { ScenarioOutcome } from "../controllers-scenario.ts";
import { NETWORK, Runtime } from "./runtime.ts";
import { CONTROLLERS, GRACE_MILLISECONDS, SimulatedCollector } from "./simulated-collector.ts";
import { KEEP_SECONDS, KEEPING_POOL, LIST, planOf, WORKLOADS, Workloads } from "./workloads.ts";

const NODES = ["node-1", "node-2", "node-3"];
const HOUR = 3_600_000;
const CLOCK_ERRORS = new Map([
  ["node-2", 5 * HOUR],
  ["node-3", -7 * HOUR],
  [CONTROLLERS, 2 * HOUR],
]);
const COOLDOWN_SECONDS = 10 * 60;
/** More pods ask for them. Nobody gets them by chance. */
const LISTED = ["10.0.2.1", "10.0.2.5", "10.0.2.2"];
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
    restOf,
  });
  private readonly hasControllers: boolean;
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
    const hasControllers = kind === "orchestrator" || random.fork("controllers").chance(0.7);
    const means = { scheduler, network, datastore, workloads, hasControllers, clockErrors: CLOCK_ERRORS };
    this.runtime = new Runtime({ ...means, random: random.fork("runtime") });
    this.collector = new SimulatedCollector({
      ...{ ...means, random: random.fork("collector"), isEtcd: kind !== "orchestrator" },
      onCrash: (what) => this.violations.add(what),
    });
    this.random = random.fork("choices");
    this.hasControllers = hasControllers;

    [this.scheduler, this.network, this.datastore, this.workloads] = [scheduler, network, datastore, workloads];
  }

  async run(): Promise<KeptOutcome> {
    const { random, workloads, collector, runtime } = this;
    const some = { cooldownSeconds: COOLDOWN_SECONDS };
    await seedRecords(
      this.datastore.user,
      poolChange("blue", "10.0.0.0/28", { ...some, blockSize: 30 }),
      poolChange(KEEPING_POOL, "10.0.1.0/28", {
        ...{ ...some, blockSize: 30, nodeSelector: "!all()" },
        ...{ keepAddresses: true, keepFor: `${KEEP_SECONDS}s` },
      }),
      poolChange("listed", "10.0.2.0/29", { ...some, blockSize: 30, nodeSelector: "!all()" }),
      poolChange("six", "fd00::/124", { blockSize: 126 }),
      listChange(LIST, LISTED),
    );
    for (const node of NODES) await this.createNode(node);
    for (const workload of WORKLOADS.keys()) workloads.apply(workload);
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
    this.checkReady();
    // Who waits for one of its addresses gets it.
    workloads.sizes.delete(random.pick(LISTING));
    await this.settle();
    this.checkReady();
    workloads.sizes.clear();
    await this.settle();
    const left = [...this.state.holdings.values()].map(({ address, handle }) => `${address} of ${handle}`);
    if (left.length > 0) this.violations.add(`kept or leaked at rest, without any pod: ${left.join(", ")}`);
    const { assigned, again } = runtime;
    const outcome = { violations: [...this.violations], steps: this.scheduler.steps, trace: String(this.trace) };
    return { ...outcome, assigned, again, freed: collector.freed };
  }

  private checkReady(): void {
    const { workloads, runtime, kind } = this;
    const isListing = (workload: string) => LISTING.includes(workload);
    const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);
    const wanted = Math.min(LISTED.length, sum(LISTING.map((each) => workloads.wanted(each))));
    const lacking = [
      ...[...WORKLOADS.keys()].filter((each) => !isListing(each) && workloads.ready(each) !== workloads.wanted(each)),
      ...(sum(LISTING.map((each) => workloads.ready(each))) < wanted ? LISTING : []),
    ];
    if (lacking.length === 0) return;
    this.violations.add(`not every pod of ${lacking.join(", ")} is ready at rest: ${runtime.latestFailure} (${kind})`);
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
    const [workload, node] = [random.pick([...WORKLOADS.keys()]), random.pick(NODES)];
    const acts: readonly (readonly [weight: number, act: () => unknown])[] = [
      [8, () => workloads.apply(workload)],
      [5, () => workloads.sizes.delete(workload)],
      [6, () => runtime.restartSome()],
      [10, () => this.deletePod()],
      [3, () => workloads.stop(scheduler.now + random.below(20 * 60_000))],
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
    // Nobody would free what a node that never returns has.
    if (!this.hasControllers) return;
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
    const found = this.judge.check({
      ...{ now: scheduler.now, state, containers: this.runtime.told },
      isWanted: (handle) => {
        if (handle === MACHINE_HANDLE && this.hasControllers) return workloads.exists(MACHINE);
        const key = STATEFUL_PODS.get(handle);
        return key === undefined || !this.hasControllers || workloads.hasOwner(key) || workloads.pods.has(key);
      },
      isComing: (handle) => {
        if (!this.hasControllers) return false;
        if (handle === MACHINE_HANDLE) return workloads.isComing(MACHINE);
        return workloads.pods.get(STATEFUL_PODS.get(handle) ?? "")?.addresses.length === 0;
      },
    });
    for (const each of found) this.violations.add(`${each} (${this.kind})`);
  }
}

const LISTING = [...WORKLOADS.keys()].filter((workload) => planOf(workload).requests.list !== undefined);

/** The pods that addresses are kept for until their StatefulSet is gone, by the handle of these. */
const STATEFUL_PODS = new Map(
  [...WORKLOADS.keys()]
    .filter((workload) => planOf(workload).kind === STATEFUL_SET)
    .flatMap((workload) => [0, 1, 2, 3].map((ordinal) => `${workload}-${ordinal}`))
    .map((key) => {
      const [namespace = "", name = ""] = key.split("/");
      return [keepHandle({ network: NETWORK, namespace, identity: `pod/${name}` }), key];
    }),
);

const MACHINE = "shop/desktop";
const MACHINE_HANDLE = keepHandle({ network: NETWORK, namespace: "shop", identity: "vm/desktop" });

/** Who asks for an address by name gets it back at once in the namespace that released it. */
function restOf(address: string, former: Holding, present: Holding): number {
  const isListed = LISTED.includes(address);
  const isOwn = isListed && former.secondary[NAMESPACE_ATTRIBUTE] === present.secondary[NAMESPACE_ATTRIBUTE];
  return isOwn || address.includes(":") ? 0 : COOLDOWN_SECONDS * 1_000;
}
