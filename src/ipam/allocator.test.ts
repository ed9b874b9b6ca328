import { beforeEach, describe, expect, test } from "bun:test";
import {
  address,
  configurationChange,
  means,
  nodeChange,
  poolChange,
  prefix,
  request,
  reservationChange,
  seed,
  textsOf,
} from "../../test/support/ipam.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import type { Change } from "../datastore/datastore.ts";
import { type MemoryDatastore, openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import type { PluginError } from "../errors.ts";
import { formatPrefix, prefixContains } from "../ip/prefix.ts";
import { writeBlock } from "../model/ipam-block.ts";
import { blockKey, resourceKey } from "../model/keys.ts";
import { MACHINE_ANNOTATION } from "../model/machine-annotation.ts";
import { node as nodeKind } from "../model/node.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { assignOrdinal, emptyBlock } from "./block.ts";
import { findProblems } from "./invariants.ts";

let table: MemoryTable;
let store: MemoryDatastore;
let allocator: Allocator;
let now: () => Date;

beforeEach(async () => {
  table = new MemoryTable();
  store = openMemory(table);
  now = means().now;
  allocator = openAllocator(store, means({ now: () => now() }));
  await seed(store, nodeChange("node-1"), nodeChange("node-2", { rack: "2" }));
});

const fullBlockChange = (cidr: string): Change => {
  const taken = assignOrdinal(emptyBlock(prefix(cidr), undefined, 1n), 0, { handleId: cidr, secondary: {} });
  if (!taken) throw new Error("expected a free ordinal");
  return { kind: "put", key: blockKey(taken.block.cidr), value: writeBlock(taken.block) };
};
const problems = async () => findProblems(await readAllRecords(store));
const dual = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;

describe("assign() from pools of some namespaces", () => {
  const labels = (tenant: string) => ({ podNamespace: { name: tenant, labels: { tenant } } });
  beforeEach(() =>
    seed(
      store,
      poolChange("a", "10.1.0.0/24", { blockSize: 28, namespaceSelector: "tenant == 'a'" }),
      poolChange("b", "10.2.0.0/24", { blockSize: 28, namespaceSelector: "tenant == 'b'" }),
    ),
  );

  test("takes each pod's address from the pool of its namespace, in turn on one node", async () => {
    for (let index = 0; index < 4; index++) {
      for (const tenant of ["a", "b"]) {
        const { addresses } = await allocator.assign(request(`net.${tenant}${index}`, labels(tenant)));
        expect(addresses[0]?.pool).toBe(tenant);
      }
    }
    expect(await problems()).toEqual([]);
  });

  test("refuses a namespace that no pool serves, and a container without a pod", async () => {
    await allocator.assign(request("net.a", labels("a")));

    for (const more of [labels("c"), {}]) {
      const { kind } = await rejectionOf(() => allocator.assign(request("net.c", more)));
      expect(kind).toBe("addresses-exhausted");
    }
  });

  test("does not borrow from a block of another namespace's pool when its own is full", async () => {
    await seed(store, poolChange("a", "10.1.0.0/30", { blockSize: 30, namespaceSelector: "tenant == 'a'" }));
    await allocator.assign(request("net.b", labels("b")));
    for (let index = 0; index < 4; index++) await allocator.assign(request(`net.${index}`, labels("a")));

    const { kind, message, details } = await rejectionOf(() => allocator.assign(request("net.5", labels("a"))));
    expect([kind, message]).toEqual(["addresses-exhausted", expect.stringContaining('pool "a" 10.1.0.0/30')]);
    expect(details).toContain(`pool "b": its namespace selector tenant == 'b' does not select namespace "a"`);
  });

  test("leaves what a container has if the selector does not match any more", async () => {
    const first = await allocator.assign(request("net.a", labels("a")));
    await seed(store, poolChange("a", "10.1.0.0/24", { blockSize: 28, namespaceSelector: "tenant == 'z'" }));

    expect(textsOf(await allocator.assign(request("net.a", labels("a"))))).toEqual(textsOf(first));
  });
});

describe("assign() of any address", () => {
  beforeEach(() => seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 })));

  test("answers the address with its block and pool, and leaves a clean world", async () => {
    const { addresses } = await allocator.assign(request("net.a"));

    expect(addresses).toMatchObject([{ pool: "blue", given: false, held: false, block: { length: 28 } }]);
    expect(await problems()).toEqual([]);
  });

  test("gives the same handle what it has, not a second address", async () => {
    const first = await allocator.assign(request("net.a"));
    const again = await openAllocator(store, means()).assign(request("net.a"));

    expect(textsOf(again)).toEqual(textsOf(first));
    expect(again.addresses[0]?.held).toBe(true);
  });

  test("gives another interface of the same container an address of its own", async () => {
    const first = await allocator.assign(request("net.a", { interface: "eth0" }));
    const second = await allocator.assign(request("net.a", { interface: "eth1" }));
    const again = await allocator.assign(request("net.a", { interface: "eth0" }));

    expect(textsOf(second)).not.toEqual(textsOf(first));
    expect(textsOf(again)).toEqual(textsOf(first));
    expect(await problems()).toEqual([]);
  });

  test("gives the same container ID on another node an address of its own, and each node releases only its own", async () => {
    const first = await allocator.assign(request("net.a"));
    const second = await allocator.assign(request("net.a", { node: "node-2" }));

    expect(textsOf(second)).not.toEqual(textsOf(first));
    expect(await allocator.held({ handle: "net.a", node: "node-1" })).toMatchObject([
      { address: first.addresses[0]?.address },
    ]);
    expect(await allocator.releaseHandle({ handle: "net.a", node: "node-2" })).toEqual(
      second.addresses.map((each) => each.address),
    );
    expect(textsOf(await allocator.assign(request("net.a")))).toEqual(textsOf(first));
    expect(await problems()).toEqual([]);
  });

  test("refuses a node that another machine has registered, and names both machines and the remedy", async () => {
    const value = nodeKind.write(
      nodeKind.make({ name: "node-3", annotations: { [MACHINE_ANNOTATION]: "machine-a" } }, {}),
    );
    await seed(store, { kind: "put", key: resourceKey("nodes", { name: "node-3" }), value });
    const from = (machine: string | undefined) =>
      allocator.assign(request("net.a", { node: "node-3", machineIdentity: () => machine }));

    for (const machine of ["machine-b", undefined]) {
      const refusal = (await rejectionOf(() => from(machine))) as PluginError;
      expect(refusal.kind).toBe("config-invalid");
      for (const each of ["machine-a", machine ?? "without an ID"]) expect(refusal.message).toContain(each);
      expect(refusal.details).toContain("node register");
    }
    expect((await from("machine-a")).addresses).toHaveLength(1);
  });

  test("keeps an address that was recorded for the former name of the host, under the new name", async () => {
    const first = await allocator.assign(request("net.a"));
    const again = await allocator.assign(request("net.a", { node: "node-2", onAnyNode: textsOf(first) }));

    expect(textsOf(again)).toEqual(textsOf(first));
    expect(again.addresses[0]?.formerNode).toBe("node-1");
    expect(await allocator.held({ handle: "net.a", node: "node-1" })).toEqual([]);
    expect(await allocator.held({ handle: "net.a", node: "node-2" })).toHaveLength(1);
    expect(await problems()).toEqual([]);
  });

  test("fills a block of its own before it claims another", async () => {
    const blocks = new Set<string>();
    for (let index = 0; index < 17; index++) {
      const { addresses } = await allocator.assign(request(`net.${index}`));
      for (const each of addresses) blocks.add(formatPrefix(each.block));
    }

    expect(blocks.size).toBe(2);
    expect(await problems()).toEqual([]);
  });

  test("passes over reserved addresses", async () => {
    await seed(store, reservationChange("front", ["10.0.0.0/25", "10.0.0.128/26", "10.0.0.192/27", "10.0.0.224/28"]));

    const { addresses } = await allocator.assign(request("net.a"));

    expect(addresses.every((each) => prefixContains(prefix("10.0.0.240/28"), each.address))).toBe(true);
  });

  test("gives each node blocks of its own", async () => {
    const one = await allocator.assign(request("net.a"));
    const two = await allocator.assign(request("net.b", { node: "node-2" }));

    expect(one.addresses[0]?.block).not.toEqual(two.addresses[0]?.block);
  });
});

