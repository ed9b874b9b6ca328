/**
 * A simulated cluster, put together: the servers, the network to them, the machines with their kubelets, the controllers,
 * and the truth that the invariants look at.
 */
import type { Atomicity } from "../../src/datastore/datastore.ts";
import { PRODUCT_API } from "../../src/identity.ts";
import { parsePrefix, prefixesOverlap } from "../../src/ip/prefix.ts";
import { POOL } from "../../src/model/kinds.ts";
import { readStoredPool } from "../../src/model/stored-resources.ts";
import { poolChange, seed } from "../../test/support/ipam.ts";
import { SimulatedControllers } from "../control/simulated-controllers.ts";
import { SimulatedApi } from "../datastore/simulated-api.ts";
import { FaultyNetwork } from "../faults/network.ts";
import type { World, WorldNode } from "../judge/invariant.ts";
import { type Records, recordsOfApi } from "../judge/records.ts";
import type { WorkCounts } from "../judge/work.ts";
import { loadModules } from "../schedule/load-modules.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import type { PoolPlan, Script } from "../script/operation.ts";
import { CONTROLLERS } from "../script/script-writer.ts";
import { ActiveFaults } from "./active-faults.ts";
import { runAdminCommand } from "./admin-tool.ts";
import { Connections } from "./connections.ts";
import { Coverage } from "./coverage.ts";
import { Machine, SHORTEST_PAUSE } from "./machine.ts";
import { Orchestrator } from "./orchestrator.ts";
import { type Servers, startServers } from "./servers.ts";
import { settingsOfCluster } from "./settings.ts";

/** After everything is healed: longer than anybody waits before releasing what looks unused. */
const STATIC_PODS_RUN_ON = 240_000;
const PRODUCT_PATH = `/apis/${PRODUCT_API.group}/${PRODUCT_API.version}`;

export class Cluster implements World {
  readonly scheduler: Scheduler;
  readonly network: FaultyNetwork;
  readonly servers: Servers;
  readonly orchestrator: Orchestrator;
  readonly controllers: ReadonlyMap<string, SimulatedControllers>;
  readonly machines = new Map<string, Machine>();
  readonly coverage = new Coverage();
  readonly faults: ActiveFaults;
  readonly records: Records;
  readonly crashes: string[] = [];
  readonly failedCalls: string[] = [];
  readonly connections: Connections;
  /** What is copied to the datastore, unless it is the API. */
  readonly asked?: Records;
  /** Copies of the controllers that use the API of another cluster. */
  private readonly misled = new Map<string, SimulatedApi>();
  private readonly random: Random;
  private machinesMade = 0;
  private commands = 0;
  private knownOn: readonly Machine[] = [];
  private knownNodes: ReadonlyMap<string, WorldNode> = new Map();

  /** `trace`: gets a line for each thing that happens, and who says it. */
  constructor(
    readonly script: Script,
    readonly trace: (who: string, line: string) => void = () => {},
  ) {
    this.random = new Random(script.seed).fork("cluster");
    this.scheduler = new Scheduler(this.random.fork("order"));
    this.faults = new ActiveFaults(this.scheduler, this.coverage);
    this.network = new FaultyNetwork(this.scheduler, this.random.fork("network"));
    this.servers = startServers(script, this.network);
    this.records = this.servers.store.records;
    if (this.servers.isEtcd) this.asked = recordsOfApi(this.servers.api);
    this.orchestrator = new Orchestrator(this.servers.api);
    const { scheduler } = this;
    this.connections = new Connections({ world: this, scheduler, trace: (line) => trace("connection", line) });
    this.controllers = new Map(CONTROLLERS.map((name) => [name, this.newControllers(name)]));
  }

  get begunWatches(): ReadonlyMap<string, number> {
    return this.servers.api.traffic.details;
  }

  get atomicity(): Atomicity {
    return this.script.datastore === "etcd" ? "all changes" : "one object";
  }

  get now(): number {
    return this.scheduler.now;
  }

  get pods() {
    return this.orchestrator.pods;
  }

