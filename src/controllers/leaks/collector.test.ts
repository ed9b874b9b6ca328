/**
 * Random histories of a cluster: pods and nodes come and go, calls of the plugin are lost, the collector sees old states,
 * crashes and starts again. It never frees an address in use, and frees every leaked one.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { means as allocatorMeans, nodeChange, poolChange, request, seed } from "../../../test/support/ipam.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { type MemoryDatastore, openMemory } from "../../datastore/memory/memory.ts";
import { holdEntry, KindSnapshot } from "../../datastore/replica/kind-snapshot.ts";
import type { KindTable } from "../../datastore/replica/kinds.ts";
import type { Replica, ReplicaSnapshot } from "../../datastore/replica.ts";
import { formatAddress } from "../../ip/address.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { allocationsIn } from "../../ipam/leaks/allocations.ts";
import { readWorld } from "../../ipam/world.ts";
import { resourceKey } from "../../model/keys.ts";
import { type PodRecord, podRecordKey, podRecordOf } from "../../model/pod-record.ts";
import { ORCHESTRATOR_KINDS, type Replicas, STORED_KINDS } from "../facts.ts";
import { LeakCollector } from "./collector.ts";

const GRACE = 15 * 60_000;
const REPORT = 5 * 60_000;
const NODES = ["n1", "n2"];

interface Sandbox {
  readonly container: string;
  readonly pod: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly startedAt: number;
}

/** The pod as the API has it. */
interface Pod {
  readonly node: string;
  readonly addresses: readonly string[];
}

class Cluster {
  readonly store: MemoryDatastore = openMemory();
  readonly pods = new Map<string, Pod>();
  readonly nodes = new Set(NODES);
  /** In truth. */
  sandboxes: Sandbox[] = [];
  now = 0;
  private count = 0;
  private seen: { readonly orchestrator: unknown; readonly stored: unknown } | undefined;
  private collector = this.newCollector();

  static async open(): Promise<Cluster> {
    const cluster = new Cluster();
    await seed(
      cluster.store,
      poolChange("blue", "10.0.0.0/24", { blockSize: 29 }),
      ...NODES.map((name) => nodeChange(name)),
    );
    return cluster;
  }

  /** The kubelet starts a sandbox of the pod. */
  async add(pod: string): Promise<void> {
    const found = this.pods.get(pod);
    if (found === undefined || !this.nodes.has(found.node)) return;
    this.count += 1;
    const container = `c${this.count}`;
    const { addresses } = await this.allocator.assign(
      request(`net.${container}`, {
        network: "net",
        interface: "eth0",
        node: found.node,
        attributes: { pod, namespace: "red" },
      }),
    );
    const texts = addresses.map(({ address }) => formatAddress(address));
    // A pod has one sandbox: the former one was stopped before.
    this.sandboxes = this.sandboxes.filter((each) => each.pod !== pod || each.node !== found.node);
    this.sandboxes.push({ container, pod, node: found.node, addresses: texts, startedAt: this.now });
  }

  /** The kubelet reports the addresses. */
  report(pod: string): void {
    const found = this.pods.get(pod);
    const sandbox = this.sandboxes.find((each) => each.pod === pod && each.node === found?.node);
    if (found !== undefined && sandbox !== undefined) this.pods.set(pod, { ...found, addresses: sandbox.addresses });
  }

