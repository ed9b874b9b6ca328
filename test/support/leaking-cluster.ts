/**
 * A cluster in memory whose pods and nodes come and go, whose calls of the plugin are lost, two leak collectors that see
 * old states, crash, and write at the same time, and the searches of the hosts, which see their own sandboxes alone.
 */
import { ORCHESTRATOR_KINDS, type Replicas, STORED_KINDS } from "../../src/controllers/facts.ts";
import { LeakCollector } from "../../src/controllers/leaks/collector.ts";
import type { Atomicity, Datastore } from "../../src/datastore/datastore.ts";
import { type MemoryDatastore, openMemory } from "../../src/datastore/memory/memory.ts";
import { holdEntry, KindSnapshot } from "../../src/datastore/replica/kind-snapshot.ts";
import type { KindTable } from "../../src/datastore/replica/kinds.ts";
import type { Replica, ReplicaSnapshot } from "../../src/datastore/replica.ts";
import { PluginError } from "../../src/errors.ts";
import { formatAddress, parseAddress } from "../../src/ip/address.ts";
import { readValidRecords } from "../../src/ipam/all-records.ts";
import { type Allocator, openAllocator } from "../../src/ipam/allocator.ts";
import { allocationsIn } from "../../src/ipam/leaks/allocations.ts";
import type { LiveOwners } from "../../src/ipam/leaks/free-kept.ts";
import { keptIn } from "../../src/ipam/leaks/waiting-addresses.ts";
import { keepHandle, VIRTUAL_MACHINE } from "../../src/model/kept-address.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { type PodRecord, podRecordKey, podRecordOf } from "../../src/model/pod-record.ts";
import { type StatefulSetName, type StatefulSetSize, statefulSetKey } from "../../src/model/stateful-set.ts";
import { searchHostOf } from "./host-search.ts";
import { means as allocatorMeans, nodeChange, podRequest, poolChange, seed } from "./ipam.ts";
import { storeAround } from "./wrapped-store.ts";

export const GRACE = 15 * 60_000;
export const KEEP_SECONDS = 24 * 60 * 60;
const REPORT = 5 * 60_000;
export const NODES = ["n1", "n2"];

interface Sandbox {
  readonly container: string;
  readonly pod: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly startedAt: number;
  /** Its kubelet has been told to stop it, and does so within a minute. */
  readonly isEnding?: true;
}

/** The pod as the API has it. */
export interface Pod {
  readonly node: string;
  readonly addresses: readonly string[];
  readonly isEvicted?: true;
}

interface Crash {
  /** At which commit, from 1. */
  readonly at: number;
  /** Whether that commit takes effect. */
  readonly isWritten: boolean;
}

export class LeakingCluster {
  readonly store: MemoryDatastore;
  readonly pods = new Map<string, Pod>();
  readonly nodes = new Set(NODES);
  readonly collectors: readonly Collecting[];
  /** By `namespace/name`. */
  readonly sets = new Map<string, StatefulSetSize>();
  /** The same. */
  readonly machines = new Set<string>();
  /** `/name` */
  readonly namespaces = new Set(["/red"]);
  /** In truth. */
  sandboxes: Sandbox[] = [];
  now = 0;
  private count = 0;

  private constructor(atomicity: Atomicity) {
    this.store = openMemory(undefined, { atomicity });
    this.collectors = [new Collecting(this), new Collecting(this)];
  }

  static async open(atomicity: Atomicity = "all changes"): Promise<LeakingCluster> {
    const cluster = new LeakingCluster(atomicity);
    await seed(
      cluster.store,
      // Small, so that addresses are soon assigned again.
      poolChange("blue", "10.0.0.0/28", { blockSize: 30 }),
      poolChange("green", "fd00::/124", { blockSize: 126 }),
      ...NODES.map((name) => nodeChange(name)),
    );
    return cluster;
  }

  create(pod: string, node: string): void {
    if (!this.pods.has(pod) && this.nodes.has(node)) this.pods.set(pod, { node, addresses: [] });
  }

  /** The kubelet starts a sandbox of the pod, with addresses of both families. */
  async add(pod: string): Promise<void> {
    const found = this.pods.get(pod);
    if (found === undefined || found.isEvicted || !this.nodes.has(found.node)) return;
    this.count += 1;
    const container = `c${this.count}`;
    const texts = await this.assign(container, pod, found.node);
    if (texts === undefined) return;
    // A pod has one sandbox on a node: the former one was stopped before.
    this.sandboxes = this.sandboxes.filter((each) => each.pod !== pod || each.node !== found.node);
    this.sandboxes.push({ container, pod, node: found.node, addresses: texts, startedAt: this.now });
  }

