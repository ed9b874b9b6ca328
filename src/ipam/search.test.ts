import { beforeEach, describe, expect, test } from "bun:test";
import {
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
import { formatPrefix, type Prefix, prefixContains } from "../ip/prefix.ts";
import { hostAffinity, writeBlock } from "../model/ipam-block.ts";
import { blockKey } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { emptyBlock } from "./block.ts";
import { findProblems } from "./invariants.ts";

let store: MemoryDatastore;

beforeEach(async () => {
  store = openMemory(new MemoryTable());
  await seed(store, nodeChange("node-1"), nodeChange("node-2", { rack: "2" }));
});

/** Without hints: a process that knows nothing. */
const allocator = () => openAllocator(store, means());
const problems = async () => findProblems(await readAllRecords(store));
const cidrs = (all: readonly { readonly cidr: Prefix }[]) => all.map(({ cidr }) => formatPrefix(cidr));
const six = [{ kind: "automatic", family: 6 }] as const;

describe("a block of a pool that no longer selects its node", () => {
  const moveAway = async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 }));
    await allocator().assign(request("net.a"));
    await seed(
      store,
      poolChange("blue", "10.0.0.0/24", { blockSize: 28, nodeSelector: "rack == '2'" }),
      poolChange("red", "10.1.0.0/24", { blockSize: 28 }),
    );
  };

  test("goes on the way of the next new block, once it is empty and has rested", async () => {
    await moveAway();
    await allocator().releaseHandle({ handle: "net.a", node: "node-1" });
    await allocator().assign(request("net.soon"));
    expect(cidrs((await readAllRecords(store)).blocks).some((cidr) => cidr.startsWith("10.0."))).toBe(true);
    await seed(store, poolChange("green", "10.1.1.0/24", { blockSize: 28 }));

    const rested = openAllocator(store, means({ now: () => new Date("2026-01-02T03:07:05Z") }));
    const { addresses } = await rested.assign(
      request("net.b", { addressRequests: [{ kind: "automatic", family: 4, pools: ["green"] }] }),
    );

    expect(addresses[0]?.pool).toBe("green");
    const { blocks, affinities } = await readAllRecords(store);
    expect(cidrs(blocks).every((cidr) => cidr.startsWith("10.1."))).toBe(true);
    expect(cidrs(affinities)).toEqual(cidrs(blocks));
    expect(await problems()).toEqual([]);
  });

  test("stays while addresses of it are in use, and they stay with their owners", async () => {
    await moveAway();

    await allocator().assign(request("net.b"));

    expect((await readAllRecords(store)).affinities).toHaveLength(2);
    expect((await allocator().held({ handle: "net.a", node: "node-1" })).length).toBe(1);
    expect(await problems()).toEqual([]);
  });

  test("stays when the pool is asked for by name, and its address is taken from it", async () => {
    await moveAway();
    await allocator().releaseHandle({ handle: "net.a", node: "node-1" });

    const addressRequests = [{ kind: "automatic", family: 4, pools: ["blue"] }] as const;
    const { addresses } = await allocator().assign(request("net.b", { addressRequests }));

    expect(addresses[0]?.pool).toBe("blue");
    expect((await readAllRecords(store)).blocks).toHaveLength(1);
    expect(await problems()).toEqual([]);
  });

  test("costs no round trip of its own", async () => {
    await moveAway();
    await allocator().releaseHandle({ handle: "net.a", node: "node-1" });
    store.roundTrips = 0;

    await allocator().assign(request("net.b"));

    expect(store.roundTrips).toBe(3);
  });
});