describe("assign() of both families", () => {
  test("gives one of each", async () => {
    await seed(store, poolChange("four", "10.0.0.0/24"), poolChange("six", "fd00::/64"));

    const { addresses } = await allocator.assign(request("net.a", { addressRequests: dual }));

    expect(addresses.map((each) => each.pool)).toEqual(["four", "six"]);
    expect(await problems()).toEqual([]);
  });

  test("takes neither when one of them cannot be had", async () => {
    await seed(store, poolChange("four", "10.0.0.0/24"));

    const error = await rejectionOf(() => allocator.assign(request("net.a", { addressRequests: dual })));

    expect(error.kind).toBe("addresses-exhausted");
    expect((await readAllRecords(store)).handles).toEqual([]);
  });

  test("adds the family that a handle lacks to the one it has", async () => {
    await seed(store, poolChange("four", "10.0.0.0/24"), poolChange("six", "fd00::/64"));
    const first = await allocator.assign(request("net.a"));

    const both = await allocator.assign(request("net.a", { addressRequests: dual }));

    expect(textsOf(both)[0]).toBe(textsOf(first)[0] as string);
    expect(both.addresses.map((each) => each.held)).toEqual([true, false]);
    expect(await problems()).toEqual([]);
  });
});

describe("assign() when blocks run out", () => {
  const fill = async (node: string, count: number) => {
    for (let index = 0; index < count; index++) await allocator.assign(request(`${node}.${index}`, { node }));
  };

  test("borrows from another node's block when no new block is to be had", async () => {
    await seed(store, poolChange("small", "10.0.0.0/28", { blockSize: 29 }));
    await fill("node-2", 1);
    await fill("node-1", 9);

    expect(await problems()).toEqual([]);
    expect((await readAllRecords(store)).affinities).toHaveLength(2);
  });

  test("keeps to its own blocks under strict affinity, and says how full the pools are", async () => {
    await seed(
      store,
      poolChange("small", "10.0.0.0/28", { blockSize: 29 }),
      configurationChange({ strictAffinity: true }),
    );
    await fill("node-2", 1);

    const error = await rejectionOf(() => fill("node-1", 9));

    expect(error.kind).toBe("addresses-exhausted");
    expect(error.message).toContain('pool "small" 10.0.0.0/28 (9 of 16 used)');
    expect(error.details).toContain("strictAffinity");
  });

  test("claims no more blocks than a host may have, then borrows", async () => {
    await seed(store, poolChange("p", "10.0.0.0/24", { blockSize: 29 }), configurationChange({ maxBlocksPerHost: 1 }));
    await fill("node-2", 1);
    await fill("node-1", 10);

    const { affinities } = await readAllRecords(store);
    expect(affinities.filter((each) => each.node === "node-1")).toHaveLength(1);
    expect(await problems()).toEqual([]);
  });

  test("claims nothing where blocks are not allocated automatically", async () => {
    await seed(store, poolChange("p", "10.0.0.0/24"), configurationChange({ autoAllocateBlocks: false }));

    const error = await rejectionOf(() => fill("node-1", 1));

    expect(error.kind).toBe("addresses-exhausted");
    expect(error.details).toContain("autoAllocateBlocks");
  });

  test("gives every address of a pool before it is exhausted", async () => {
    await seed(store, poolChange("p", "10.0.0.0/27", { blockSize: 29 }));
    await fill("node-1", 20);
    await fill("node-2", 12);

    const error = await rejectionOf(() => allocator.assign(request("one.more")));
    expect(error.kind).toBe("addresses-exhausted");
    expect(error.message).toContain("(32 of 32 used)");
    expect(await problems()).toEqual([]);
  });

  test("finds the one gap in a large pool whose candidates all exist", async () => {
    await seed(store, poolChange("p", "10.0.0.0/20", { blockSize: 32 }));
    const singles = Array.from({ length: 4095 }, (_, index) => fullBlockChange(`10.0.${index >> 8}.${index & 255}/32`));
    await seed(store, ...singles);
    store.roundTrips = 0;

    const last = await allocator.assign(request("last"));

    expect(textsOf(last)).toEqual(["10.0.15.255"]);
    expect(store.roundTrips).toBeLessThan(45);
    expect((await rejectionOf(() => allocator.assign(request("too.many")))).kind).toBe("addresses-exhausted");
  });
});

