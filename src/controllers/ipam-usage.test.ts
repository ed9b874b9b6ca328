import { describe, expect, test } from "bun:test";
import { runInside } from "../../test/support/admin-context.ts";
import { means, nodeChange, poolChange, request, seed } from "../../test/support/ipam.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { readAllEntries } from "../datastore/pages.ts";
import { openAllocator } from "../ipam/allocator.ts";
import { decodeBlock, decodePool } from "../ipam/records.ts";
import { keepHandle } from "../model/kept-address.ts";
import { blocksPrefix } from "../model/keys.ts";
import { POOL } from "../model/kinds.ts";
import { ipamUsage } from "./ipam-usage.ts";

const NOW = Date.parse("2026-01-02T03:04:05Z");

interface Shown {
  readonly pools: readonly {
    readonly pool: string;
    readonly size: number;
    readonly used: number;
    readonly resting: number;
    readonly blocks: readonly { readonly node: string; readonly used: number; readonly borrowed: number }[];
  }[];
  readonly addresses: readonly { readonly node: string }[];
}

/** Two pools; node n2 has to borrow, since n1 has claimed the whole pool. */
async function cluster() {
  const store = openMemory();
  await seed(
    store,
    poolChange("blue", "10.0.0.0/29", { blockSize: 29 }),
    poolChange("green", "fd00::/64", { blockSize: 122 }),
    ...["n1", "n2"].map((name) => nodeChange(name)),
  );
  const allocator = openAllocator(store, means());
  for (const [index, node] of ["n1", "n1", "n2"].entries()) {
    await allocator.assign(
      request(`net.c${index}`, {
        network: "net",
        interface: "eth0",
        node,
        addressRequests: [
          { kind: "automatic", family: 4 },
          { kind: "automatic", family: 6 },
        ],
      }),
    );
  }
  return store;
}

/** Two pods of IPv6 that end: all of their addresses rest. */
async function releaseTwo(store: Datastore): Promise<void> {
  const allocator = openAllocator(store, means({ now: () => new Date(NOW) }));
  for (const index of [1, 2]) {
    const name = `net.gone-${index}`;
    const given = request(name, { node: "n1", addressRequests: [{ kind: "automatic", family: 6 }] });
    await allocator.assign(given);
    await allocator.releaseHandle(given);
  }
}

/** Of two pods that pool blue has no room for otherwise. */
async function keepTwo(store: Datastore): Promise<void> {
  const allocator = openAllocator(store, means());
  const handle = keepHandle({ network: "net", namespace: "shop", identity: "pod/db-0" });
  for (const ifname of ["eth0", "eth1"]) {
    await allocator.assign(
      request(handle, {
        ...{ network: "net", interface: ifname, node: "n1" },
        attributes: { pod: "db-0", namespace: "shop", kept: "60", containerID: "c9" },
        addressRequests: [{ kind: "automatic", family: 4 }],
      }),
    );
  }
  const [first] = await allocator.held({ handle, node: "n1", interface: "eth0" });
  if (first !== undefined) await allocator.releaseAddresses([first]);
}

describe("ipamUsage()", () => {
  test("has the figures of ipam show", async () => {
    const store = await cluster();
    await keepTwo(store);
    await releaseTwo(store);
    const show = async (words: string): Promise<Shown> =>
      JSON.parse((await runInside(`ipam show ${words} -o json`.split(" "), { store, now: new Date(NOW) })).stdout);
    const entries = [
      ...(await readAllEntries(store, blocksPrefix(4))),
      ...(await readAllEntries(store, blocksPrefix(6))),
    ];
    const pools = (await readAllEntries(store, POOL.prefix())).map(decodePool);
    const usage = ipamUsage(pools, entries.map(decodeBlock), new Date(NOW));

    const shown = await show("--show-blocks");
    expect(usage.pools.map(({ pool, size, inUse, resting }) => [pool, size, inUse, resting])).toEqual(
      shown.pools.map(({ pool, size, used, resting }) => [pool, Number(size), used, resting]),
    );
    expect(usage.pools.map(({ resting }) => resting)).toEqual([0, 2]);
    const { addresses } = await show("--addresses");
    const blocks = shown.pools.flatMap((pool) => pool.blocks);
    for (const { node, inUse, blocks: count } of usage.nodes) {
      expect([node, inUse]).toEqual([node, addresses.filter((each) => each.node === node).length]);
      expect([node, count]).toEqual([node, blocks.filter((block) => block.node === node).length]);
    }
    const borrowed = usage.nodes.reduce((sum, each) => sum + each.borrowed, 0);
    expect(borrowed).toBe(blocks.reduce((sum, block) => sum + block.borrowed, 0));
    expect(usage.pools.map(({ kept, waiting }) => [kept, waiting])).toEqual([
      [2, 1],
      [0, 0],
    ]);
    expect(usage.nodes.find(({ node }) => node === "n2")).toMatchObject({ inUse: 2, borrowed: 1, blocks: 1 });
  });
});
