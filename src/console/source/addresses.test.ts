/** Pools, maps and addresses as readers with different rights see them, over a datastore of which the console reads all. */
import { describe, expect, spyOn, test } from "bun:test";
import * as v from "valibot";
import { poolChange, prefix, reservationChange, seed } from "../../../test/support/ipam.ts";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import { EVERYTHING, type Rule, readersCluster } from "../../../test/support/readers.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { assignOrdinal, emptyBlock, releaseOrdinals } from "../../ipam/block.ts";
import { type IPAMBlock, writeBlock } from "../../model/ipam-block.ts";
import { blockKey, blocksPrefix } from "../../model/keys.ts";
import { PROFILE } from "../../model/kinds.ts";
import { networkProfileSpec } from "../../model/network-profile.ts";
import { addressSchema, poolMapAnswerSchema, poolsSchema } from "../api/addresses.ts";
import { type ClusterSourceMeans, clusterSources } from "./cluster-source.ts";

const NOW = new Date("2026-01-02T03:04:05Z");
const ASSIGNED = "2026-01-01T00:00:00.000Z";
const { signal } = new AbortController();

async function source(rules: readonly Rule[], etcd = openMemory(), more: Partial<ClusterSourceMeans> = {}) {
  const { openClient } = readersCluster(startFakeApi(), { reader: { user: "reader", rules } });
  const open = clusterSources({
    version: "v1",
    server: {},
    now: () => NOW,
    wait: (ms: number) => Bun.sleep(ms),
    uuid: () => "1",
    openClient,
    etcd,
    ...more,
  });
  return open("reader", signal);
}

function taken(block: IPAMBlock, ordinal: number, secondary: Readonly<Record<string, string>>): IPAMBlock {
  const attributes = { handleId: `net.${ordinal}`, secondary: { node: "n1", timestamp: ASSIGNED, ...secondary } };
  return assignOrdinal(block, ordinal, attributes)?.block ?? block;
}

/** Of node n1: a pod of each namespace, a container, a tunnel, a leak, an address that rests; of n2: one borrowed. */
async function filled() {
  const empty = emptyBlock(prefix("10.0.0.0/29"), "host:n1", BigInt(NOW.getTime()) * 1_000_000n);
  let block = taken(empty, 0, { pod: "web-1", namespace: "shop" });
  block = taken(block, 1, { pod: "ledger-1", namespace: "bank" });
  block = taken(block, 2, { type: "vxlanTunnelAddress" });
  block = taken(block, 3, { network: "net" });
  block = taken(block, 4, { pod: "old-1", namespace: "shop" });
  block = taken(block, 5, { node: "n2", container: "cache" });
  block = releaseOrdinals(block, [4], new Date(NOW.getTime() - 60_000));
  const store = openMemory();
  await seed(
    store,
    poolChange("blue", "10.0.0.0/28", { blockSize: 29, vxlanMode: "CrossSubnet" }),
    reservationChange("r", ["10.0.0.7/32", "10.0.0.8/30"]),
    { kind: "put", key: blockKey(block.cidr), value: writeBlock(block) },
    {
      kind: "put",
      key: PROFILE.key({ name: "net" }),
      value: PROFILE.codec.write(PROFILE.codec.make({ name: "net" }, networkProfileSpec("net"))),
    },
  );
  return store;
}

const BLOCKS: Rule = { resources: ["ippools", "ipreservations", "ipamblocks"] };

