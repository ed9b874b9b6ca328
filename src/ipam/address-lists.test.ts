import { beforeEach, describe, expect, test } from "bun:test";
import { asItIs, copyingMemory } from "../../test/support/copying-memory.ts";
import {
  configurationChange,
  listChange,
  means,
  nodeChange,
  poolChange,
  request,
  reservationChange,
  seed,
  textsOf,
} from "../../test/support/ipam.ts";
import { LEVELS } from "../../test/support/stopping-memory.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Datastore, Wanted } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { ROOT_PREFIX, resourcesPrefix } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { findProblems } from "./invariants.ts";
import type { AddressRequest, AssignRequest } from "./request.ts";

const PLACE = 'annotation "x" of pod "shop/web"';
const listed = (more: Partial<Extract<AddressRequest, { kind: "listed" }>> = {}): AddressRequest => ({
  kind: "listed",
  list: "web",
  place: PLACE,
  ...more,
});
const pod = (name: string, more: Partial<AssignRequest> = {}): AssignRequest =>
  request(`net.${name}`, {
    network: "net",
    interface: "eth0",
    attributes: { pod: name, namespace: "shop" },
    podNamespace: { name: "shop", labels: { tenant: "a" } },
    addressRequests: [listed()],
    ...more,
  });

const MODES = [
  ...LEVELS.map((atomicity) => ({ title: `committing ${atomicity} at a time`, atomicity, openFor: asItIs })),
  { title: "by a node agent with copies", atomicity: "one object" as const, openFor: copyingMemory },
];

