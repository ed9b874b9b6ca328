/** A machine of the cluster: a node, and the kubelet that tells its runtime what to do. */
import { readDatastoreStatus } from "../../src/datastore/replica/status-file.ts";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import type { FaultyNetwork } from "../faults/network.ts";
import type { WorldHost, WorldNode } from "../judge/invariant.ts";
import { SimulatedNode } from "../node/simulated-node.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";
import type { Script } from "../script/operation.ts";
import type { Interval } from "./active-faults.ts";
import { type Coverage, type CoveredOperation, SHORT_WHILE } from "./coverage.ts";
import { JudgedCalls } from "./judged-calls.ts";
import { Kubelet, type PodApi, type PodRuntime } from "./kubelet.ts";
import type { Orchestrator } from "./orchestrator.ts";
import type { Servers } from "./servers.ts";

export interface MachineMeans {
  readonly name: string;
  /** Another one for each machine. */
  readonly serial: number;
  readonly script: Script;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly servers: Servers;
  readonly orchestrator: Orchestrator;
  readonly network: FaultyNetwork;
  readonly coverage: Coverage;
  readonly trace: (who: string, line: string) => void;
  readonly onCrash: (what: string) => void;
  /** A call failed that had no reason to. */
  readonly onFailure: (what: string) => void;
  /** No fault that concerns this machine was active since then. */
  readonly isQuietSince: (time: number) => boolean;
  readonly quietTimes: () => readonly Interval[];
}

/** Until a program is started again that died. */
export const SHORTEST_PAUSE = 1_000;

export class Machine {
  private known: { readonly text: string; readonly at: number | undefined } | undefined;
  readonly node: SimulatedNode;
  readonly kubelet: Kubelet;
  private readonly judged: JudgedCalls;
  isOn = true;
  private callChanges = 0;
  private agentPause = SHORTEST_PAUSE;
  /** Its node was deleted, and it has not joined again. */
  private hasLeft = false;
  /** Containers that ran when their node was deleted. */
  private readonly disowned = new Set<string>();
  /** When somebody else last changed what the product has set. */
  tamperedAt: number | undefined;

  constructor(private readonly means: MachineMeans) {
    this.world = this.newWorld();
    const { name, scheduler, random, servers, script } = means;
    const { policySetupSeconds, calls, datastore } = script;
    const own = parseInterfaceAddress(`${this.address}/24`);
    this.node = new SimulatedNode({
      ...{ name, scheduler, random, calls, gateway: `${this.segment}.1` },
      addresses: own === undefined ? [] : [own],
      onLog: (line) => means.trace(name, line),
      onCrash: means.onCrash,
      onCallKilled: () => void scheduler.after(SHORT_WHILE, means.coverage.beginFault("kill call", name)),
      network: {
        ...{ datastore: datastore === "orchestrator" ? "orchestrator" : "etcd", policySetupSeconds },
        // As every installation for the orchestrator has it: without, pods of etcd have no labels to choose them by.
        policy: "required",
      },
      openStore: (process) => servers.store.connect(process, name),
      openServingStore: (process) => servers.store.connectServing(process, name),
      openApi: (process) => servers.api.connect(process, name),
    });
    this.judged = new JudgedCalls({
      ...{ node: name, scheduler, runtime: this.node.runtime, isOn: () => this.isOn, onFailure: means.onFailure },
      ...{ isQuietSince: means.isQuietSince, tamperedAt: () => this.tamperedAt },
      isWanted: (pod) => means.orchestrator.isWanted(pod),
      isAnnotated: ({ uid }) => means.orchestrator.annotated.has(uid),
    });
    const containerPrefix = `${name}-${means.serial}`;
    const kubelet = { node: name, containerPrefix, scheduler, random: random.fork("kubelet") };
    this.kubelet = new Kubelet({ ...kubelet, runtime: this.runtime(), api: this.podApi() });
  }

  get name(): string {
    return this.means.name;
  }

  get address(): string {
    return `${this.segment}.${10 + this.index}`;
  }

  /** Hosts of one segment reach each other without a router. */
  private get segment(): string {
    return this.means.script.subnets === 2 && this.index > 2 ? "172.18.1" : "172.18.0";
  }

  private get index(): number {
    return Number(this.name.slice(this.name.lastIndexOf("-") + 1));
  }

  /** What the invariants look at: the same object each time, with the present state. */
  readonly world: WorldNode;

  /** Calls with the same values until something changes that an invariant could see. */
  forEachRevision(visit: (value: unknown) => void): void {
    const { host, files } = this.node;
    visit(this.callChanges);
    visit(host.root.changes);
    visit(host.root.nftables.changes);
    visit(host.root.nftables.connections.changes);
    visit(files.revision);
  }

  start(): void {
    this.startAgent();
    this.kubelet.hear();
  }

  /** Its node is deleted. What runs goes on, and does not count any more. */
  leave(): void {
    this.hasLeft = true;
    this.disownAll();
    this.kubelet.stop();
  }

  /** Its kubelet ends what runs, since the API has none of its pods. */
  joinAgain(): void {
    this.hasLeft = false;
    this.disownAll();
    this.startAgent();
    this.kubelet.goOn();
  }

  private disownAll(): void {
    this.callChanges += 1;
    for (const containerId of this.node.attachments.keys()) this.disowned.add(containerId);
  }

  switchOff(): void {
    this.isOn = false;
    this.kubelet.switchOff();
    this.node.switchOff();
  }

  switchOn(): void {
    if (this.isOn) return;
    this.isOn = true;
    this.node.switchOn();
    this.startAgent();
    this.kubelet.switchOn();
  }

