/**
 * A simulated cluster, put together: the servers, the network to them, the machines with their kubelets, and the truth
 * that the invariants look at.
 */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { startFakeApi } from "../../src/datastore/kube/fake-api.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { nodeChange, poolChange } from "../../test/support/ipam.ts";
import { SimulatedStore } from "../datastore/simulated-store.ts";
import { FaultyNetwork } from "../faults/network.ts";
import type { World, WorldNode } from "../judge/invariant.ts";
import { type Records, recordsOfTable } from "../judge/records.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import type { FaultKind, PoolPlan, Script } from "../script/operation.ts";
import { BareNode } from "./bare-node.ts";
import { Coverage } from "./coverage.ts";
import { Kubelet } from "./kubelet.ts";
import { Orchestrator } from "./orchestrator.ts";

/** A node and its kubelet. */
export interface Machine {
  readonly name: string;
  readonly node: BareNode;
  readonly kubelet: Kubelet;
  isOn: boolean;
}

export class Cluster implements World {
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly network: FaultyNetwork;
  readonly store: SimulatedStore;
  readonly orchestrator: Orchestrator;
  readonly coverage = new Coverage();
  readonly machines = new Map<string, Machine>();
  readonly records: Records;
  /** The datastore of a user, without faults. */
  private readonly userStore: Datastore;
  private readonly faults = new Set<() => void>();
  private apiDownUntil = 0;
  private machinesMade = 0;

  constructor(readonly script: Script) {
    this.random = new Random(script.seed).fork("cluster");
    this.scheduler = new Scheduler(this.random.fork("order"));
    this.network = new FaultyNetwork(this.scheduler, this.random.fork("network"));
    const atomicity = script.datastore === "etcd" ? "all changes" : "one object";
    this.store = new SimulatedStore(this.network, { atomicity });
    this.records = recordsOfTable(this.store.table);
    this.userStore = openMemory(this.store.table);
    this.orchestrator = new Orchestrator(startFakeApi().connect());
  }

  get now(): number {
    return this.scheduler.now;
  }

  get pods() {
    return this.orchestrator.pods;
  }

  get nodes(): ReadonlyMap<string, WorldNode> {
    const on = [...this.machines.values()].filter(({ isOn }) => isOn);
    return new Map(
      on.map(({ name, node: { attachments } }) => [
        name,
        { name, isRegistered: this.orchestrator.nodes.has(name), attachments },
      ]),
    );
  }

  async start(): Promise<void> {
    for (const pool of this.script.pools) await this.applyPool(pool);
    for (const name of this.script.nodes) await this.joinNode(name);
  }

  async applyPool(pool: PoolPlan): Promise<void> {
    const { name, cidr, blockSize, disabled = false, encapsulation } = pool;
    const mode = encapsulation.endsWith("between subnets") ? "CrossSubnet" : "Always";
    const tunnel = encapsulation.startsWith("IPIP") ? { ipipMode: mode } : { vxlanMode: mode };
    const more = encapsulation === "none" ? {} : (tunnel as { ipipMode: "Always" });
    await this.userStore.commit([poolChange(name, cidr, { blockSize, disabled, ...more })]);
  }

  async deletePool(name: string): Promise<void> {
    await this.deleteRecord(resourceKey("ippools", { name }));
  }

  async joinNode(name: string): Promise<void> {
    if (this.machines.has(name)) return;
    this.machinesMade += 1;
    const random = this.random.fork(`${name} ${this.machinesMade}`);
    const { scheduler } = this;
    const openStore = (process: Parameters<SimulatedStore["connect"]>[0]) => this.store.connect(process, name);
    const node = new BareNode({ name, scheduler, random, openStore });
    const kubelet = new Kubelet({ node: name, scheduler, random, runtime: this.observed(node), api: this.podApi() });
    this.machines.set(name, { name, node, kubelet, isOn: true });
    await this.orchestrator.registerNode(name, `172.18.0.${10 + Number(name.slice(name.lastIndexOf("-") + 1))}`);
    await this.userStore.commit([nodeChange(name)]);
    kubelet.hear();
  }

  /** The machine is switched off for good, and the orchestrator forgets it. */
  async deleteNode(name: string): Promise<void> {
    const machine = this.machines.get(name);
    if (machine === undefined) return;
    this.switchOff(machine);
    this.machines.delete(name);
    await this.orchestrator.deleteNode(name);
  }

  switchOff(machine: Machine): void {
    machine.isOn = false;
    machine.kubelet.switchOff();
    machine.node.killCalls();
    machine.node.attachments.clear();
  }

  switchOn(machine: Machine): void {
    if (this.machines.get(machine.name) !== machine) return;
    machine.isOn = true;
    machine.kubelet.switchOn();
  }

  /** A fault that has begun: it ends after this time, or when all are healed. */
  addFault(kind: FaultKind, milliseconds: number, end: () => void): void {
    const over = this.coverage.beginFault(kind);
    const heal = () => {
      if (!this.faults.delete(heal)) return;
      over();
      end();
    };
    this.faults.add(heal);
    this.scheduler.after(milliseconds, heal);
  }

  healAll(): void {
    for (const heal of [...this.faults]) heal();
  }

  restartApi(milliseconds: number): void {
    this.apiDownUntil = Math.max(this.apiDownUntil, this.now + milliseconds);
  }

  /** Kubelets hear of changes of pods. */
  announcePods(node?: string): void {
    for (const { name, kubelet } of this.machines.values()) if (node === undefined || node === name) kubelet.hear();
  }

  private observed(node: BareNode) {
    return {
      add: (...call: Parameters<BareNode["add"]>) => this.during("ADD", node.add(...call)),
      del: (...call: Parameters<BareNode["del"]>) => this.during("DEL", node.del(...call)),
    };
  }

  private during<Answer>(operation: "ADD" | "DEL", answer: Promise<Answer>): Promise<Answer> {
    return answer.finally(this.coverage.begin(operation));
  }

  private podApi() {
    const { orchestrator } = this;
    const isReachable = (node: string) => this.now >= this.apiDownUntil && !this.network.isCut(node);
    return {
      podsOf: (node: string) => (isReachable(node) ? orchestrator.podsOf(node) : undefined),
      report: (pod: Parameters<Orchestrator["reportAddresses"]>[0], addresses: readonly string[]) => {
        const node = orchestrator.pods.get(`${pod.namespace}/${pod.name}`)?.node;
        if (node !== undefined && !isReachable(node)) return false;
        void orchestrator.reportAddresses(pod, addresses);
        return true;
      },
      forget: (pod: Parameters<Orchestrator["forgetPod"]>[0]) => {
        const node = orchestrator.pods.get(`${pod.namespace}/${pod.name}`)?.node;
        if (node !== undefined && !isReachable(node)) return false;
        void orchestrator.forgetPod(pod);
        return true;
      },
    };
  }

  private async deleteRecord(key: string): Promise<void> {
    const entry = (await this.userStore.read([{ kind: "key", key }])).answers[0]?.[0];
    if (entry !== undefined) await this.userStore.commit([{ kind: "delete", key, revision: entry.revision }]);
  }
}