describe.each(MODES)("an address of a list, $title", ({ atomicity, openFor }) => {
  let table: MemoryTable;
  let now: Date;
  const store = () => openMemory(table, { atomicity });
  const on = async (datastore: Datastore) => openAllocator(await openFor(datastore, table), means({ now: () => now }));
  const assign = async (asked: AssignRequest) => textsOf(await (await on(store())).assign(asked));
  const refusal = (asked: AssignRequest) => rejectionOf(() => assign(asked));
  const release = async (name: string, node = "node-1") =>
    (await on(store())).releaseHandle({ handle: `net.${name}`, network: "net", interface: "eth0", node });
  const problems = async () => findProblems(await readAllRecords(store()));

  beforeEach(async () => {
    table = new MemoryTable();
    now = new Date("2026-01-02T03:04:05Z");
    await seed(
      store(),
      nodeChange("node-1"),
      nodeChange("node-2"),
      poolChange("blue", "10.0.0.0/24", { blockSize: 28 }),
      poolChange("six", "fd00::/112"),
      listChange("web", ["10.0.0.40", "10.0.0.7", "10.0.0.200"]),
    );
  });

  test("is the first free one in the list's order, on any node, and again the first once it is free", async () => {
    expect(await assign(pod("a"))).toEqual(["10.0.0.40"]);
    expect(await assign(pod("b", { node: "node-2" }))).toEqual(["10.0.0.7"]);
    expect(await assign(pod("c", { node: "node-2" }))).toEqual(["10.0.0.200"]);
    await release("a");
    expect(await assign(pod("d"))).toEqual(["10.0.0.40"]);
    expect(await problems()).toEqual([]);
  });

  test("is the one that the pod has, if it asks again, also after the list has changed", async () => {
    expect(await assign(pod("a"))).toEqual(["10.0.0.40"]);
    await seed(store(), listChange("web", ["10.0.0.7"], "tenant == 'b'"));

    expect(await assign(pod("a"))).toEqual(["10.0.0.40"]);
  });

  test("is of each family that the list has, or of those that are asked for", async () => {
    await seed(store(), listChange("web", ["fd00::5", "10.0.0.40", "fd00::6"]));
    const six = { addressRequests: [listed({ families: { value: [6], place: "families" } })] };

    expect(await assign(pod("a"))).toEqual(["10.0.0.40", "fd00::5"]);
    expect(await assign(pod("b", six))).toEqual(["fd00::6"]);
    // All or none: the list has no other IPv4 address.
    expect((await refusal(pod("c"))).kind).toBe("try-again-later");
    expect((await readAllRecords(store())).handles).toHaveLength(2);
  });

  test("is refused if all are in use, with the number and who has the first few", async () => {
    for (const name of ["a", "b", "c"]) await assign(pod(name));
    const { kind, message, details } = await refusal(pod("d"));

    expect([kind, message]).toEqual([
      "try-again-later",
      `Cannot assign an IPv4 address of IPAddressList "web" (${PLACE}): none of its 3 IPv4 addresses is free, 3 in use: ` +
        '10.0.0.40 by pod "shop/a" on node "node-1"; 10.0.0.7 by pod "shop/b" on node "node-1"; 10.0.0.200 by pod "shop/c" on node "node-1"',
    ]);
    expect(details).toContain("maxSurge");
    expect(details).toEndWith('"vendorctl describe ipaddresslist web" shows who has each');
    await seed(store(), listChange("web", ["10.0.0.40", "10.0.0.7", "10.0.0.200", "10.0.1.9"]));
    expect((await refusal(pod("d"))).message).toContain("none of its 4 IPv4 addresses is free, 3 in use");
    expect((await refusal(pod("d"))).message).toEndWith("; and 1 more");
    expect(await problems()).toEqual([]);
  });

  test("is not one that rests for another namespace, and at once one that the own namespace had", async () => {
    await assign(pod("other", { attributes: { pod: "other", namespace: "bank" } }));
    await release("other");

    expect(await assign(pod("a"))).toEqual(["10.0.0.7"]);
    await release("a");
    expect(await assign(pod("b"))).toEqual(["10.0.0.7"]);
    expect(await assign(pod("c"))).toEqual(["10.0.0.200"]);
    const { kind, message } = await refusal(pod("d"));
    expect([kind, message]).toEqual([
      "try-again-later",
      expect.stringContaining('10.0.0.40 (it was released by namespace "bank" and rests for another 180 s)'),
    ]);
    now = new Date(now.getTime() + 181_000);
    expect(await assign(pod("d"))).toEqual(["10.0.0.40"]);
  });

  test("may be reserved: others do not get it by chance", async () => {
    await seed(
      store(),
      poolChange("blue", "10.0.0.0/24", { disabled: true }),
      poolChange("tiny", "10.1.0.0/30", { blockSize: 30 }),
      reservationChange("web", ["10.1.0.0/31"]),
      listChange("web", ["10.1.0.1"]),
    );
    const any = { addressRequests: [{ kind: "automatic", family: 4 }] } as const;

    expect([await assign(pod("x", any)), await assign(pod("y", any))].flat().sort()).toEqual(["10.1.0.2", "10.1.0.3"]);
    expect((await refusal(pod("z", any))).kind).toBe("addresses-exhausted");
    expect(await assign(pod("a"))).toEqual(["10.1.0.1"]);
  });

  test("in no enabled pool is passed over, and an error if all are", async () => {
    await seed(store(), listChange("web", ["192.0.2.1", "10.0.0.7"]));
    expect(await assign(pod("a"))).toEqual(["10.0.0.7"]);
    await seed(store(), listChange("web", ["192.0.2.1"]));

    const { kind, message } = await refusal(pod("b"));
    expect([kind, message]).toEqual([
      "address-outside-pools",
      expect.stringContaining("192.0.2.1 (it is not in an enabled pool)"),
    ]);
  });

  test("in a block of another node is passed over with strictAffinity", async () => {
    await assign(pod("a", { node: "node-2" }));
    await seed(store(), configurationChange({ strictAffinity: true }), listChange("web", ["10.0.0.41", "10.0.0.7"]));

    expect(await assign(pod("b"))).toEqual(["10.0.0.7"]);
  });

  test.each([
    ["another namespace", { podNamespace: { name: "bank", labels: {} } }, 'does not select namespace "bank"'],
    ["a namespace whose labels are not known", { podNamespace: { name: "bank" } }, "are not known"],
  ])("is refused to %s, which is named", async (_, more, why) => {
    await seed(store(), listChange("web", ["10.0.0.40"], "tenant == 'a'"));
    expect(await assign(pod("a"))).toEqual(["10.0.0.40"]);

    const { kind, message, details } = await refusal(pod("b", more));
    expect([kind, message]).toEqual(["annotation-invalid", expect.stringContaining(`IPAddressList "web" (${PLACE})`)]);
    expect(message).toContain(why);
    expect(message).toContain("bank");
    expect(details).toContain("namespaceSelector");
  });

  test.each([
    ["does not exist", "other", undefined, "there is no IPAddressList of that name"],
    ["has no address of a family", "web", [6], "the list has no IPv6 address, which families asks for"],
  ] as const)("is refused if the list %s", async (_, list, families, why) => {
    const asked = listed({
      list,
      ...(families === undefined ? {} : { families: { value: families, place: "families" } }),
    });
    const { kind, message } = await refusal(pod("a", { addressRequests: [asked] }));

    expect([kind, message]).toEqual(["annotation-invalid", expect.stringContaining(why)]);
  });

  test("is never given twice: pods that ask at once on two nodes get different ones, and one too many none", async () => {
    const allocators = await Promise.all(["node-1", "node-2"].map(async (node) => ({ node, its: await on(store()) })));
    const asked = ["a", "b", "c", "d"].map((name, index) => {
      const { node = "", its } = allocators[index % 2] ?? {};
      return its?.assign(pod(name, { node }));
    });
    const results = await Promise.allSettled(asked);
    const given = results.flatMap((each) => (each.status === "fulfilled" && each.value ? textsOf(each.value) : []));

    expect(given.toSorted()).toEqual(["10.0.0.200", "10.0.0.40", "10.0.0.7"]);
    expect(results.filter(({ status }) => status === "rejected")).toHaveLength(1);
    expect(await problems()).toEqual([]);
  });

  test("is the next one if another pod is quicker between the look and the write", async () => {
    const real = store();
    let isFirst = true;
    const overtaken = storeAround(real, {
      commit: async (changes) => {
        if (isFirst) {
          isFirst = false;
          await assign(pod("quick", { node: "node-2" }));
        }
        return real.commit(changes);
      },
    });

    expect(textsOf(await (await on(overtaken)).assign(pod("slow")))).toEqual(["10.0.0.7"]);
    expect(await problems()).toEqual([]);
  });

  test("is not one that was just taken off the list", async () => {
    if (atomicity === "one object") return;
    const real = store();
    let isFirst = true;
    const overtaken = storeAround(real, {
      commit: async (changes) => {
        if (isFirst) await seed(real, listChange("web", ["10.0.0.7"]));
        isFirst = false;
        return real.commit(changes);
      },
    });

    expect(textsOf(await (await on(overtaken)).assign(pod("a")))).toEqual(["10.0.0.7"]);
  });

  test("is found behind a thousand others that are in use, in many blocks", async () => {
    const addresses = Array.from({ length: 1024 }, (_, index) => `10.2.${index >> 6}.${(index % 64) * 4}`);
    await seed(store(), poolChange("large", "10.2.0.0/16"), listChange("web", addresses));
    for (const [index, text] of addresses.entries()) {
      if (index % 16 !== 0) continue;
      const only = { ...listed(), list: `only-${index}` } as AddressRequest;
      await seed(store(), listChange(`only-${index}`, [text]));
      await assign(pod(`p${index}`, { addressRequests: [only] }));
    }
    await seed(store(), listChange("web", [...addresses.filter((_, index) => index % 16 === 0), "10.2.200.1"]));

    expect(await assign(pod("last"))).toEqual(["10.2.200.1"]);
  });
});

