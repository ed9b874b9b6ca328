/** What the search for leaks and GC read, in requests and bytes, is the same in a small and in a large cluster. */
import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { means, poolChange, request, seed } from "../../../test/support/ipam.ts";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Change, Datastore, Snapshot } from "../../datastore/datastore.ts";
import { productMapping } from "../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { type MemoryDatastore, openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { parseKey, resourceKey } from "../../model/keys.ts";
import { workloadEndpointName } from "../../model/workload-endpoint-name.ts";
import { openAllocator } from "../allocator.ts";
import { releaseLeaked } from "../plugin/gc.ts";

const LARGE = 5_000;
const LARGE_ON_API = 200;
const PODS_PER_NODE = 3;
const NODE = "node-1";
const LONG_AFTER = new Date("2026-01-03T00:00:00Z");

interface Cost {
  readonly requests: number;
  readonly bytes: number;
}

/** Attaches pods as the network plugin does: addresses and endpoint. */
async function attachPods(store: MemoryDatastore, node: string, namespace: string): Promise<void> {
  const allocator = openAllocator(store, means());
  const endpoints: Change[] = [];
  for (let index = 0; index < PODS_PER_NODE; index += 1) {
    const [pod, containerId] = [`pod-${index}`, `${node}-c${index}`];
    const attributes = { pod, namespace };
    await allocator.assign(request(`net.${containerId}`, { network: "net", interface: "eth0", node, attributes }));
    const named = workloadEndpointName({ node, orchestrator: "k8s", workload: pod, endpoint: "eth0" });
    const name = named.ok ? named.name : "";
    const spec = { node, containerID: containerId, pod, endpoint: "eth0", ipNetworks: [] };
    const value = JSON.stringify({
      apiVersion: API_VERSION,
      kind: "WorkloadEndpoint",
      metadata: { name, namespace },
      spec,
    });
    endpoints.push({ kind: "put", key: resourceKey("workloadendpoints", { namespace, name }), value });
  }
  await seed(store, ...endpoints);
}

/** The other nodes have names that begin with this node's, and pods in the same namespace. */
async function clusterOf(nodes: number): Promise<MemoryDatastore> {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/12", { blockSize: 26 }));
  await runInside(`node register --name ${NODE}`.split(" "), { store });
  await attachPods(store, NODE, "prod");
  for (let index = 2; index <= nodes; index += 1) await attachPods(store, `${NODE}-${index}`, "prod");
  return store;
}

async function costOf(store: MemoryDatastore, work: (store: Datastore) => Promise<unknown>): Promise<Cost> {
  let bytes = 0;
  const counting = storeAround(store, {
    async read(wanted): Promise<Snapshot> {
      const snapshot = await store.read(wanted);
      for (const { key, value } of snapshot.answers.flat()) bytes += key.length + value.length;
      return snapshot;
    },
  });
  const before = store.roundTrips;
  await work(counting);
  return { requests: store.roundTrips - before, bytes };
}

const search = (store: Datastore) =>
  runInside(`ipam gc --dry-run --name ${NODE}`.split(" "), { store, now: LONG_AFTER });
const release = (store: Datastore) => runInside(`ipam gc --name ${NODE}`.split(" "), { store, now: LONG_AFTER });
/** GC of the IPAM plugin, as a runtime calls it that lists all attachments of the node. */
const collect = (store: Datastore) =>
  releaseLeaked({ network: "net", isKept: () => true }, {
    node: NODE,
    store: async () => store,
    allocator: async () => openAllocator(store, means()),
    surroundings: { machineIdentity: () => "this-machine" },
    log: { info: () => {} },
  } as never);

interface KubeCluster {
  readonly store: Datastore;
  cost(work: (store: Datastore) => Promise<unknown>): Promise<Cost>;
  /** The requests for more than one object, since the last call. */
  lists(): readonly string[];
}

