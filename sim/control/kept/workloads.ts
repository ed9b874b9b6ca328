/**
 * What runs in truth: the workloads of the orchestrator, the pods that their controllers make of them, and nodes; and a
 * container with a name, which no orchestrator knows.
 */

import { type PodRecord, podRecordOf } from "../../../src/model/pod-record.ts";
import { hasOrdinal, ordinalOfPod, STATEFUL_SET, type StatefulSetSize } from "../../../src/model/stateful-set.ts";
import { NO_POD_FACTS } from "../../../src/plugin/add-request.ts";
import type { AnnotationRequests } from "../../../src/plugin/annotations.ts";
import type { Random } from "../../schedule/random.ts";

export interface SimulatedPod {
  /** Of the namespace and the name: pods of a StatefulSet share it with their predecessors. */
  readonly key: string;
  /** Empty for a container without a pod. */
  readonly namespace: string;
  readonly name: string;
  /** By which `WORKLOADS` has what made it. */
  readonly workload: string;
  readonly node: string;
  /** As its kubelet reports them. */
  addresses: readonly string[];
  isEnding: boolean;
}

interface WorkloadPlan {
  /** The pods of all but a StatefulSet and the container have another name each time. */
  readonly kind: typeof STATEFUL_SET | "ReplicaSet" | "VirtualMachineInstance" | "container";
  readonly mostReplicas: number;
  /** What the annotations of its pods say. */
  readonly requests: AnnotationRequests;
}

export const KEEP_SECONDS = 20 * 60;
/** Of the only IPAddressList. */
export const LIST = "partner";
export const KEEPING_POOL = "keeping";
const PLACE = "an annotation";
const KEEPS_FOR: Pick<AnnotationRequests, "keepFor"> = {
  keepFor: { value: { text: `${KEEP_SECONDS}s`, seconds: KEEP_SECONDS }, place: PLACE },
};
const KEEPS: AnnotationRequests = { pools: {}, keepAddresses: { value: true, place: PLACE, on: "pod" }, ...KEEPS_FOR };
const FROM_KEEPING_POOL: AnnotationRequests = {
  pools: { 4: { pools: [KEEPING_POOL], place: PLACE } },
  ...KEEPS_FOR,
};
const FROM_LIST: AnnotationRequests = { pools: {}, list: { value: LIST, place: PLACE } };
const NOTHING = NO_POD_FACTS.requests;

/** By `namespace/name`. */
export const WORKLOADS: ReadonlyMap<string, WorkloadPlan> = new Map([
  ["shop/db", { kind: STATEFUL_SET, mostReplicas: 3, requests: KEEPS }],
  ["shop/cache", { kind: STATEFUL_SET, mostReplicas: 3, requests: FROM_KEEPING_POOL }],
  ["shop/desktop", { kind: "VirtualMachineInstance", mostReplicas: 1, requests: KEEPS }],
  ["/registry", { kind: "container", mostReplicas: 1, requests: NOTHING }],
  ["shop/orders", { kind: "ReplicaSet", mostReplicas: 3, requests: FROM_LIST }],
  ["blog/feed", { kind: "ReplicaSet", mostReplicas: 3, requests: FROM_LIST }],
  ["blog/web", { kind: STATEFUL_SET, mostReplicas: 3, requests: NOTHING }],
]);
/** Where the container with a name runs. */
const CONTAINER_NODE = "node-1";

export class Workloads {
  /** How many pods each has to have, by `namespace/name`. */
  readonly sizes = new Map<string, StatefulSetSize>();
  readonly pods = new Map<string, SimulatedPod>();
  readonly nodes: Set<string>;
  /** While it is stopped, no pod is made or deleted. */
  private stoppedUntil = 0;
  private names = 0;

  constructor(
    nodes: readonly string[],
    private readonly random: Random,
  ) {
    this.nodes = new Set(nodes);
  }

  /** A user creates it, or one of its former name, or makes it larger or smaller. */
  apply(workload: string): void {
    const { kind, mostReplicas } = planOf(workload);
    const start = kind === STATEFUL_SET && this.random.chance(0.2) ? 1 : 0;
    this.sizes.set(workload, { start, replicas: this.random.below(mostReplicas + 1) });
  }

  stop(until: number): void {
    this.stoppedUntil = Math.max(this.stoppedUntil, until);
  }

  goOn(): void {
    this.stoppedUntil = 0;
  }

