/** The allocator on the orchestrator's API: its records are the product's custom resources. */
import { beforeEach, describe, expect, test } from "bun:test";
import { means, poolChange, request, seed, textsOf } from "../../test/support/ipam.ts";
import { type Around, type FakeApi, startFakeApi } from "../../test/support/kube-api/fake-api.ts";
import { pollUntil } from "../../test/support/poll.ts";
import type { Datastore, Wanted } from "../datastore/datastore.ts";
import { type Observer, openCopyingStore } from "../datastore/kube/copying-store.ts";
import { productMapping } from "../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import { resourceKey, resourcesPrefix } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import type { Turn } from "./host-turn.ts";
import { findProblems } from "./invariants.ts";

let api: FakeApi;
let marks = 0;

beforeEach(async () => {
  api = startFakeApi();
  await seed(openStore(), poolChange("blue", "10.0.0.0/24", { blockSize: 28 }), poolChange("six", "fd00::/64"));
});

function openStore(around?: Around, observer?: Observer) {
  const client = api.connect(around);
  return openKubeStore({
    api: client,
    mappings: productMapping(() => String(++marks)),
    close: () => client.close(),
    ...(observer && { observer }),
  });
}

/** As the node agent opens it: decides from copies. */
const openAgentStore = (around?: Around) => openCopyingStore((observer) => openStore(around, observer));

/** Until a decision from copies sees the pool. */
async function untilCopied(store: Datastore, pool: string): Promise<void> {
  const wanted: Wanted = { kind: "prefix", prefix: resourcesPrefix("ippools") };
  const isCopied = async () => {
    const decisions: (readonly string[])[] = [];
    await store.transact([wanted], ([read]) => {
      decisions.push(read?.answers.flat().map(({ key }) => key) ?? []);
      return { kind: "commit", changes: [], outcome: undefined };
    });
    // With nothing to change it decides once more, from what it reads.
    return decisions.length === 2 && decisions[0]?.includes(resourceKey("ippools", { name: pool })) === true;
  };
  await pollUntil(isCopied, `a copy of pool ${pool}`);
}

const DUAL = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;

