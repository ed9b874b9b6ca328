/** What the search for leaks and GC read, in requests and bytes, is the same in a small and in a large cluster. */
import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { means, poolChange, request, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Change, Datastore, Snapshot } from "../../datastore/datastore.ts";
import { type MemoryDatastore, openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { workloadEndpointName } from "../../model/workload-endpoint-name.ts";
import { openAllocator } from "../allocator.ts";
import { releaseLeaked } from "../plugin/gc.ts";

const LARGE = 5_000;
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
});