describe("assign() of a given address", () => {
  const given = (text: string, more = {}) =>
    request("net.a", { addressRequests: [{ kind: "given", address: address(text) }], ...more });

  beforeEach(() =>
    seed(
      store,
      poolChange("blue", "10.0.0.0/24", { blockSize: 28, nodeSelector: "rack == '9'", allowedUses: ["Tunnel"] }),
      poolChange("off", "10.9.0.0/24", { disabled: true }),
      reservationChange("r", ["10.0.0.7"]),
    ),
  );

  test("gives it, whatever node selector, use and reservation say", async () => {
    const assigned = await allocator.assign(given("10.0.0.7"));

    expect(textsOf(assigned)).toEqual(["10.0.0.7"]);
    expect(assigned.addresses[0]?.given).toBe(true);
    expect(await problems()).toEqual([]);
  });

  test("gives it again to whom it belongs", async () => {
    await allocator.assign(given("10.0.0.7"));

    expect((await allocator.assign(given("10.0.0.7"))).addresses[0]?.held).toBe(true);
  });

  test("says who has it when it is taken", async () => {
    await allocator.assign(given("10.0.0.7", { attributes: { pod: "web", namespace: "shop" } }));

    const error = await rejectionOf(() => allocator.assign({ ...given("10.0.0.7"), handle: "net.b" }));
    expect(error.kind).toBe("address-taken");
    expect(error.message).toContain('handle "net.a", pod "shop/web", node "node-1"');
  });

  test.each(["10.9.0.1", "192.0.2.1", "fd00::1"])("refuses %s, which lies in no enabled pool", async (text) => {
    const error = await rejectionOf(() => allocator.assign(given(text)));

    expect(error.kind).toBe("address-outside-pools");
    expect(error.details).toContain("blue 10.0.0.0/24");
  });

  test("refuses one outside the pools of the network, and names them", async () => {
    await seed(store, poolChange("red", "10.8.0.0/24"), poolChange("green", "10.7.0.0/24"));
    const within = (text: string, pools: readonly string[]) =>
      allocator.assign(given(text, { addressRequests: [{ kind: "given", address: address(text), pools }] }));

    const error = await rejectionOf(() => within("10.8.0.1", ["green", "10.0.0.0/24"]));
    expect(error.kind).toBe("address-outside-pools");
    expect(error.message).toContain('pool "red", which is not listed in "ipam.ipv4_pools"');
    expect(error.details).toBe("pools: green 10.7.0.0/24, blue 10.0.0.0/24 (of nodes rack == '9')");
    expect((await rejectionOf(() => within("10.8.0.1", ["absent"]))).kind).toBe("pool-unknown");
    expect(textsOf(await within("10.8.0.1", ["10.8.0.0/24"]))).toEqual(["10.8.0.1"]);
  });

  test("refuses a second address to one attachment, and takes nothing", async () => {
    await allocator.assign(given("10.0.0.7"));

    const error = await rejectionOf(() => allocator.assign(given("10.0.0.8")));
    expect(error.kind).toBe("address-taken");
    expect(error.message).toContain('already has "10.0.0.7"');
    expect(textsOf(await allocator.assign(given("10.0.0.8", { handle: "net.b" })))).toEqual(["10.0.0.8"]);
    expect(await problems()).toEqual([]);
  });

  test("takes it from another node's block, except under strict affinity", async () => {
    await allocator.assign({ ...given("10.0.0.1"), handle: "net.b", node: "node-2" });
    await allocator.assign(given("10.0.0.2"));
    await seed(store, configurationChange({ strictAffinity: true }));

    const error = await rejectionOf(() => allocator.assign({ ...given("10.0.0.3"), handle: "net.c" }));
    expect(error.kind).toBe("address-taken");
  });
});

