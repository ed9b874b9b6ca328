/** A machine of the cluster: a node, and the kubelet that tells its runtime what to do. */
import { resourceKey } from "../../src/model/keys.ts";
import { node } from "../../src/model/node.ts";
import { withOrchestratorReference } from "../../src/model/node-reference.ts";
import type { FaultyNetwork } from "../faults/network.ts";
import type { WorldAttachment } from "../judge/invariant.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";
import { BareNode } from "./bare-node.ts";
import type { Coverage, CoveredOperation } from "./coverage.ts";
import { Kubelet, type KubeletPod, type PodApi, type PodRuntime } from "./kubelet.ts";
import type { Orchestrator } from "./orchestrator.ts";
import type { Servers } from "./servers.ts";

export interface MachineMeans {
  readonly name: string;
  /** Another one for each machine. */
  readonly serial: number;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly servers: Servers;
  readonly orchestrator: Orchestrator;
  readonly network: FaultyNetwork;
  readonly coverage: Coverage;
}

export class Machine {
  readonly node: BareNode;
  readonly kubelet: Kubelet;
  isOn = true;

  constructor(private readonly means: MachineMeans) {
    const { name, scheduler, random, servers } = means;
    this.node = new BareNode({ name, scheduler, random, openStore: (process) => servers.connectStore(process, name) });
    const containerPrefix = `${name}-${means.serial}`;
    const kubelet = { node: name, containerPrefix, scheduler, random: random.fork("kubelet") };
    this.kubelet = new Kubelet({ ...kubelet, runtime: this.runtime(), api: this.podApi() });
  }

  get name(): string {
    return this.means.name;
  }

  /** The nodes 3 and 4 are in another subnet than 1 and 2. */
  get address(): string {
    const index = Number(this.name.slice(this.name.lastIndexOf("-") + 1));
    return `172.18.${index <= 2 ? 0 : 1}.${10 + index}`;
  }

  get attachments(): ReadonlyMap<string, WorldAttachment> {
    return this.node.attachments;
  }

  start(): void {
    const record = node.make({ name: this.name }, withOrchestratorReference({}, this.name));
    const key = resourceKey("nodes", { name: this.name });
    void this.means.servers.userStore.commit([{ kind: "put", key, value: node.write(record) }]);
    this.kubelet.hear();
  }

  switchOff(): void {
    this.isOn = false;
    this.kubelet.switchOff();
    this.node.killCalls();
    this.node.attachments.clear();
  }

  switchOn(): void {
    if (this.isOn) return;
    this.isOn = true;
    this.kubelet.switchOn();
  }

  /** The sandbox vanishes, without a call of the plugin. */
  loseSandbox(uid: string): void {
    const containerId = this.kubelet.sandboxOf(uid);
    if (containerId === undefined) return;
    this.node.attachments.delete(containerId);
    this.kubelet.loseSandbox(uid);
  }

  private runtime(): PodRuntime {
    return {
      add: (pod, containerId) => this.during("ADD", this.node.add(pod, containerId)),
      del: (containerId) => this.during("DEL", this.node.del(containerId)),
    };
  }

  private during<Answer>(operation: CoveredOperation, answer: Promise<Answer>): Promise<Answer> {
    return answer.finally(this.means.coverage.begin(operation));
  }

  private podApi(): PodApi {
    const { orchestrator, servers, network } = this.means;
    const ifReachable = <Answer>(answer: () => Answer): Answer | undefined =>
      servers.api.isUp() && !network.isCut(this.name) ? answer() : undefined;
    const attempt = (work: () => void): boolean => {
      const isReachable = ifReachable(() => true) ?? false;
      if (isReachable) work();
      return isReachable;
    };
    return {
      podsOf: (node) => ifReachable(() => orchestrator.podsOf(node)),
      report: (pod: KubeletPod, addresses) => attempt(() => orchestrator.reportAddresses(pod, addresses)),
      forget: (pod: KubeletPod) => attempt(() => orchestrator.forgetPod(pod)),
    };
  }
}