  /** A kubelet reports within some minutes. */
  pass(minutes: number): void {
    this.now += minutes * 60_000;
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

  async loseNode(node: string): Promise<void> {
    this.nodes.delete(node);
    this.sandboxes = this.sandboxes.filter((each) => each.node !== node);
    for (const [name, pod] of this.pods) if (pod.node === node) this.pods.delete(name);
    const key = resourceKey("nodes", { name: node });
    const entry = (await this.store.read([{ kind: "key", key }])).answers[0]?.[0];
    if (entry !== undefined) await this.store.commit([{ kind: "delete", key, revision: entry.revision }]);
  }

  /** The collector's replicas catch up. */
  async catchUp(): Promise<void> {
    const orchestrator = openMemory();
    for (const name of this.pods.keys()) {
      await put(orchestrator, podRecordKey({ namespace: "red", name }), JSON.stringify(this.recordOf(name)));
    }
    for (const node of this.nodes) await seed(orchestrator, nodeChange(node));
    this.seen = {
      orchestrator: await snapshotOf(orchestrator, ORCHESTRATOR_KINDS),
      stored: await snapshotOf(this.store, STORED_KINDS),
    };
  }

  async look(): Promise<void> {
    const before = new Set(this.sandboxes.flatMap(({ addresses }) => addresses));
    await this.collector.collect();
    for (const address of before)
      if (!(await this.recorded()).has(address)) throw new Error(`${address} is in use, and was freed`);
  }

  crash(): void {
    this.collector = this.newCollector();
  }

  async recorded(): Promise<ReadonlySet<string>> {
    const { blocks } = await readWorld(this.store);
    return new Set(blocks.flatMap(allocationsIn).map(({ address }) => formatAddress(address)));
  }

  private get allocator() {
    return openAllocator(this.store, allocatorMeans());
  }

  private recordOf(name: string): PodRecord | undefined {
    const pod = this.pods.get(name);
    if (pod === undefined) return undefined;
    return podRecordOf({
      metadata: { namespace: "red", name },
      spec: { nodeName: pod.node },
      status: { podIPs: pod.addresses.map((ip) => ({ ip })) },
    });
  }

  private newCollector(): LeakCollector {
    const replica = (side: "orchestrator" | "stored") => ({ snapshot: () => this.seen?.[side] });
    const replicas = {
      orchestrator: asReplica(replica("orchestrator").snapshot),
      stored: asReplica(replica("stored").snapshot),
    } as Replicas;
    return new LeakCollector({
      store: this.store,
      allocator: openAllocator(this.store, allocatorMeans()),
      replicas,
      leadership: { isLeading: () => true, whenLeading: async () => {} },
      readPod: async ({ name }) => this.recordOf(name),
      isAbsent: async (path) => !this.nodes.has(path.slice(path.lastIndexOf("/") + 1)),
      graceMilliseconds: GRACE,
      signal: new AbortController().signal,
      elapsed: () => this.now,
      wait: async () => {},
      log: () => {},
    });
  }
}

function asReplica(snapshot: () => unknown): Replica<never> {
  return Object.defineProperty({}, "snapshot", { get: snapshot }) as Replica<never>;
}

const put = (into: Datastore, key: string, value: string) => into.commit([{ kind: "put", key, value }]);

async function snapshotOf<Values>(store: Datastore, kinds: KindTable<Values>): Promise<ReplicaSnapshot<Values>> {
  const rows = await Promise.all(
    Object.entries<KindTable<Values>[keyof Values]>(kinds).map(async ([kind, source]) => {
      const { revision, answers } = await store.read([{ kind: "prefix", prefix: source.prefix }]);
      const held = (answers[0] ?? []).map((entry) => [entry.key, holdEntry(entry, source, undefined)] as const);
      return [kind, KindSnapshot.empty().with(revision, new Map(held as never))] as const;
    }),
  );
  return Object.fromEntries(rows) as ReplicaSnapshot<Values>;
}

type Step = (cluster: Cluster) => Promise<void>;

const pod = fc.constantFrom("a", "b");
const steps: fc.Arbitrary<readonly [string, Step]> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(pod, fc.constantFrom(...NODES)).map(
      ([name, node]) =>
        [
          `create ${name} on ${node}`,
          async (cluster: Cluster) => {
            if (!cluster.pods.has(name) && cluster.nodes.has(node)) cluster.pods.set(name, { node, addresses: [] });
          },
        ] as const,
    ),
  },
  { weight: 4, arbitrary: pod.map((name) => [`add ${name}`, (cluster: Cluster) => cluster.add(name)] as const) },
  {
    weight: 3,
    arbitrary: pod.map((name) => [`report ${name}`, async (cluster: Cluster) => cluster.report(name)] as const),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(pod, fc.boolean())
      .map(
        ([name, isDeleted]) =>
          [
            `remove ${name} ${isDeleted ? "with" : "without"} DEL`,
            (cluster: Cluster) => cluster.remove(name, isDeleted),
          ] as const,
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(pod, fc.boolean())
      .map(
        ([name, isDeleted]) =>
          [
            `end ${name} ${isDeleted ? "with" : "without"} DEL`,
            (cluster: Cluster) => cluster.end(name, isDeleted),
          ] as const,
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(...NODES)
      .map((node) => [`lose ${node}`, (cluster: Cluster) => cluster.loseNode(node)] as const),
  },
  { weight: 3, arbitrary: fc.constant(["catch up", (cluster: Cluster) => cluster.catchUp()] as const) },
  { weight: 3, arbitrary: fc.constant(["look", (cluster: Cluster) => cluster.look()] as const) },
  { weight: 1, arbitrary: fc.constant(["crash", async (cluster: Cluster) => cluster.crash()] as const) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(1, 5, 8, 16).map(
      (minutes) =>
        [
          `${minutes} minutes`,
          async (cluster: Cluster) => {
            cluster.pass(minutes);
          },
        ] as const,
    ),
  },
);

/** As a kubelet does: all sandboxes of pods run, and are reported. */
async function settle(cluster: Cluster): Promise<void> {
  for (const name of cluster.pods.keys()) {
    if (!cluster.sandboxes.some((each) => each.pod === name)) await cluster.add(name);
    cluster.report(name);
  }
}

describe("the leak collection", () => {
  test("judges again by the live state before it releases anything", async () => {
    const cluster = await Cluster.open();
    cluster.pods.set("a", { node: "n1", addresses: [] });
    await cluster.add("a");
    cluster.report("a");
    // The second sandbox of the pod has another address, which the kubelet has not reported yet.
    await cluster.end("a", false);
    await cluster.add("a");
    await cluster.catchUp();
    await cluster.look();
    cluster.now += GRACE;
    cluster.report("a");
    await cluster.look();

    expect([...(await cluster.recorded())]).toContain(cluster.sandboxes[0]?.addresses[0] ?? "");
  });

  test("releases the addresses of a node that is gone at once, and then its claims", async () => {
    const cluster = await Cluster.open();
    cluster.pods.set("a", { node: "n1", addresses: [] });
    await cluster.add("a");
    await cluster.loseNode("n1");
    for (let look = 0; look < 2; look += 1) {
      await cluster.catchUp();
      await cluster.look();
    }

    const world = await readWorld(cluster.store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
  });

  test("does nothing about a node that only its copy lacks", async () => {
    const cluster = await Cluster.open();
    cluster.pods.set("a", { node: "n1", addresses: [] });
    await cluster.add("a");
    const { pods } = cluster;
    const [kept] = pods.entries().toArray();
    await cluster.loseNode("n1");
    await cluster.catchUp();
    // It came back before the collector looked.
    cluster.nodes.add("n1");
    if (kept) pods.set(...kept);
    await cluster.look();

    expect((await cluster.recorded()).size).toBe(1);
    expect((await readWorld(cluster.store)).affinities).not.toEqual([]);
  });

  test("never frees an address in use, and frees every leaked one, whatever happens", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 30, maxLength: 60, size: "max" }), async (history) => {
        const cluster = await Cluster.open();
        for (const [, step] of history) await step(cluster);
        await settle(cluster);
        for (let look = 0; look < 4; look += 1) {
          await cluster.catchUp();
          await cluster.look();
          cluster.now += GRACE / 2;
        }
        const inUse = cluster.sandboxes.flatMap(({ addresses }) => addresses).toSorted();
        expect([...(await cluster.recorded())].toSorted()).toEqual(inUse);
        const world = await readWorld(cluster.store);
        expect(findProblems(world)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  }, 120_000);
});
