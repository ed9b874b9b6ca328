/** Leaks that are released while others write: an ADD of the same container, and of others in the same block. */
import { expect, test } from "bun:test";
import { means, podRequest, poolChange, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { openAllocator } from "../allocator.ts";
import type { AssignRequest } from "../request.ts";
import { readNodeRecords } from "./node-records.ts";
import { releaseLeaks } from "./release.ts";
import { releaseCandidate } from "./release-in-cluster.ts";

const request = (container: string): AssignRequest => ({
  ...podRequest(container, { pod: container, node: "n1" }),
  addressRequests: [{ kind: "automatic", family: 4 }],
});

/** A container of node n1 with an endpoint, whose address is judged to be leaked. */
async function leakedContainer() {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }));
  const add = async (container: string, through: Datastore = store) =>
    openAllocator(through, means()).assign(
      { ...request(container), renewsHeld: true },
      {
        wanted: [{ kind: "key", key }],
        changes: ([held]) => {
          const revision = held?.[0]?.revision;
          if (container !== "c1") return [];
          // As the plugin does: an equal record is not written.
          return revision === undefined
            ? [{ kind: "create", key, value: '{"containerID":"c1"}' }]
            : [{ kind: "expect", key, revision }];
        },
      },
    );
  let key = "";
  await openAllocator(store, means()).assign(request("c1"));
  const { allocations } = await readNodeRecords(store, "n1");
  key = allocations[0]?.endpointKey ?? "";
  await seed(store, { kind: "put", key, value: '{"containerID":"c1"}' });
  const { endpoints } = await readNodeRecords(store, "n1");
  const leaks = allocations.map((allocation) => ({ allocation, reason: "" }));
  const release = (through: Datastore) =>
    releaseLeaks(
      leaks,
      { endpoints },
      { store: through, allocator: openAllocator(through, means()), forget: async () => {} },
    );
  const isRemoval = (changes: readonly { readonly kind: string; readonly key: string }[]) =>
    changes.some((change) => change.kind === "delete" && change.key === key);
  const left = async () => {
    const records = await readNodeRecords(store, "n1");
    const held = records.allocations.filter(({ containerId }) => containerId === "c1").length;
    return { addresses: held, endpoints: records.endpoints.size };
  };
  return { store, add, release, isRemoval, left, allocations };
}

test("an ADD of the container that has read its endpoint before it was removed writes it again", async () => {
  const { store, add, release, isRemoval, left } = await leakedContainer();
  const [hasRead, mayWrite] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = storeAround(store, {
    async commit(changes) {
      hasRead.resolve();
      await mayWrite.promise;
      return store.commit(changes);
    },
  });
  const adding = add("c1", slow);
  await hasRead.promise;
  const interrupted = storeAround(store, {
    async commit(changes) {
      const written = await store.commit(changes);
      if (isRemoval(changes)) {
        mayWrite.resolve();
        await adding;
      }
      return written;
    },
  });

  expect(await release(interrupted)).toEqual([]);
  expect(await left()).toEqual({ addresses: 1, endpoints: 1 });
});

test("an address whose endpoint cannot be removed is kept, and the next search releases both", async () => {
  const { store, add, release, isRemoval, left } = await leakedContainer();
  let others = 0;
  const busy = storeAround(store, {
    async commit(changes) {
      if (isRemoval(changes)) await add(`other-${others++}`);
      return store.commit(changes);
    },
  });

  expect(await release(busy)).toEqual([]);
  expect(await left()).toEqual({ addresses: 1, endpoints: 1 });
  expect(await release(store)).toHaveLength(1);
  expect(await left()).toEqual({ addresses: 0, endpoints: 0 });
});

test("the controllers leave the endpoint of a pod alone where it is the pod itself", async () => {
  const { store, isRemoval, left, allocations } = await leakedContainer();
  const forbidding = storeAround(store, {
    commit: async (changes) => (isRemoval(changes) ? Promise.reject(new Error("forbidden")) : store.commit(changes)),
  });
  const reason = `pod ${allocations[0]?.pod?.namespace}/c1 does not exist`;
  const outcome = await releaseCandidate(
    {
      ...{ handle: allocations[0]?.handle ?? "", allocations, reason },
      ...{ isNodeGone: false, milliseconds: undefined, isOverdue: true },
    },
    {
      ...{ store: forbidding, allocator: openAllocator(forbidding, means()), hasEndpointRecords: false },
      datastoreNow: means().now,
      ...{
        mayWrite: () => true,
        readPod: async () => undefined,
        podsOfMachine: async () => [],
        isAbsent: async () => false,
      },
    },
  );

  expect(outcome).toMatchObject({ kind: "released" });
  expect((await left()).addresses).toBe(0);
});

test("the use of a container on a node that is gone ends, although another of the pod uses a further address", async () => {
  const store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }));
  const keep = { handle: "keep-1", when: "always", title: 'pod "red/db-0"' } as const;
  const assign = (containerId: string, node: string, ifname: string) =>
    openAllocator(store, means()).assign({
      ...podRequest(containerId, { pod: "db-0", node }),
      ...{ interface: ifname, keep: { ...keep, containerId } },
      addressRequests: [{ kind: "automatic", family: 4 }],
    });
  await assign("c1", "n1", "net1");
  await assign("c2", "n2", "eth0");
  const { allocations } = await readNodeRecords(store, "n1");
  const outcome = await releaseCandidate(
    {
      ...{
        handle: keep.handle,
        allocations,
        reason: `node n1 is gone, and pod ${allocations[0]?.pod?.namespace}/db-0 does not exist`,
      },
      ...{ isNodeGone: true, milliseconds: undefined, isOverdue: false },
    },
    {
      ...{ store, allocator: openAllocator(store, means()), hasEndpointRecords: false, datastoreNow: means().now },
      ...{
        mayWrite: () => true,
        readPod: async () => undefined,
        podsOfMachine: async () => [],
        isAbsent: async () => true,
      },
    },
  );

  expect(outcome).toMatchObject({ kind: "released", released: [{ containerId: "c1" }] });
  expect((await readNodeRecords(store, "n2")).allocations).toMatchObject([{ containerId: "c2" }]);
});