describe.each([
  ["of a plugin process", openStore],
  ["of a node agent", openAgentStore],
])("the allocator %s on the orchestrator's API", (_, openOne: (around?: Around) => Datastore) => {
  test("assigns and releases; nothing is left but blocks and their claims", async () => {
    const store = openOne();
    const allocator = openAllocator(store, means());
    const given = await allocator.assign(request("net.a", { addressRequests: DUAL }));
    const again = await allocator.assign(request("net.a", { addressRequests: DUAL }));
    const world = await readAllRecords(store);

    expect(textsOf(given)).toHaveLength(2);
    expect(textsOf(again)).toEqual(textsOf(given));
    expect(world.handles).toHaveLength(1);
    expect(findProblems(world)).toEqual([]);
    expect(await allocator.releaseHandle({ handle: "net.a", node: "node-1" })).toHaveLength(2);
    expect((await readAllRecords(store)).handles).toEqual([]);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("gives no address twice to many nodes at once, though each loses races", async () => {
    const nodes = ["node-1", "node-2", "node-3", "node-4"];
    const given = await Promise.all(
      nodes.map(async (node) => {
        const allocator = openAllocator(openOne(slowly()), means());
        const all: string[] = [];
        for (let count = 0; count < 20; count++) {
          all.push(
            ...textsOf(await allocator.assign(request(`net.${node}-${count}`, { node, addressRequests: DUAL }))),
          );
        }
        return all;
      }),
    );
    const all = given.flat();

    expect(new Set(all).size).toBe(160);
    expect(findProblems(await readAllRecords(openStore()))).toEqual([]);
  });
});

describe("requests of an assignment on the orchestrator's API", () => {
  test("lists pools and reservations while it waits for its turn, and only then", async () => {
    const asked: string[] = [];
    const store = openStore(async ({ method, path }, send) => {
      asked.push(`${method} ${path.replace(/.*v3\//, "")}`);
      return send();
    });
    const isListed = () => asked.includes("GET ippools") && asked.includes("GET ipreservations");
    const turn: Turn = async (work) => {
      await pollUntil(isListed, "the lists");
      asked.length = 0;
      return work(() => {});
    };
    const given = await openAllocator(store, { ...means(), turn }).assign(request("net.a"));

    expect(textsOf(given)).toHaveLength(1);
    expect(isListed()).toBe(false);
  });
});

describe("requests of a steady assignment on the orchestrator's API", () => {
  const asked: string[] = [];
  const listening: Around = async ({ method, path }, send) => {
    asked.push(`${method} ${path.split("/").slice(4, 5).join()}`);
    return send();
  };
  const counted = async (work: () => Promise<unknown>) => {
    asked.splice(0);
    await work();
    return asked.toSorted();
  };

  test("neither claims nor the handle, the node and the configuration are read", async () => {
    const allocator = openAllocator(openStore(listening), means());
    await allocator.assign(request("net.first"));

    expect(await counted(() => allocator.assign(request("net.a")))).toEqual([
      "GET clusterinformations",
      "GET ipamblocks",
      "GET ippools",
      "GET ipreservations",
      "POST ipamhandles",
      "PUT ipamblocks",
    ]);
    expect(await counted(() => allocator.releaseHandle({ handle: "net.a", node: "node-1" }))).toEqual([
      "DELETE ipamhandles",
      "GET clusterinformations",
      "GET ipamblocks",
      "GET ipamhandles",
      "PUT ipamblocks",
    ]);
  });

  test("a node agent reads the lock, and writes", async () => {
    const store = openAgentStore(listening);
    const allocator = openAllocator(store, means());
    await allocator.assign(request("net.first"));
    await untilCopied(store, "blue");

    expect(await counted(() => allocator.assign(request("net.a")))).toEqual([
      "GET clusterinformations",
      "POST ipamhandles",
      "PUT ipamblocks",
    ]);
    await store.close();
  });

  test("the node is read if a pool selects nodes by their labels", async () => {
    await seed(openStore(), poolChange("some", "10.9.0.0/24", { nodeSelector: "has(zone)" }));
    const allocator = openAllocator(openStore(listening), means());
    await allocator.assign(request("net.first"));
    await api.connect().request({ method: "POST", path: "/api/v1/nodes", body: '{"metadata":{"name":"node-1"}}' });

    expect(await counted(() => allocator.assign(request("net.a")))).toContain("GET node-1");
    expect(asked.filter((each) => each.endsWith("affinities"))).toEqual([]);
  });

  test("a second assignment to the same handle finds what it has, though the handle was not read", async () => {
    const first = openAllocator(openStore(), means());
    const given = await first.assign(request("net.a"));
    await first.assign(request("net.b"));
    // Another process, which remembers another block.
    const second = openAllocator(openStore(listening), means());
    await second.assign(request("net.c", { node: "node-2" }));

    expect(textsOf(await second.assign(request("net.a")))).toEqual(textsOf(given));
    expect(findProblems(await readAllRecords(openStore()))).toEqual([]);
  });

  test("a full block leads to the claims, and to another block", async () => {
    const allocator = openAllocator(openStore(), means());
    const given = new Set<string>();
    for (let count = 0; count < 40; count++)
      given.add(textsOf(await allocator.assign(request(`net.${count}`)))[0] ?? "");

    expect(given.size).toBe(40);
    expect((await readAllRecords(openStore())).blocks).toHaveLength(3);
    expect(findProblems(await readAllRecords(openStore()))).toEqual([]);
  });
});

describe("a pool with blocks on the orchestrator's API", () => {
  const PATH = "/apis/vendor.org/v3/ippools/blue";
  const key = resourceKey("ippools", { name: "blue" });
  const finalizers = () => api.object(PATH)?.metadata["finalizers"];
  const kubectlDelete = () => api.connect().request({ method: "DELETE", path: PATH });

  test("is protected by a finalizer before its first block exists", async () => {
    let protectedBefore: unknown;
    const store = openStore(async ({ method, path }, send) => {
      if (method === "POST" && path.endsWith("ipamblocks")) protectedBefore ??= finalizers();
      return send();
    });
    await openAllocator(store, means()).assign(request("net.a"));

    expect(protectedBefore).toEqual(["vendor.org/blocks"]);
  });

  test("is protected by a node agent, too, though it was added while the agent ran", async () => {
    const store = openAgentStore();
    await openAllocator(store, means()).assign(request("net.a"));
    await seed(openStore(), poolChange("later", "10.1.0.0/24", { blockSize: 28 }));
    await untilCopied(store, "later");
    const addressRequests = [{ kind: "automatic", family: 4, pools: ["later"] }] as const;
    await openAllocator(store, means()).assign(request("net.b", { addressRequests }));

    expect(api.object("/apis/vendor.org/v3/ippools/later")?.metadata["finalizers"]).toEqual(["vendor.org/blocks"]);
    await store.close();
  });

  test("is only marked by a deletion, which ends assignments from it; the product deletes it once it is empty", async () => {
    const store = openStore();
    const allocator = openAllocator(store, means());
    await allocator.assign(request("net.a"));
    await kubectlDelete();

    expect(api.object(PATH)).toBeDefined();
    const refused = allocator.assign(request("net.b"));
    expect(await refused.catch(({ kind }) => kind)).toBe("addresses-exhausted");
    await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    expect((await store.commit([{ kind: "delete", key, revision: entry?.revision ?? "" }])).ok).toBe(true);
    expect(api.object(PATH)).toBeUndefined();
  });

  test("is not given a block if it was deleted, or disabled, since it was read", async () => {
    let isDeleted = false;
    const store = openStore(async ({ method, path }, send) => {
      const response = send();
      if (method === "GET" && path.endsWith("/ippools") && !isDeleted) {
        isDeleted = true;
        await kubectlDelete();
      }
      return response;
    });
    const refused = openAllocator(store, means()).assign(request("net.a"));

    expect(await refused.catch(({ kind }) => kind)).toBe("addresses-exhausted");
    expect((await readAllRecords(store)).blocks).toEqual([]);
    expect(findProblems(await readAllRecords(store)).filter(({ severity }) => severity === "corrupt")).toEqual([]);
  });
});

/** Every response comes in a later turn, so that requests of others come between. */
function slowly(): Around {
  return async (_, send) => {
    await new Promise((resolve) => setImmediate(resolve));
    const response = send();
    await new Promise((resolve) => setImmediate(resolve));
    return response;
  };
}