  /** `undefined` if no address is free. */
  private async assign(container: string, pod: string, node: string): Promise<readonly string[] | undefined> {
    try {
      const { addresses } = await this.allocator.assign(this.requestOf(container, pod, node));
      return addresses.map(({ address }) => formatAddress(address));
    } catch (failure) {
      if (failure instanceof PluginError && failure.kind === "addresses-exhausted") return undefined;
      throw failure;
    }
  }

  requestOf(container: string, pod: string, node: string) {
    return podRequest(container, { pod, node });
  }

  /**
   * As `add()`, with addresses that are kept for the pod of a StatefulSet, or of another owner, or for its machine; it has
   * them already if it had them before.
   */
  async addKept(pod: string, owner = usualOwnerOf(pod)): Promise<void> {
    const node = this.pods.get(pod)?.node ?? "";
    this.count += 1;
    const container = `c${this.count}`;
    const machine = machineOf(pod);
    const handle = keepHandle({
      network: "net",
      namespace: "red",
      identity: machine === undefined ? `pod/${pod}` : `vm/${machine}`,
    });
    const { attributes, ...request } = this.requestOf(container, pod, node);
    const kept = { ...attributes, kept: `${KEEP_SECONDS}`, containerID: container, owner };
    const { addresses } = await this.allocator.assign({ ...request, handle, renewsHeld: true, attributes: kept });
    const texts = addresses.map(({ address }) => formatAddress(address));
    this.sandboxes.push({ container, pod, node, addresses: texts, startedAt: this.now });
  }

  /** The sandbox ends, with its DEL: its kept addresses wait. */
  async endKept(pod: string): Promise<void> {
    const ended = this.sandboxes.filter((each) => each.pod === pod);
    this.sandboxes = this.sandboxes.filter((each) => each.pod !== pod);
    this.pods.delete(pod);
    const guards = ended.flatMap(({ addresses }) => addresses.flatMap((text) => parseAddress(text) ?? []));
    await this.allocator.releaseAddresses(guards.map((address) => ({ address })));
  }

  /** Of each address that is kept: `10.0.0.1 c1` in use, `10.0.0.1 waits`. */
  async kept(): Promise<readonly string[]> {
    const { blocks } = (await readValidRecords(this.store)).records;
    const all = blocks.flatMap(keptIn);
    return all.map(({ address, kept }) => `${formatAddress(address)} ${kept.user?.containerId ?? "waits"}`).toSorted();
  }

  /** What the API says when it is asked for a StatefulSet. */
  askedForSets = 0;
  refusal: Error | undefined;

  get owners(): LiveOwners {
    const ask = <Answer>(answer: Answer): Answer => {
      this.askedForSets += 1;
      if (this.refusal !== undefined) throw this.refusal;
      return answer;
    };
    const named = (names: ReadonlySet<string>) => ({
      read: async (name: StatefulSetName) => (names.has(statefulSetKey(name)) ? ("exists" as const) : undefined),
      list: async () => new Map([...names].map((name) => [name, "exists" as const])),
    });
    return {
      statefulSets: {
        read: async (name) => ask(this.sets.get(statefulSetKey(name))),
        list: async () => ask(this.sets),
      },
      machines: named(this.machines),
      namespaces: named(this.namespaces),
    };
  }

  /** The kubelet reports the addresses, or the first of them. */
  report(pod: string, count = 2): void {
    const found = this.pods.get(pod);
    const sandbox = this.sandboxes.find((each) => each.pod === pod && each.node === found?.node && !each.isEnding);
    if (found !== undefined && sandbox !== undefined)
      this.pods.set(pod, { ...found, addresses: sandbox.addresses.slice(0, count) });
  }

  /** A kubelet reports within some minutes, and stops what it was told to. */
  pass(milliseconds: number): void {
    this.now += milliseconds;
    this.sandboxes = this.sandboxes.filter(({ isEnding }) => !isEnding);
    for (const { pod, startedAt } of this.sandboxes) if (this.now - startedAt >= REPORT) this.report(pod);
  }