  /** Nothing if the machine is off. An agent that dies is started again, as a DaemonSet does on the nodes that exist. */
  startAgent(): void {
    if (!this.isOn || this.hasLeft || this.hasAgent()) return;
    this.node.startAgent();
    this.node.agent?.onKill(() => this.means.scheduler.after(this.agentPause, () => this.startAgent()));
  }

  private hasAgent(): boolean {
    return this.node.agent !== undefined;
  }

  /** After that many effects. `pause`: until it is started again. */
  killAgent(afterEffects: number, pause: number): void {
    this.agentPause = Math.max(pause, SHORTEST_PAUSE);
    this.node.agent?.killAfter(afterEffects);
  }

  /** What is armed to die lives on. */
  heal(): void {
    this.node.agent?.killAfter(Number.POSITIVE_INFINITY);
    this.startAgent();
  }

  /** The sandbox vanishes, without a call of the plugin. */
  loseSandbox(uid: string): void {
    const containerId = this.kubelet.sandboxOf(uid);
    if (containerId === undefined) return;
    this.callChanges += 1;
    this.node.runtime.forget(containerId);
    this.kubelet.loseSandbox(uid);
  }

  repeatCall(uid: string, call: "ADD" | "DEL" | "CHECK"): void {
    const { runtime } = this.node;
    const containerId = this.kubelet.sandboxOf(uid);
    const attachment = containerId === undefined ? undefined : runtime.attachments.get(containerId);
    if (containerId === undefined || attachment === undefined) return;
    if (call === "ADD") void this.during("ADD", runtime.add(attachment.pod, containerId));
    if (call === "CHECK") void this.check(containerId);
    if (call === "DEL") this.kubelet.repeatDel(uid);
  }

  async collectGarbage(): Promise<void> {
    if (this.isOn) await this.during("GC", this.judged.collectGarbage());
  }

  /** Checks everything that runs, and collects garbage: at rest all of that succeeds, and does nothing. */
  async tryCalls(): Promise<void> {
    const attached = [...this.node.attachments.values()].filter(({ state }) => state === "attached");
    await Promise.all(attached.map(({ containerId }) => this.check(containerId)));
    await this.collectGarbage();
  }

  private check(containerId: string): Promise<void> {
    return this.during("CHECK", this.judged.check(containerId));
  }

  private runtime(): PodRuntime {
    const { name, trace, orchestrator } = this.means;
    return {
      add: async (pod, containerId) => {
        trace(name, `ADD of ${containerId} for pod ${pod.namespace}/${pod.name} (${pod.uid}) begins`);
        const outcome = await this.during("ADD", this.node.runtime.add(pod, containerId));
        trace(name, `ADD of ${containerId}: ${outcome.ok ? outcome.addresses.join(" ") : outcome.reason}`);
        orchestrator.noteOutcome(pod, outcome.ok ? undefined : outcome.reason);
        return outcome;
      },
      del: async (containerId) => {
        trace(name, `DEL of ${containerId} begins`);
        const isDone = await this.during("DEL", this.node.runtime.del(containerId));
        trace(name, `DEL of ${containerId}: ${isDone ? "done" : "failed"}`);
        return isDone;
      },
      delAgain: (pod, containerId) => this.during("DEL", this.node.runtime.repeatDel(pod, containerId)),
    };
  }

  /** Only the product's client of the orchestrator's API says something while nothing changes. */
  private get knownAt(): number | undefined {
    const { script, scheduler } = this.means;
    const text = script.datastore === "orchestrator" ? this.node.datastoreStatus : undefined;
    if (text !== this.known?.text) {
      const status = text === undefined ? undefined : readDatastoreStatus(text);
      const start = scheduler.date.getTime() - scheduler.now;
      this.known = text === undefined ? undefined : { text, at: status && Date.parse(status.knownAt) - start };
    }
    return this.known?.at;
  }

  private newWorld(): WorldNode {
    const machine = this;
    const host: WorldHost = {
      get root() {
        return machine.node.host.root;
      },
      namespaceAt: (path) => machine.node.host.namespaceAt(path),
      segment: this.segment,
      policySetupMilliseconds: 1_000 * this.means.script.policySetupSeconds,
      get statusFiles() {
        return machine.node.statusFiles;
      },
      get seenRevisions() {
        return machine.node.seenRevisions;
      },
      get knownAt() {
        return machine.knownAt;
      },
      get isNatFollowed() {
        return machine.node.isNatFollowed;
      },
      get tamperedAt() {
        return machine.tamperedAt ?? Number.NEGATIVE_INFINITY;
      },
      get quietTimes() {
        return machine.means.quietTimes();
      },
    };
    return {
      name: this.name,
      get isRegistered() {
        return machine.means.orchestrator.nodes.has(machine.name);
      },
      get attachments() {
        return machine.node.attachments;
      },
      disowned: this.disowned,
      host,
    };
  }

  private during<Answer>(operation: CoveredOperation, answer: Promise<Answer>): Promise<Answer> {
    const end = this.means.coverage.begin(operation, [this.name]);
    this.callChanges += 1;
    return answer.finally(() => {
      this.callChanges += 1;
      end();
    });
  }

  private podApi(): PodApi {
    const { orchestrator, servers, network } = this.means;
    const isReachable = () => servers.api.isAnswering() && !network.isCut(this.name);
    const attempt = (work: () => void): boolean => {
      if (!isReachable()) return false;
      work();
      return true;
    };
    return {
      podsOf: (node) => (isReachable() ? orchestrator.podsOf(node) : undefined),
      report: (pod, addresses) => attempt(() => orchestrator.reportAddresses(pod, addresses)),
      forget: (pod) => attempt(() => orchestrator.forgetPod(pod)),
    };
  }
}