describe("reservations of whole blocks", () => {
  /** Everything of the pool but its last block. */
  const allButLast = (pool: Prefix, blockLength: number): string[] => {
    const { family, value } = pool.network;
    const bits = family === 4 ? 32 : 128;
    const halves: string[] = [];
    let start = value;
    for (let length = pool.length + 1; length <= blockLength; length++) {
      halves.push(formatPrefix({ network: { family, value: start }, length }));
      start += 1n << BigInt(bits - length);
    }
    return halves;
  };

  test.each([
    ["10.0.0.0/12", 26, "10.15.255.192/26", [{ kind: "automatic", family: 4 }]],
    ["fd00:1::/48", 122, "fd00:1:0:ffff:ffff:ffff:ffff:ffc0/122", six],
  ] as const)("of %s leave its last /%d to be found", async (cidr, blockSize, last, addressRequests) => {
    await seed(
      store,
      poolChange("p", cidr, { blockSize }),
      reservationChange("r", allButLast(prefix(cidr), blockSize)),
    );

    const { addresses } = await allocator().assign(request("net.a", { addressRequests }));

    expect(formatPrefix(addresses[0]?.block ?? prefix(cidr))).toBe(last);
    expect(store.roundTrips).toBeLessThan(10);
    expect(await problems()).toEqual([]);
  });

  test("of all there is end the search at once, and are named", async () => {
    await seed(store, poolChange("p", "fd00:1::/48"), reservationChange("r", ["fd00::/16"]));
    store.roundTrips = 0;

    const error = await rejectionOf(() => allocator().assign(request("net.a", { addressRequests: six })));

    expect(error.kind).toBe("addresses-exhausted");
    expect(error.details).toContain("reserved");
    expect(store.roundTrips).toBeLessThan(4);
  });
});

describe("odd pools", () => {
  test.each([
    ["10.0.0.0/32", 32, 1],
    ["10.0.0.0/29", 32, 8],
    ["10.0.0.0/29", 29, 8],
    ["10.0.0.0/20", 20, 4096],
    ["fd00::1/128", 128, 1],
    ["fd00::/125", 128, 8],
    ["fd00::/122", 122, 64],
  ] as const)("%s in blocks of /%d gives each of its %d addresses once", async (cidr, blockSize, size) => {
    await seed(store, poolChange("p", cidr, { blockSize }), configurationChange({ maxBlocksPerHost: 3 }));
    const addressRequests = [{ kind: "automatic", family: cidr.includes(":") ? 6 : 4 }] as const;
    const shared = allocator();
    const seen = new Set<string>();
    const count = Math.min(size, 70);
    for (let index = 0; index < count; index++) {
      const assigned = await shared.assign(request(`net.${index}`, { addressRequests, node: `node-${index % 3}` }));
      expect(assigned.addresses.every((each) => prefixContains(prefix(cidr), each.address))).toBe(true);
      seen.add(textsOf(assigned).join());
    }

    expect(seen.size).toBe(count);
    if (count === size) {
      expect((await rejectionOf(() => shared.assign(request("more", { addressRequests })))).kind).toBe(
        "addresses-exhausted",
      );
    }
    expect(await problems()).toEqual([]);
  });
});

describe("a search through all blocks", () => {
  const fullBlock = (cidr: string): Change => {
    const empty = emptyBlock(prefix(cidr), hostAffinity("node-9"), 1n);
    const full = { ...empty, allocations: [0], unallocated: [], attributes: [{ handleId: cidr, secondary: {} }] };
    return { kind: "put", key: blockKey(full.cidr), value: writeBlock(full) };
  };

  test("does not grow with the number of pools that are full", async () => {
    const pools = Array.from({ length: 30 }, (_, index) => `10.${index}.0.0/24`);
    await seed(store, ...pools.map((cidr, index) => poolChange(`p${index}`, cidr, { blockSize: 32 })));
    const taken = pools.flatMap((_, pool) =>
      Array.from({ length: 256 }, (__, at) => fullBlock(`10.${pool}.0.${at}/32`)),
    );
    await seed(store, ...taken.slice(0, -1));
    store.roundTrips = 0;

    expect(textsOf(await allocator().assign(request("net.a")))).toEqual(["10.29.0.255"]);
    expect(store.roundTrips).toBeLessThan(45);
  });

  test("lets the others of the host go on meanwhile", async () => {
    await seed(store, poolChange("p", "10.0.0.0/20", { blockSize: 32 }));
    await seed(store, ...Array.from({ length: 4096 }, (_, index) => fullBlock(`10.0.${index >> 8}.${index & 255}/32`)));
    let left = 0;
    const turn = <T>(work: (leave: () => void) => Promise<T>) =>
      work(() => {
        left += 1;
      });
    const searching = openAllocator(store, means({ turn }));

    expect((await rejectionOf(() => searching.assign(request("net.a")))).kind).toBe("addresses-exhausted");
    expect(left).toBe(1);
  });
});