/** The same cluster with the orchestrator's API as its datastore. */
async function kubeClusterOf(nodes: number): Promise<KubeCluster> {
  let sum: Cost = { requests: 0, bytes: 0 };
  let lists: string[] = [];
  const client = startFakeApi().connect(async (request, send) => {
    const response = send();
    sum = { requests: sum.requests + 1, bytes: sum.bytes + response.text.length };
    if (response.text.includes('"items":')) lists.push(`${request.path}?${new URLSearchParams(request.query)}`);
    return response;
  });
  const create = (path: string, object: object) =>
    client.request({ method: "POST", path, body: JSON.stringify(object) });
  const store = openKubeStore({
    api: client,
    mappings: productMapping(() => crypto.randomUUID()),
    close: () => client.close(),
  });
  await create("/api/v1/nodes", { metadata: { name: NODE } });
  const marks = await machineOf(await clusterOf(1));
  for (const { key, value } of (await (await clusterOf(nodes)).read([{ kind: "prefix", prefix: "" }])).answers.flat()) {
    const parts = parseKey(key);
    if (parts?.kind === "resource" && parts.plural === "nodes") continue;
    if (parts?.kind === "resource" && parts.plural === "workloadendpoints") {
      const { node, pod } = (JSON.parse(value) as { spec: { node: string; pod: string } }).spec;
      // Pods of one namespace have names of their own.
      const name = `${node}-${pod}`;
      await create("/api/v1/namespaces/prod/pods", { metadata: { name }, spec: { nodeName: node } });
      continue;
    }
    const node = parts?.kind === "handle" ? /^net\.(.*)-c\d+$/.exec(parts.handleId)?.[1] : undefined;
    await store.commit([{ kind: "create", key, value, ...(node === undefined ? {} : { node }) }]);
  }
  await seed(store, marks);
  return {
    store,
    async cost(work) {
      const before = sum;
      await work(store);
      return { requests: sum.requests - before.requests, bytes: sum.bytes - before.bytes };
    },
    lists() {
      const found = lists;
      lists = [];
      return found;
    },
  };
}

/** The record of the node, registered by this machine. */
async function machineOf(store: MemoryDatastore): Promise<Change> {
  const key = resourceKey("nodes", { name: NODE });
  const { answers } = await store.read([{ kind: "key", key }]);
  return { kind: "put", key, value: answers[0]?.[0]?.value ?? "" };
}

describe("the cost of a search for leaks", () => {
  test(`is the same in a cluster of 10 and of ${LARGE} nodes`, async () => {
    const [small, large] = [await clusterOf(10), await clusterOf(LARGE)];

    for (const work of [search, collect, release]) {
      const [few, many] = [await costOf(small, work), await costOf(large, work)];
      expect(many.requests).toBe(few.requests);
      // Addresses and names of other blocks may be a few characters longer.
      expect(Math.abs(many.bytes - few.bytes)).toBeLessThanOrEqual(few.bytes * 0.02);
      expect(few.bytes).toBeGreaterThan(0);
    }
  }, 240_000);

  test(`is the same with the orchestrator's API in a cluster of 10 and of ${LARGE_ON_API} nodes`, async () => {
    const [small, large] = [await kubeClusterOf(10), await kubeClusterOf(LARGE_ON_API)];

    for (const work of [search, collect, release]) {
      large.lists();
      const [few, many] = [await small.cost(work), await large.cost(work)];
      expect(many.requests).toBe(few.requests);
      expect(Math.abs(many.bytes - few.bytes)).toBeLessThanOrEqual(few.bytes * 0.02);
      expect(few.bytes).toBeGreaterThan(0);
      const whole = large.lists().filter((list) => !/[?&](label|field)Selector=/.test(list));
      expect([...new Set(whole.map((list) => list.split("?")[0]))]).toEqual([expect.stringMatching(/\/ippools$/)]);
    }
  }, 240_000);
});