describe("pools()", () => {
  test("counts what is in use, borrowed, leaked, reserved and resting", async () => {
    const pools = await (await source(EVERYTHING, await filled())).pools(signal);

    expect(v.parse(poolsSchema, pools)).toEqual(pools);
    expect(pools.hidden).toEqual([]);
    expect(pools.pools).toEqual([
      {
        ...{ name: "blue", cidr: "10.0.0.0/28", blockSize: 29, disabled: false, nodeSelector: "all()" },
        encapsulation: "VXLAN (CrossSubnet)",
        counts: { size: "16", used: 5, borrowed: 1, reserved: 5, resting: 1, leaked: 1, kept: 0, blocks: 1 },
      },
    ]);
  });

  test("has no pool, not even a count of it, if its blocks may not be listed", async () => {
    const store = await filled();
    for (const rules of [[], [{ resources: ["ippools"] }], [{ resources: ["ipamblocks", "pods"] }]]) {
      const { pools, problems, hidden } = await (await source(rules, store)).pools(signal);
      expect([pools, problems]).toEqual([[], []]);
      expect(hidden.length).toBeGreaterThan(0);
    }
  });

  test("says that it does not know leaks if endpoints may not be listed", async () => {
    const { pools, hidden } = await (await source([BLOCKS], await filled())).pools(signal);

    expect(pools.map(({ counts }) => counts.leaked)).toEqual([0]);
    expect(hidden).toEqual(["which addresses are leaked"]);
  });

  test("forgets what was found of leaks when the reader may see less", async () => {
    const role = { user: "reader", rules: EVERYTHING };
    const { openClient, roles } = readersCluster(startFakeApi(), { reader: role });
    const means = { version: "v1", server: {}, now: () => NOW, uuid: () => "1", wait: (ms: number) => Bun.sleep(ms) };
    const own = await clusterSources({ ...means, openClient, etcd: await filled() })("reader", signal);
    await own.rights(signal);
    expect((await own.pools(signal)).pools[0]?.counts.leaked).toBe(1);
    roles.set("reader", { ...role, rules: [BLOCKS] });
    await own.rights(signal);

    const { pools, hidden } = await own.pools(signal);
    expect([pools[0]?.counts.leaked, hidden]).toEqual([0, ["which addresses are leaked"]]);
    expect(JSON.stringify(await own.health(signal))).not.toContain("10.0.0.3");
  });

  test("names records that cannot be read, and addresses that no pool contains", async () => {
    const store = await filled();
    await seed(store, { kind: "put", key: blockKey(prefix("10.0.0.8/29")), value: "{" });
    const { pools, problems } = await (await source(EVERYTHING, store)).pools(signal);

    expect(pools[0]?.counts.blocks).toBe(2);
    expect(problems.map(({ message }) => message).join()).toContain("10.0.0.8-29");
    const alone = openMemory();
    const block = taken(emptyBlock(prefix("10.9.0.0/29"), "host:n1", 1n), 0, {});
    await seed(alone, { kind: "put", key: blockKey(block.cidr), value: writeBlock(block) });
    expect((await (await source(EVERYTHING, alone)).pools(signal)).problems[0]?.message).toContain("no pool contains");
  });
});

describe("among more addresses than a page is worth", () => {
  const IN_USE = 5;

  test("leaks are not searched for, and that is said", async () => {
    const many = await source(EVERYTHING, await filled(), { mostSearched: IN_USE - 1 });
    const { pools, problems, hidden } = await many.pools(signal);

    expect(pools.map(({ counts }) => [counts.used, counts.leaked])).toEqual([[IN_USE, 0]]);
    expect(problems.map(({ message }) => message).join()).toContain("not searched for");
    expect(hidden).toEqual([]);
    const { parts } = await many.health(signal);
    expect(parts.find(({ name }) => name === "address records")).toMatchObject({ state: "unknown" });
    const fewer = await source(EVERYTHING, await filled(), { mostSearched: IN_USE });
    expect((await fewer.pools(signal)).problems).toEqual([]);
  });

  test("blocks are not read once more only to count them, except before the first search", async () => {
    const etcd = await filled();
    const reads = spyOn(etcd, "read");
    let [now, before] = [NOW.getTime(), 0];
    const own = await source(EVERYTHING, etcd, { mostSearched: IN_USE, now: () => new Date(now) });
    const readsOfBlocks = async () => {
      await own.pools(signal);
      const count = reads.mock.calls
        .flat(2)
        .filter((each) => "prefix" in each && each.prefix === blocksPrefix(4)).length;
      const more = count - before;
      before = count;
      now += 3_600_000;
      return more;
    };
    const first = await readsOfBlocks();

    expect(await readsOfBlocks()).toBe(first - 1);
  });
});

describe("poolMap()", () => {
  test("has a letter for each address of each block", async () => {
    const [pool, ...blocks] = await Array.fromAsync((await source(EVERYTHING, await filled())).poolMap("blue", signal));

    for (const answer of [pool, ...blocks]) v.parse(poolMapAnswerSchema, answer);
    expect(blocks).toEqual([{ block: { cidr: "10.0.0.0/29", node: "n1", free: 2, use: "uutlRb.r" } }]);
  });

  test("does not name nodes to who may not list them", async () => {
    const [, block] = await Array.fromAsync((await source([BLOCKS], await filled())).poolMap("blue", signal));

    expect(JSON.stringify(block)).not.toContain("n1");
  });

  test("fails for a pool that does not exist, and for one that may not be seen", async () => {
    const store = await filled();
    const map = async (rules: readonly Rule[], name: string) =>
      Array.fromAsync((await source(rules, store)).poolMap(name, signal));

    await expect(map(EVERYTHING, "red")).rejects.toMatchObject({ kind: "resource-missing" });
    await expect(map([], "blue")).rejects.toMatchObject({ kind: "api-unavailable" });
    await expect(map([], "red")).rejects.toMatchObject({ kind: "api-unavailable" });
  });
});