  /** The sandbox ends, with its DEL or without. */
  async end(pod: string, isDeleted: boolean): Promise<void> {
    const ended = this.sandboxes.filter((each) => each.pod === pod);
    this.sandboxes = this.sandboxes.filter((each) => each.pod !== pod);
    for (const { container, node } of ended) {
      if (isDeleted)
        await this.allocator.releaseHandle({ handle: `net.${container}`, network: "net", interface: "eth0", node });
    }
  }

  /** A pod leaves the API once its sandbox has ended. */
  async remove(pod: string, isDeleted: boolean): Promise<void> {
    await this.end(pod, isDeleted);
    this.pods.delete(pod);
  }

  /** Its sandbox runs on: a static pod whose mirror pod was refused, or a pod deleted by force while its node is cut off. */
  forget(pod: string): void {
    this.pods.delete(pod);
  }

  /** The kubelet learns which pods are gone, and stops their sandboxes; the DEL is lost. */
  stopForgotten(): void {
    this.sandboxes = this.sandboxes.filter(({ pod }) => this.pods.has(pod));
  }

  /** As the agent of the node does every few minutes. */
  async searchHost(node: string): Promise<void> {
    const own = this.sandboxes.filter((each) => each.node === node).map(({ container }) => container);
    if (this.nodes.has(node)) await searchHostOf(this.store, node, own);
  }

  /** The pod is created again elsewhere, while its former sandbox still runs for a moment; its DEL is lost. */
  move(pod: string, node: string): void {
    if (!this.pods.has(pod) || !this.nodes.has(node)) return;
    this.endSoon(pod);
    this.pods.set(pod, { node, addresses: [] });
  }

  /** The pod stays in the API, and its sandbox runs for a moment more; its DEL is lost. */
  evict(pod: string): void {
    const found = this.pods.get(pod);
    if (found === undefined) return;
    this.endSoon(pod);
    this.pods.set(pod, { ...found, isEvicted: true });
  }

  private endSoon(pod: string): void {
    this.sandboxes = this.sandboxes.map((each) => (each.pod === pod ? { ...each, isEnding: true } : each));
  }

  async loseNode(node: string): Promise<void> {
    this.nodes.delete(node);
    this.sandboxes = this.sandboxes.filter((each) => each.node !== node);
    for (const [name, pod] of this.pods) if (pod.node === node) this.pods.delete(name);
    const key = resourceKey("nodes", { name: node });
    const entry = (await this.store.read([{ kind: "key", key }])).answers[0]?.[0];
    if (entry !== undefined) await this.store.commit([{ kind: "delete", key, revision: entry.revision }]);
  }

  /** A node of the same name joins the cluster. */
  async returnNode(node: string): Promise<void> {
    if (this.nodes.has(node)) return;
    this.nodes.add(node);
    await seed(this.store, nodeChange(node));
  }

  /** As a kubelet does: all sandboxes of pods run, and are reported. */
  async settle(): Promise<void> {
    this.pass(60_000);
    for (const [name, { node, isEvicted }] of this.pods) {
      if (!isEvicted && !this.sandboxes.some((each) => each.pod === name && each.node === node)) await this.add(name);
      this.report(name);
    }
  }

  async recorded(): Promise<ReadonlySet<string>> {
    const { blocks } = (await readValidRecords(this.store)).records;
    return new Set(blocks.flatMap(allocationsIn).map(({ address }) => formatAddress(address)));
  }

  get inUse(): readonly string[] {
    return this.sandboxes.flatMap(({ addresses }) => addresses);
  }

  get date(): Date {
    return new Date(Date.parse("2026-01-02T03:04:05Z") + this.now);
  }

  get allocator(): Allocator {
    return openAllocator(this.store, allocatorMeans({ now: () => this.date }));
  }

  recordOf(name: string): PodRecord | undefined {
    const pod = this.pods.get(name);
    if (pod === undefined) return undefined;
    return podRecordOf({
      metadata: { namespace: "red", name, ownerReferences: ownersOf(name) },
      spec: { nodeName: pod.node },
      status: {
        podIPs: pod.addresses.map((ip) => ({ ip })),
        ...(pod.isEvicted ? { phase: "Failed", reason: "Evicted" } : {}),
      },
    });
  }
}

/** Of a pod that is called `launcher-<machine>-…`. */
function machineOf(pod: string): string | undefined {
  return /^launcher-(\w+)-/.exec(pod)?.[1];
}

function usualOwnerOf(pod: string): string {
  const machine = machineOf(pod);
  return machine === undefined ? `StatefulSet/${pod.slice(0, pod.lastIndexOf("-"))}` : `${VIRTUAL_MACHINE}/${machine}`;
}