  /** What the controllers of the workloads do next. */
  step(now: number): void {
    if (now < this.stoppedUntil || this.nodes.size === 0) return;
    for (const workload of WORKLOADS.keys()) {
      const size = this.sizes.get(workload) ?? { start: 0, replicas: 0 };
      if (planOf(workload).kind === STATEFUL_SET) this.stepStatefulSet(workload, size);
      else this.stepOther(workload, size);
    }
  }

  /** Pods one after another, each when the former is ready. */
  private stepStatefulSet(set: string, size: StatefulSetSize): void {
    for (const pod of this.podsOf(set)) if (!hasOrdinal(size, ordinalOfPod(set, pod.key) ?? -1)) pod.isEnding = true;
    for (let ordinal = size.start; ordinal < size.start + size.replicas; ordinal += 1) {
      const key = `${set}-${ordinal}`;
      const pod = this.pods.get(key);
      if (pod === undefined) this.make(set, key);
      if (pod === undefined || pod.isEnding || pod.addresses.length === 0) return;
    }
  }

  private stepOther(workload: string, { replicas }: StatefulSetSize): void {
    const pods = this.podsOf(workload);
    const running = pods.filter(({ isEnding }) => !isEnding);
    for (const pod of running.slice(replicas)) pod.isEnding = true;
    const { kind } = planOf(workload);
    if (kind === "container") {
      if (pods.length < replicas && this.nodes.has(CONTAINER_NODE)) this.make(workload, workload);
      return;
    }
    // A virtual machine runs once.
    const present = kind === "ReplicaSet" ? running.length : pods.length;
    for (let count = present; count < replicas; count += 1) {
      this.names += 1;
      this.make(workload, `${workload}-${this.names}`);
    }
  }

  private make(workload: string, key: string): void {
    const [namespace = "", name = ""] = key.split("/");
    const node = namespace === "" ? CONTAINER_NODE : this.random.pick([...this.nodes]);
    this.pods.set(key, { ...{ key, namespace, name, workload, node }, addresses: [], isEnding: false });
  }

  private podsOf(workload: string): readonly SimulatedPod[] {
    return [...this.pods.values()].filter((pod) => pod.workload === workload);
  }

  deleteNode(node: string): void {
    this.nodes.delete(node);
    for (const pod of [...this.pods.values()]) if (pod.node === node) this.pods.delete(pod.key);
  }

  /** Whether its StatefulSet exists, and has a pod of this name. */
  hasOwner(key: string): boolean {
    const set = key.slice(0, key.lastIndexOf("-"));
    const size = this.sizes.get(set);
    return size !== undefined && hasOrdinal(size, ordinalOfPod(set, key) ?? -1);
  }

  /** Whatever runs of it. */
  exists(workload: string): boolean {
    return this.sizes.has(workload) || this.podsOf(workload).length > 0;
  }

  /** `undefined` if the orchestrator has no such pod. */
  recordOf(key: string): PodRecord | undefined {
    const pod = this.pods.get(key);
    if (pod === undefined || pod.namespace === "") return undefined;
    const { namespace, name, workload, node, addresses } = pod;
    const { kind } = planOf(workload);
    const apiVersion = kind === "VirtualMachineInstance" ? "kubevirt.io/v1" : "apps/v1";
    const owner = { apiVersion, kind, name: workload.slice(namespace.length + 1), controller: true };
    return podRecordOf({
      metadata: { namespace, name, ownerReferences: [owner] },
      spec: { nodeName: node },
      status: { podIPs: addresses.map((ip) => ({ ip })) },
    });
  }

  recordsOf(workload: string): readonly PodRecord[] {
    return this.podsOf(workload).flatMap(({ key }) => this.recordOf(key) ?? []);
  }

  /** Whether a pod of it exists that has no addresses yet. */
  isComing(workload: string): boolean {
    return this.podsOf(workload).some(({ addresses }) => addresses.length === 0);
  }

  wanted(workload: string): number {
    return this.sizes.get(workload)?.replicas ?? 0;
  }

  ready(workload: string): number {
    return this.podsOf(workload).filter(({ isEnding, addresses }) => !isEnding && addresses.length > 0).length;
  }
}

export function planOf(workload: string): WorkloadPlan {
  const plan = WORKLOADS.get(workload);
  if (plan === undefined) throw new Error(`There is no workload "${workload}"`);
  return plan;
}