describe("address()", () => {
  const place = { pool: "blue", block: "10.0.0.0/29" };
  const since = Date.parse(ASSIGNED);

  test.each([
    ["10.0.0.0", { use: "u", node: "n1", owner: "pod shop/web-1", since, handle: "net.0" }],
    ["10.0.0.2", { use: "t", node: "n1", owner: "VXLAN tunnel of node n1", since, handle: "net.2" }],
    ["10.0.0.5", { use: "b", node: "n2", owner: "container cache", since, handle: "net.5" }],
    ["10.0.0.6", { use: ".", node: "n1" }],
  ] as const)("says who has %s", async (address, expected) => {
    const detail = await (await source(EVERYTHING, await filled())).address(address, signal);

    expect(v.parse(addressSchema, detail)).toEqual({ address, ...place, ...expected });
  });

  test.each([
    ["10.0.0.3", "l", "has no endpoint"],
    ["10.0.0.4", "R", 'released by namespace "shop"; it rests for other owners until 2026-01-02T03:06:05.000Z'],
    ["10.0.0.7", "r", "IPReservation"],
    ["10.0.0.9", "r", "IPReservation"],
    ["192.0.2.1", ".", "no pool contains it"],
  ] as const)("says why %s is as it is", async (address, use, reason) => {
    const detail = await (await source(EVERYTHING, await filled())).address(address, signal);

    expect(detail.use).toBe(use);
    expect(detail.reason).toContain(reason);
  });

  test("says for which pod an address waits, to who may know it", async () => {
    const empty = emptyBlock(prefix("10.0.0.0/29"), "host:n1", 1n);
    const used = taken(empty, 0, { pod: "db-0", namespace: "shop", kept: "3600", containerID: "c1" });
    const block = releaseOrdinals(used, [0], NOW);
    const store = openMemory();
    const records = { kind: "put", key: blockKey(block.cidr), value: writeBlock(block) } as const;
    await seed(store, poolChange("blue", "10.0.0.0/29", { blockSize: 29 }), records);
    const end = new Date(NOW.getTime() + 3_600_000).toISOString();

    expect(await (await source(EVERYTHING, store)).address("10.0.0.0", signal)).toMatchObject({
      use: "k",
      owner: "pod shop/db-0",
      reason: expect.stringContaining(`until ${end}`),
      command: expect.stringContaining("ipam release --pod shop/db-0"),
    });
    const few = await (await source([BLOCKS], store)).address("10.0.0.0", signal);
    expect(few.use).toBe("k");
    expect(JSON.stringify(few)).not.toMatch(/db-0|shop/);
    expect((await (await source(EVERYTHING, store)).pools(signal)).pools[0]?.counts).toMatchObject({
      used: 1,
      kept: 1,
    });
  });

  test("names nobody whose pods the reader may not list, nor nodes", async () => {
    const rules: readonly Rule[] = [BLOCKS, { resources: ["workloadendpoints"], namespaces: ["shop"] }];
    const few = await source(rules, await filled());
    const texts = await Promise.all(["0", "1", "2", "4", "5"].map((last) => few.address(`10.0.0.${last}`, signal)));

    expect(texts.map(({ owner }) => owner)).toEqual(["pod shop/web-1", ...new Array<undefined>(4)]);
    expect(JSON.stringify(texts)).not.toMatch(/bank|ledger|cache|"n[12]"|node n1/);
    expect(texts[3]?.reason).toContain('namespace "shop"');
    const none = await source([BLOCKS], await filled());
    expect((await none.address("10.0.0.4", signal)).reason).not.toContain("shop");
  });

  test("refuses what is no address, and who may not list blocks", async () => {
    const store = await filled();

    await expect((await source(EVERYTHING, store)).address("web", signal)).rejects.toMatchObject({
      kind: "resource-invalid",
    });
    await expect((await source([], store)).address("10.0.0.1", signal)).rejects.toMatchObject({
      kind: "api-unavailable",
    });
  });
});