function ownersOf(pod: string): readonly object[] {
  const name = machineOf(pod);
  return name === undefined ? [] : [{ apiVersion: "kubevirt.io/v1", kind: VIRTUAL_MACHINE, name, controller: true }];
}

/** A collector, which believes to be the leader, with its own copy of the cluster. */
export class Collecting {
  readonly logged: string[] = [];
  /** Called before each commit of the collector. */
  beforeCommit: () => Promise<void> = async () => {};
  private seen: { readonly orchestrator: unknown; readonly stored: unknown } | undefined;
  private collector: LeakCollector;
  private crashing: Crash | undefined;
  private commits = 0;

  constructor(private readonly cluster: LeakingCluster) {
    this.collector = this.newCollector();
  }

  /** Its replicas catch up. */
  async catchUp(): Promise<void> {
    const { pods, nodes, store } = this.cluster;
    const orchestrator = openMemory();
    for (const name of pods.keys()) {
      const value = JSON.stringify(this.cluster.recordOf(name));
      await orchestrator.commit([{ kind: "put", key: podRecordKey({ namespace: "red", name }), value }]);
    }
    for (const node of nodes) await seed(orchestrator, nodeChange(node));
    this.seen = {
      orchestrator: await snapshotOf(orchestrator, ORCHESTRATOR_KINDS),
      stored: await snapshotOf(store, STORED_KINDS),
    };
  }

  /** Fails if an address in use was freed. */
  async look(crash?: Crash): Promise<void> {
    const before = new Set(this.cluster.inUse);
    this.crashing = crash;
    this.commits = 0;
    await this.collector.collect().catch((failure: unknown) => {
      if (failure !== CRASHED) throw failure;
      this.crash();
    });
    this.crashing = undefined;
    const recorded = await this.cluster.recorded();
    for (const address of before) if (!recorded.has(address)) throw new Error(`${address} is in use, and was freed`);
  }

  crash(): void {
    this.collector = this.newCollector();
  }

  get state() {
    return this.collector.state;
  }

  private newCollector(): LeakCollector {
    const { store, nodes } = this.cluster;
    const own = storeAround(store, {
      commit: async (changes) => {
        await this.beforeCommit();
        this.commits += 1;
        const isLast = this.commits === this.crashing?.at;
        if (isLast && !this.crashing?.isWritten) throw CRASHED;
        const written = await store.commit(changes);
        if (isLast) throw CRASHED;
        return written;
      },
    });
    const replicas = {
      orchestrator: asReplica(() => this.seen?.orchestrator),
      stored: asReplica(() => this.seen?.stored),
    } as Replicas;
    return new LeakCollector({
      store: own,
      allocator: openAllocator(own, allocatorMeans({ now: () => this.cluster.date })),
      replicas,
      isEtcd: true,
      leadership: { isLeading: () => true, whenLeading: async () => {} },
      readPod: async ({ name }) => this.cluster.recordOf(name),
      podsOfMachine: async ({ name }) => {
        const pods = [...this.cluster.pods.keys()].filter((pod) => machineOf(pod) === name);
        return pods.flatMap((pod) => this.cluster.recordOf(pod) ?? []);
      },
      isAbsent: async (path) => !nodes.has(path.slice(path.lastIndexOf("/") + 1)),
      owners: this.cluster.owners,
      graceMilliseconds: GRACE,
      signal: new AbortController().signal,
      elapsed: () => this.cluster.now,
      now: () => this.cluster.date,
      wait: async () => {},
      log: (message) => void this.logged.push(message),
    });
  }
}

const CRASHED = new Error("the collector has crashed");

export function asReplica(snapshot: () => unknown): Replica<never> {
  return Object.defineProperty({}, "snapshot", { get: snapshot }) as Replica<never>;
}

export async function snapshotOf<Values>(store: Datastore, kinds: KindTable<Values>): Promise<ReplicaSnapshot<Values>> {
  const rows = await Promise.all(
    Object.entries<KindTable<Values>[keyof Values]>(kinds).map(async ([kind, source]) => {
      const { revision, answers } = await store.read([{ kind: "prefix", prefix: source.prefix }]);
      const held = (answers[0] ?? []).map((entry) => [entry.key, holdEntry(entry, source, undefined)] as const);
      return [kind, KindSnapshot.empty().with(revision, new Map(held as never))] as const;
    }),
  );
  return Object.fromEntries(rows) as ReplicaSnapshot<Values>;
}