describe("the blocks of a node", () => {
  beforeEach(() =>
    seed(
      store,
      poolChange("small", "10.0.0.0/24", { blockSize: 30 }),
      poolChange("other", "10.1.0.0/24", { blockSize: 28 }),
    ),
  );
  const from = (pool: string) => ({ addressRequests: [{ kind: "automatic", family: 4, pools: [pool] }] }) as const;
  const handles = Array.from({ length: 80 }, (_, index) => `net.${index}`);

  test("a limit reached in one pool does not keep another pool's addresses away", async () => {
    for (const handle of handles) await allocator.assign(request(handle, from("small")));
    expect((await readAllRecords(store)).affinities).toHaveLength(20);

    expect(textsOf(await allocator.assign(request("net.other", from("other"))))[0]).toStartWith("10.1.0.");
    await seed(store, configurationChange({ maxBlocksPerHost: 1, strictAffinity: true }));
    const refusal = (await rejectionOf(() => allocator.assign(request("net.last", from("small"))))) as PluginError;
    expect(refusal.details).toMatch(
      /maxBlocksPerHost .*20 blocks in pool "small" \(10\.0\.0\.\d+\/30, .* and 17 more\)/,
    );
  });

  test("are given back when they are empty, and deleted when they have rested; one spare per pool stays", async () => {
    for (const handle of handles) await allocator.assign(request(handle, from("small")));
    for (const handle of ["net.a", "net.b"]) await allocator.assign(request(handle, from("other")));
    for (const handle of [...handles, "net.a", "net.b"]) await allocator.releaseHandle({ handle, node: "node-1" });
    expect((await readAllRecords(store)).affinities).toHaveLength(2);
    expect(await problems()).toEqual([]);

    // Each DEL deletes some of them.
    now = () => new Date("2026-01-02T03:07:05Z");
    for (const handle of handles) await allocator.releaseHandle({ handle, node: "node-1" });
    const { blocks, affinities } = await readAllRecords(store);
    expect(blocks.map(({ cidr }) => cidr.length).sort()).toEqual([28, 30]);
    expect(affinities).toHaveLength(2);
    expect(await problems()).toEqual([]);
  });

  test("a single workload that comes and goes costs no more round trips for that", async () => {
    await allocator.assign(request("net.a", from("small")));
    for (let turn = 0; turn < 3; turn++) {
      store.roundTrips = 0;
      await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
      expect(store.roundTrips).toBe(2);
      await allocator.assign(request("net.a", from("small")));
      expect(store.roundTrips).toBe(4);
    }
  });
});