  get leaders(): readonly string[] {
    const here = [...this.controllers.values()].filter(({ name }) => !this.misled.has(name));
    return here.filter(({ isLeading }) => isLeading).map(({ name }) => name);
  }

  get nodes(): ReadonlyMap<string, WorldNode> {
    const on = [...this.machines.values()].filter(({ isOn }) => isOn);
    if (on.length !== this.knownOn.length || on.some((machine, index) => machine !== this.knownOn[index])) {
      this.knownOn = on;
      this.knownNodes = new Map(on.map((machine) => [machine.name, machine.world]));
    }
    return this.knownNodes;
  }

  /** Calls with the same values until something changes that an invariant could see. */
  forEachRevision(visit: (value: unknown) => void): void {
    visit(this.records.revision);
    visit(this.servers.api.revision);
    visit(this.orchestrator.nodes.size);
    for (const machine of this.machines.values()) {
      visit(machine.name);
      visit(machine.isOn);
      machine.forEachRevision(visit);
    }
  }

  /** How often something happened since the beginning, by kind and place. */
  get work(): WorkCounts {
    const { api, store } = this.servers;
    const servers = Object.entries(api === store.server ? { api } : { api, store: store.server });
    const requests = servers.flatMap(([name, { traffic }]) =>
      Array.from(traffic.details, ([what, count]) => [`${name}: ${what}`, count] as const),
    );
    const kernels = [...this.machines.values()].flatMap(({ name, node: { host } }) => [
      [`kernel ${name}`, host.root.changes] as const,
      [`netfilter ${name}`, host.root.nftables.changes] as const,
    ]);
    return new Map([...requests, ...kernels]);
  }

  /** Whether nothing is left to do for the kubelets. */
  get isSettled(): boolean {
    return [...this.machines.values()].every(({ kubelet }) => kubelet.isSettled);
  }

  async start(): Promise<void> {
    await loadModules();
    await seed(this.servers.store.user, ...settingsOfCluster());
    this.orchestrator.applyNamespace("kube-system", {});
    for (const pool of this.script.pools) await this.applyPool(pool);
    for (const name of this.script.nodes) this.joinNode(name);
    for (const controllers of this.controllers.values()) controllers.start();
  }

  async applyPool(pool: PoolPlan): Promise<void> {
    const { name, cidr, blockSize, disabled = false, encapsulation, natOutgoing = false } = pool;
    if (this.overlapsAnother(pool)) return;
    const mode = encapsulation.endsWith("between subnets") ? "CrossSubnet" : "Always";
    const tunnel = encapsulation.startsWith("IPIP") ? ({ ipipMode: mode } as const) : ({ vxlanMode: mode } as const);
    const more = encapsulation === "none" ? {} : tunnel;
    await this.servers.store.user.commit([poolChange(name, cidr, { blockSize, disabled, natOutgoing, ...more })]);
  }

  /** The admin tool refuses such a pool: the former one of its range was not deleted, because it is in use. */
  private overlapsAnother({ name, cidr }: PoolPlan): boolean {
    const wanted = parsePrefix(cidr);
    return this.records
      .under(POOL.prefix())
      .map(({ key, value }) => readStoredPool(value, key))
      .some((other) => other.name !== name && wanted !== undefined && prefixesOverlap(other.cidr, wanted));
  }

  /** By the admin tool, which refuses to delete one in use. */
  async deletePool(name: string): Promise<void> {
    this.commands += 1;
    const title = `admin tool ${this.commands}`;
    const process = new SimulatedProcess(title, this.scheduler, this.random.fork(title));
    const { stdout, stderr } = await runAdminCommand(["delete", "ippool", name], process, this.servers);
    this.trace("admin", `${stdout}${stderr}`.trim());
  }

  /** With another datastore there is nothing for kubectl to delete, and the admin tool does it. */
  async deletePoolByKubectl(name: string): Promise<void> {
    if (this.script.datastore !== "orchestrator") return this.deletePool(name);
    this.servers.api.remove(`${PRODUCT_PATH}/ippools/${name}`);
  }

