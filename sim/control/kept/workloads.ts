/** The orchestrator's objects: StatefulSets, the pods that its controller makes of them, and nodes, as they are in truth. */
import { type PodRecord, podRecordOf } from "../../../src/model/pod-record.ts";
import { hasOrdinal, ordinalOfPod, type StatefulSetSize } from "../../../src/model/stateful-set.ts";
import type { Random } from "../../schedule/random.ts";

export interface SimulatedPod {
  /** Of the namespace and the name that it shares with its predecessors. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** Of its StatefulSet, in its namespace. */
  readonly set: string;
  readonly node: string;
  /** Addresses are kept for pods of this name. */
  readonly isKept: boolean;
  /** As its kubelet reports them. */
  addresses: readonly string[];
  isEnding: boolean;
}

/** `shop` asks for kept addresses, `blog` does not. */
const KEEPING_NAMESPACE = "shop";
export const SETS = ["shop/db", "shop/cache", "blog/web"];
const MOST_REPLICAS = 3;

export class Workloads {
  /** By `namespace/name`. */
  readonly sets = new Map<string, StatefulSetSize>();
  readonly pods = new Map<string, SimulatedPod>();
  readonly nodes: Set<string>;
  /** While it is stopped, no pod is made or deleted. */
  private stoppedUntil = 0;

  constructor(
    nodes: readonly string[],
    private readonly random: Random,
  ) {
    this.nodes = new Set(nodes);
  }

  /** A user creates a StatefulSet, or one of its former name, or makes it larger or smaller. */
  apply(set: string): void {
    this.sets.set(set, { start: this.random.chance(0.2) ? 1 : 0, replicas: this.random.below(MOST_REPLICAS + 1) });
  }

  stop(until: number): void {
    this.stoppedUntil = Math.max(this.stoppedUntil, until);
  }

  goOn(): void {
    this.stoppedUntil = 0;
  }

  /** What the controller of StatefulSets does next: pods one after another, each when the former is ready. */
  step(now: number): void {
    if (now < this.stoppedUntil || this.nodes.size === 0) return;
    for (const pod of this.pods.values()) {
      const size = this.sets.get(`${pod.namespace}/${pod.set}`);
      const ordinal = ordinalOfPod(pod.set, pod.name) ?? -1;
      if (size === undefined || !hasOrdinal(size, ordinal)) pod.isEnding = true;
    }
    for (const [set, { start, replicas }] of this.sets) this.makeNextPod(set, start, replicas);
  }

  private makeNextPod(set: string, start: number, replicas: number): void {
    const [namespace = "", name = ""] = set.split("/");
    for (let ordinal = start; ordinal < start + replicas; ordinal += 1) {
      const key = `${set}-${ordinal}`;
      const pod = this.pods.get(key);
      if (pod === undefined) {
        const node = this.random.pick([...this.nodes]);
        const isKept = namespace === KEEPING_NAMESPACE;
        const made = { ...{ key, namespace, set: name, node, isKept }, addresses: [], isEnding: false };
        this.pods.set(key, { ...made, name: `${name}-${ordinal}` });
      }
      if (pod === undefined || pod.isEnding || pod.addresses.length === 0) return;
    }
  }

  deleteNode(node: string): void {
    this.nodes.delete(node);
    for (const pod of [...this.pods.values()]) if (pod.node === node) this.pods.delete(pod.key);
  }

  /** Whether its StatefulSet exists, and has a pod of this name. */
  hasOwner(key: string): boolean {
    const set = key.slice(0, key.lastIndexOf("-"));
    const size = this.sets.get(set);
    return size !== undefined && hasOrdinal(size, ordinalOfPod(set, key) ?? -1);
  }

  recordOf(key: string): PodRecord | undefined {
    const pod = this.pods.get(key);
    if (pod === undefined) return undefined;
    const { namespace, name, node, addresses } = pod;
    return podRecordOf({
      metadata: { namespace, name },
      spec: { nodeName: node },
      status: { podIPs: addresses.map((ip) => ({ ip })) },
    });
  }

  /** Whether every pod that there has to be is ready. */
  get areReady(): boolean {
    return [...this.sets].every(([set, { start, replicas }]) =>
      Array.from({ length: replicas }, (_, index) => this.pods.get(`${set}-${start + index}`)).every(
        (pod) => pod !== undefined && !pod.isEnding && pod.addresses.length > 0,
      ),
    );
  }
}
