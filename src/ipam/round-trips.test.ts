import { beforeEach, describe, expect, test } from "bun:test";
import { means, nodeChange, poolChange, request, seed } from "../../test/support/ipam.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import { type MemoryDatastore, openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { openHintMemory } from "./hint-file.ts";
import type { HostHints } from "./hints.ts";
import { findProblems } from "./invariants.ts";

let table: MemoryTable;
let store: MemoryDatastore;
let allocator: Allocator;

beforeEach(async () => {
  table = new MemoryTable();
  store = openMemory(table);
  allocator = openAllocator(store, means());
  await seed(store, nodeChange("node-1"), nodeChange("node-2", { rack: "2" }));
});

const problems = async () => findProblems(await readAllRecords(store));
const dual = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;

describe("round trips", () => {
  beforeEach(() => seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 29 }), poolChange("six", "fd00::/64")));
  const roundTripsOf = async (work: () => Promise<unknown>) => {
    const before = store.roundTrips;
    await work();
    return store.roundTrips - before;
  };

  test("are 3 for the first assignment of a node and for a new block, 2 for every other and for a release", async () => {
    const counts: number[] = [];
    for (let index = 0; index < 9; index++) {
      counts.push(await roundTripsOf(() => allocator.assign(request(`net.${index}`))));
    }
    expect(counts).toEqual([3, 2, 2, 2, 2, 2, 2, 2, 3]);
    expect(await roundTripsOf(() => allocator.releaseHandle({ handle: "net.3", node: "node-1" }))).toBe(2);
    expect(await roundTripsOf(() => allocator.assign(request("net.dual", { addressRequests: dual })))).toBe(3);
    expect(await roundTripsOf(() => allocator.assign(request("net.dual2", { addressRequests: dual })))).toBe(2);
  });

  test("are not saved by believing hints: wrong ones cost one more, and harm nothing", async () => {
    const wrong = { blocks: [{ cidr: "10.0.0.248/29", full: false }], warnedUnregistered: false };
    await allocator.assign(request("net.a"));
    const misled = openAllocator(store, means({ hints: { load: async () => wrong, save: async () => {} } }));

    expect(await roundTripsOf(() => misled.assign(request("net.b")))).toBe(3);
    expect(await roundTripsOf(() => misled.releaseHandle({ handle: "net.b", node: "node-1" }))).toBe(3);
    expect(await problems()).toEqual([]);
  });

  test("hints are looked up once where nothing is new, and again before they are written", async () => {
    const kept = openHintMemory();
    const done: string[] = [];
    const load = () => {
      done.push("load");
      return kept.load();
    };
    const save = (hints: HostHints) => {
      done.push("save");
      return kept.save(hints);
    };
    const watched = openAllocator(store, means({ hints: { load, save } }));
    const doneBy = async (handle: string) => {
      done.length = 0;
      await watched.assign(request(handle));
      return [...done];
    };

    expect(await doneBy("net.first")).toEqual(["load", "load", "save"]);
    expect(await doneBy("net.second")).toEqual(["load"]);
  });
});

describe("a node that has not registered", () => {
  test("counts as one without labels, and that is said once", async () => {
    await seed(
      store,
      poolChange("all", "10.0.0.0/24"),
      poolChange("rack", "10.1.0.0/24", { nodeSelector: "has(rack)" }),
    );
    const warnings: string[] = [];
    const warned = openAllocator(store, means({ warn: (message) => warnings.push(message) }));

    const { addresses } = await warned.assign(request("net.a", { node: "stranger" }));
    await warned.assign(request("net.b", { node: "stranger" }));

    expect(addresses[0]?.pool).toBe("all");
    expect(warnings).toHaveLength(1);
  });
});

describe("a pool that is changed while a block of it is claimed", () => {
  test("is looked at again before the claim: a disabled one gets no new block", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24"));
    const late = openMemory(table);
    const disabling = storeAround(late, {
      commit: async (changes) => {
        await seed(store, poolChange("blue", "10.0.0.0/24", { disabled: true }));
        return late.commit(changes);
      },
    });

    const error = await rejectionOf(() => openAllocator(disabling, means()).assign(request("net.a")));

    expect(error.kind).toBe("addresses-exhausted");
    expect((await readAllRecords(store)).blocks).toEqual([]);
  });
});

describe("a caller's own keys and changes", () => {
  test("are read and committed in the same round trips", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24"), { kind: "put", key: "/mine", value: "read" });
    await allocator.assign(request("net.warm"));
    store.roundTrips = 0;
    const seen: string[] = [];

    await allocator.assign(request("net.a"), {
      wanted: [{ kind: "key", key: "/mine" }],
      changes: ([mine], { addresses }) => {
        seen.push(mine?.[0]?.value ?? "", ...addresses.map((each) => each.pool ?? ""));
        return [{ kind: "create", key: "/endpoint", value: "written" }];
      },
    });

    expect(store.roundTrips).toBe(2);
    expect(seen).toEqual(["read", "blue"]);
    expect((await store.read([{ kind: "key", key: "/endpoint" }])).answers[0]?.[0]?.value).toBe("written");
  });

  test("refuse the whole when they throw: no address is taken", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24"));

    const attempt = allocator.assign(request("net.a"), {
      wanted: [],
      changes: () => {
        throw new Error("not ready");
      },
    });

    expect(attempt).rejects.toThrow("not ready");
    expect((await readAllRecords(store)).handles).toEqual([]);
  });
});