  /** Nothing if there is a machine of this name, unless its node was deleted: then it joins again. */
  joinNode(name: string): void {
    const present = this.machines.get(name);
    if (present !== undefined) {
      if (!this.orchestrator.nodes.has(name)) this.register(present, () => present.joinAgain());
      return;
    }
    this.machinesMade += 1;
    const { script, scheduler, servers, orchestrator, network, coverage, trace } = this;
    const random = this.random.fork(`${name} ${this.machinesMade}`);
    const machine = new Machine({
      name,
      serial: this.machinesMade,
      script,
      scheduler,
      random,
      servers,
      orchestrator,
      network,
      coverage,
      trace,
      onCrash: (what) => this.crashes.push(what),
      onFailure: (what) => this.failedCalls.push(what),
      isQuietSince: (time) => this.faults.isQuietSince(time, name),
      quietTimes: () => this.faults.quietTimes(name),
    });
    this.machines.set(name, machine);
    this.register(machine, () => machine.start());
  }

  private register(machine: Machine, start: () => void): void {
    this.orchestrator.registerNode(machine.name, { address: machine.address, machineId: machine.node.machineId });
    start();
  }

  /** The orchestrator forgets it, and its machine is switched off for good: after `runsOn`, unless it joins again. */
  deleteNode(name: string, runsOn = 0): void {
    const machine = this.machines.get(name);
    machine?.leave();
    this.orchestrator.deleteNode(name);
    if (runsOn === 0) this.removeDeleted(machine);
    else this.scheduler.after(runsOn, () => this.removeDeleted(machine));
  }

  private removeDeleted(machine: Machine | undefined): void {
    if (machine === undefined || this.machines.get(machine.name) !== machine) return;
    if (this.orchestrator.nodes.has(machine.name)) return;
    machine.switchOff();
    this.machines.delete(machine.name);
  }

  /** A copy of the controllers is started again, with the API of another cluster, or with one that has the UID of this. */
  mislead(name: string, by?: "restore"): void {
    this.misled.set(name, emptyApi(this.network, by === "restore" ? "first" : "later"));
    this.restartControllers(name);
  }

  /** With that of this cluster. */
  correct(name: string): void {
    this.misled.delete(name);
    this.restartControllers(name);
  }

  private restartControllers(name: string): void {
    const controllers = this.controllers.get(name);
    controllers?.kill();
    this.scheduler.after(SHORTEST_PAUSE, () => controllers?.start());
  }

  healAll(): void {
    this.faults.healAll();
    for (const controllers of this.controllers.values()) controllers.heal();
    for (const machine of [...this.machines.values()]) {
      this.removeDeleted(machine);
      machine.heal();
      machine.node.killNextCall(Number.POSITIVE_INFINITY);
      this.scheduler.after(STATIC_PODS_RUN_ON, () => machine.kubelet.endStaticPods());
    }
  }

  private newControllers(name: string): SimulatedControllers {
    const { scheduler, servers } = this;
    return new SimulatedControllers({
      ...{ name, scheduler, random: this.random.fork(name), isEtcd: servers.isEtcd },
      onLog: (line) => this.trace(name, line),
      onCrash: (what) => this.crashes.push(what),
      openStore: (process) => servers.store.connect(process, name),
      openApi: (process) => (this.misled.get(name) ?? servers.api).connect(process, name),
    });
  }
}

/**
 * Without pods and policies, and with a node that no cluster here has. UIDs are counted: the namespace that identifies the
 * cluster has that of every cluster here if it is the first object.
 */
function emptyApi(network: FaultyNetwork, identified: "first" | "later"): SimulatedApi {
  const api = new SimulatedApi(network);
  const orchestrator = new Orchestrator(api);
  if (identified === "first") orchestrator.applyNamespace("kube-system", {});
  orchestrator.registerNode("node-9", { address: "172.18.9.9", machineId: "of another cluster" });
  if (identified === "later") orchestrator.applyNamespace("kube-system", {});
  return api;
}