describe("a request without a list", () => {
  /** The keys and prefixes that are read, in the round trips of one assignment. */
  async function readsOf(asked: AssignRequest): Promise<readonly string[]> {
    const table = new MemoryTable();
    await seed(
      openMemory(table),
      nodeChange("node-1"),
      poolChange("blue", "10.0.0.0/24"),
      listChange("web", ["10.0.0.7"]),
    );
    const reads: Wanted[] = [];
    const real = openMemory(table);
    const watched = storeAround(real, {
      read: (wanted) => {
        reads.push(...wanted);
        return real.read(wanted);
      },
    });
    await openAllocator(watched, means()).assign(asked);
    return reads.map((wanted) => (wanted.kind === "key" ? wanted.key : wanted.prefix));
  }
  const LISTS = resourcesPrefix("ipaddresslists");

  test("reads no list, and one with a list reads this one alone, once", async () => {
    const without = await readsOf(request("net.a"));
    const withList = await readsOf(pod("a"));

    const kinds = without.map((key) => key.replace(ROOT_PREFIX, "").replace(/(block\/).*/, "$1"));
    expect([...new Set(kinds)]).toEqual([
      "resources/v3/vendor.org/clusterinformations/default",
      "resources/v3/vendor.org/ippools/",
      "resources/v3/vendor.org/ipreservations/",
      "ipam/v2/config",
      "resources/v3/vendor.org/nodes/node-1",
      "ipam/v2/host/node-1/",
      "ipam/v2/handle/net.a",
      "ipam/v2/assignment/ipv4/block/",
    ]);
    expect(without.filter((key) => key.startsWith(LISTS))).toEqual([]);
    expect(withList.filter((key) => key.startsWith(LISTS))).toEqual([`${LISTS}web`]);
  });
});
