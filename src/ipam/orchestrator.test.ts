/** The allocator on the orchestrator's API: its records are the product's custom resources. */
import { beforeEach, describe, expect, test } from "bun:test";
import { means, poolChange, request, seed, textsOf } from "../../test/support/ipam.ts";
import { type Around, type FakeApi, startFakeApi } from "../datastore/kube/fake-api.ts";
import { productMapping } from "../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import { openAllocator } from "./allocator.ts";
import { findProblems } from "./invariants.ts";
import { readWorld } from "./world.ts";

let api: FakeApi;
let marks = 0;

beforeEach(async () => {
  api = startFakeApi();
  await seed(openStore(), poolChange("blue", "10.0.0.0/24", { blockSize: 28 }), poolChange("six", "fd00::/64"));
});

function openStore(around?: Around) {
  const client = api.connect(around);
  return openKubeStore({ api: client, mappings: productMapping(() => String(++marks)), close: () => client.close() });
}

const DUAL = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;

describe("the allocator on the orchestrator's API", () => {
  test("assigns and releases; nothing is left but blocks and their claims", async () => {
    const store = openStore();
    const allocator = openAllocator(store, means());
    const given = await allocator.assign(request("net.a", { wishes: DUAL }));
    const again = await allocator.assign(request("net.a", { wishes: DUAL }));
    const world = await readWorld(store);

    expect(textsOf(given)).toHaveLength(2);
    expect(textsOf(again)).toEqual(textsOf(given));
    expect(world.handles).toHaveLength(1);
    expect(findProblems(world)).toEqual([]);
    expect(await allocator.releaseHandle({ handle: "net.a", node: "node-1" })).toHaveLength(2);
    expect((await readWorld(store)).handles).toEqual([]);
    expect(findProblems(await readWorld(store))).toEqual([]);
  });

  test("gives no address twice to many nodes at once, though each loses races", async () => {
    const nodes = ["node-1", "node-2", "node-3", "node-4"];
    const given = await Promise.all(
      nodes.map(async (node) => {
        const allocator = openAllocator(openStore(slowly()), means());
        const all: string[] = [];
        for (let count = 0; count < 20; count++) {
          all.push(...textsOf(await allocator.assign(request(`net.${node}-${count}`, { node, wishes: DUAL }))));
        }
        return all;
      }),
    );
    const all = given.flat();

    expect(new Set(all).size).toBe(160);
    expect(findProblems(await readWorld(openStore()))).toEqual([]);
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
