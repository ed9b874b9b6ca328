import { describe, expect, test } from "bun:test";
import { means, nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import { isStopped, LEVELS, stoppingMemory } from "../../../test/support/stopping-memory.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import type { Change, Datastore } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { MemoryTable } from "../../datastore/memory/table.ts";
import { formatAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { addressAt } from "../../ipam/block.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { allocationsIn } from "../../ipam/leaks/allocations.ts";
import { releaseLeaks } from "../../ipam/leaks/release.ts";
import type { OrchestratorNode } from "../../kube/orchestrator-node.ts";
import { requireOk } from "../../kube/require-ok.ts";
import type { HostAddress } from "../../linux/rtnetlink/host-addresses.ts";
import { clusterInformation } from "../../model/cluster-information.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import { resourceKey } from "../../model/keys.ts";
import { NODE, POOL } from "../../model/kinds.ts";
import { MACHINE_ANNOTATION } from "../../model/machine-annotation.ts";
import { nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import { ROUTING_STATE_ANNOTATION } from "../../model/routing-state.ts";
import { vxlanMac } from "../../routing/vxlan-mac.ts";
import { NodeRecordKeeper, type RecordFacts, type RecordMeans } from "./node-record-keeper.ts";
import { OwnOrchestratorNode } from "./own-orchestrator-node.ts";

const NODE_KEY = resourceKey("nodes", { name: "node-1" });

function host(...texts: readonly string[]): readonly HostAddress[] {
  return texts.flatMap((text) => {
    const read = parseInterfaceAddress(text);
    return read === undefined
      ? []
      : [{ ...read, link: { name: "eth0", mtu: 1500, defaultRoutes: [read.address.family] } }];
  });
}

interface Around extends Partial<RecordMeans> {
  readonly store?: Datastore;
  readonly podCidrs?: { readonly node: OrchestratorNode | undefined };
}

/** A node agent on the store: `look()` reads the records as its replica would have them. */
function agent(table: MemoryTable, around: Around = {}) {
  const { store = openMemory(table), podCidrs, ...more } = around;
  const site = { problems: [] as string[], logged: [] as string[], mtu: 0, addresses: host("192.0.2.5/24") };
  const report = (problem: string) => void site.problems.push(problem);
  const orchestratorNode = new OwnOrchestratorNode({
    name: "node-1",
    families: podCidrs === undefined ? [] : [4],
    read: podCidrs && (async () => podCidrs.node),
    report,
  });
  const keeper = new NodeRecordKeeper({
    node: "node-1",
    store,
    datastore: "etcd",
    allocator: openAllocator(store, means()),
    machineIdentity: () => "this machine",
    hostAddresses: () => site.addresses,
    sourceTowards: async () => undefined,
    uplinkMtu: () => 1400,
    writeMtu: (mtu) => {
      const isNew = site.mtu !== mtu;
      site.mtu = mtu;
      return isNew;
    },
    orchestratorNode,
    report,
    log: (message) => void site.logged.push(message),
    ...more,
  });
  const look = async (change: Partial<RecordFacts> = {}) =>
    keeper.look({ ...(await factsIn(openMemory(table))), ...change });
  return Object.assign(site, { keeper, look });
}

async function factsIn(store: Datastore): Promise<RecordFacts> {
  const { answers } = await store.read([
    { kind: "key", key: NODE_KEY },
    { kind: "prefix", prefix: POOL.prefix() },
  ]);
  const [node] = answers[0] ?? [];
  return {
    node: node && NODE.codec.read(node.value, node.key),
    pools: (answers[1] ?? []).map(({ key, value }) => POOL.codec.read(value, key)),
    hasUnknownPool: false,
    configurations: [],
  };
}

async function specOf(table: MemoryTable) {
  return (await factsIn(openMemory(table))).node?.spec;
}

/** Of all tunnels: what IPAM has recorded. */
async function taken(table: MemoryTable): Promise<readonly string[]> {
  const { handles } = await readAllRecords(openMemory(table));
  return handles.map(({ handleId }) => handleId).toSorted();
}

/** The addresses in use. */
async function used(table: MemoryTable): Promise<readonly string[]> {
  const { blocks } = await readAllRecords(openMemory(table));
  return blocks.flatMap((block) =>
    block.allocations.flatMap((index, ordinal) =>
      index === undefined ? [] : formatAddress(addressAt(block, ordinal)),
    ),
  );
}

/** An allocator that cannot release anything. */
function interrupted(table: MemoryTable) {
  const allocator = openAllocator(openMemory(table), means());
  const releaseAddresses = () => Promise.reject(new Error("killed"));
  return { allocator: { ...allocator, releaseAddresses } };
}

function putOf(pool: IPPool): Change {
  return { kind: "put", key: POOL.key({ name: pool.metadata.name }), value: POOL.codec.write(pool) };
}

/** Takes the only address of a pool. */
async function fill(table: MemoryTable, pool: string): Promise<void> {
  await openAllocator(openMemory(table), means()).assign({
    ...{ handle: "other", node: "node-1", attributes: {}, intendedUse: "Workload" },
    addressRequests: [{ kind: "automatic", family: 4, pools: [pool] }],
  });
}

async function cluster(...pools: readonly Readonly<Parameters<typeof poolChange>>[]) {
  const table = new MemoryTable();
  await seed(openMemory(table), nodeChange("node-1", { rack: "a" }), ...pools.map((pool) => poolChange(...pool)));
  return table;
}

/** The pool of `VXLAN` is without tunnels from now on, and another one has them. */
async function moveTunnelPool(table: MemoryTable) {
  await seed(
    openMemory(table),
    poolChange("blue", "10.0.0.0/24", { blockSize: 29 }),
    poolChange("red", "10.2.0.0/24", { vxlanMode: "Always" }),
  );
}

const VXLAN = ["blue", "10.0.0.0/24", { vxlanMode: "Always", blockSize: 29 }] as const;
const VXLAN_6 = ["six", "fd00::/112", { vxlanMode: "CrossSubnet" }] as const;
const NO_TUNNEL_USE: Partial<IPPool["spec"]> = { vxlanMode: "Always", allowedUses: ["Workload"] };
const OUT_OF_USE = { vxlanMode: "Always", disabled: true } as const;
const IPIP = ["green", "10.1.0.0/24", { ipipMode: "Always" }] as const;

describe("the record of a node", () => {
  test("loses the addresses of its tunnels while routing is disabled, and new pods have the whole MTU", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    expect([(await specOf(table))?.ipv4VXLANTunnelAddr, site.mtu]).toEqual([expect.any(String), 1450]);
    const configurations = [nodeAgentConfiguration.make({ name: "default" }, { routing: "Disabled" })];
    await site.look({ configurations });
    expect([(await specOf(table))?.ipv4VXLANTunnelAddr, site.mtu]).toEqual([undefined, 1500]);
    expect(await used(table)).toEqual([]);
  });

  test("follows the host while the datastore is locked, but takes and gives back no address of a tunnel", async () => {
    const table = await cluster(VXLAN);
    const store = openMemory(table);
    const lock = (datastoreReady: boolean) => {
      const key = resourceKey("clusterinformations", { name: "default" });
      const information = clusterInformation.make({ name: "default" }, { datastoreReady });
      return seed(store, { kind: "put", key, value: clusterInformation.write(information) });
    };
    await lock(false);
    const site = agent(table);
    await site.look();
    expect((await specOf(table))?.bgp).toEqual({ ipv4Address: "192.0.2.5/24" });
    expect([await used(table), site.keeper.lacksAddress]).toEqual([[], true]);
    expect(site.problems.join()).toContain("locked");
    await lock(true);
    await site.look();
    const taken = await used(table);
    expect([taken.length, site.keeper.lacksAddress]).toEqual([1, false]);
    await lock(false);
    await moveTunnelPool(table);
    await agent(table).look();
    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toBe(taken[0]);
    expect(await used(table)).toEqual(taken);
  });

  test("has the addresses of the host, and follows them", async () => {
    const table = await cluster();
    const site = agent(table);
    await site.look();
    expect((await specOf(table))?.bgp).toEqual({ ipv4Address: "192.0.2.5/24" });

    site.addresses = host("192.0.2.6/25", "2001:db8::6/64");
    await site.look();
    expect((await specOf(table))?.bgp).toEqual({ ipv4Address: "192.0.2.6/25", ipv6Address: "2001:db8::6/64" });
    expect(site.logged.at(-1)).toContain("ipv4Address 192.0.2.6/25 (was 192.0.2.5/24)");

    site.addresses = [];
    await site.look();
    expect((await specOf(table))?.bgp?.ipv4Address).toBe("192.0.2.6/25");
    expect(site.problems.join()).toContain("192.0.2.6/25 stays recorded");
  });

  test("is neither read nor written while nothing changes", async () => {
    const table = await cluster(VXLAN, VXLAN_6, IPIP);
    const store = openMemory(table);
    const site = agent(table, { store });
    await site.look();
    const before = store.roundTrips;
    for (let round = 0; round < 3; round += 1) await site.look();

    expect(store.roundTrips).toBe(before);
  });

  test("has what the agent says of its routes when it is due, and loses it", async () => {
    const table = await cluster();
    const store = openMemory(table);
    const said = { text: "first" as string | undefined, writes: 0 };
    const routing: RecordMeans["routing"] = {
      annotated: (annotations) => {
        const { [ROUTING_STATE_ANNOTATION]: before, ...others } = annotations ?? {};
        if (before === said.text) return annotations;
        return said.text === undefined ? others : { ...others, [ROUTING_STATE_ANNOTATION]: said.text };
      },
      written: () => {
        said.writes += 1;
      },
    };
    const site = agent(table, { store, routing });
    const stored = async () => (await factsIn(openMemory(table))).node?.metadata.annotations ?? {};
    await site.look();
    expect([(await stored())[ROUTING_STATE_ANNOTATION], said.writes]).toEqual(["first", 1]);
    const [before, logged] = [store.roundTrips, site.logged.length];
    await site.look();
    expect(store.roundTrips).toBe(before);

    said.text = undefined;
    await site.look();
    expect([Object.keys(await stored()).includes(ROUTING_STATE_ANNOTATION), said.writes]).toEqual([false, 2]);
    // It is no change of the record to those who read the log.
    expect(site.logged).toHaveLength(logged);
  });

  test("is kept right if the agent may not write what it says of its routes", async () => {
    const table = await cluster();
    await agent(table).look();
    const commit = async (): Promise<never> => {
      requireOk({ status: 403, text: "{}" }, { method: "PATCH", path: "/api/v1/nodes/node-1/status" });
      throw new Error("it was not refused");
    };
    const store = Object.assign(openMemory(table), { commit });
    let tried = 0;
    const routing: RecordMeans["routing"] = {
      annotated: (annotations) => ({ ...annotations, [ROUTING_STATE_ANNOTATION]: "new" }),
      written: () => {
        tried += 1;
      },
    };
    const site = agent(table, { store, routing });
    await site.look();

    expect(tried).toBe(1);
    expect(site.problems.join()).toContain("Cannot write what is known of routes into the Node");
  });

  test("has the addresses and MACs of the tunnels that pools need", async () => {
    const table = await cluster(VXLAN, VXLAN_6, IPIP);
    const site = agent(table);
    await site.look();
    const spec = await specOf(table);

    expect(spec?.ipv4VXLANTunnelAddr).toStartWith("10.0.0.");
    expect(spec?.ipv6VXLANTunnelAddr).toStartWith("fd00::");
    expect(spec?.bgp?.ipv4IPIPTunnelAddr).toStartWith("10.1.0.");
    expect([spec?.vxlanTunnelMACAddr, spec?.vxlanTunnelMACAddrV6]).toEqual([
      vxlanMac("node-1", 4),
      vxlanMac("node-1", 6),
    ]);
    expect(await taken(table)).toEqual([
      "ipip-tunnel-addr-node-1",
      "vxlan-tunnel-addr-node-1",
      "vxlan-v6-tunnel-addr-node-1",
    ]);
    const world = await readAllRecords(openMemory(table));
    const attributes = world.blocks.flatMap(({ attributes }) => attributes.map(({ secondary }) => secondary));
    expect(attributes.map(({ node, type }) => `${node} ${type}`).toSorted()).toEqual([
      "node-1 ipipTunnelAddress",
      "node-1 vxlanTunnelAddress",
      "node-1 vxlanV6TunnelAddress",
    ]);
  });

  test("keeps its tunnel addresses after a restart, and while their pool is disabled", async () => {
    const table = await cluster(VXLAN);
    await agent(table).look();
    const first = await specOf(table);
    await seed(openMemory(table), poolChange("blue", "10.0.0.0/24", { ...VXLAN[2], disabled: true }));
    await agent(table).look();

    expect(await specOf(table)).toEqual(first);
  });

  test("has a tunnel address of any pool while those of the tunnel are disabled: their pods must be reached, too", async () => {
    const table = await cluster(["blue", "10.0.0.0/24", { ...VXLAN[2], disabled: true }], ["red", "10.2.0.0/24", {}]);
    const site = agent(table);
    for (let look = 0; look < 2; look += 1) {
      await site.look();
      expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.2.0.");
      expect(await used(table)).toHaveLength(1);
    }
    await seed(openMemory(table), poolChange("blue", "10.0.0.0/24", VXLAN[2]));
    await site.look();

    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.0.0.");
    expect(await used(table)).toHaveLength(1);
  });

  test("has a tunnel address of any pool while that of the tunnel is being deleted", async () => {
    const table = await cluster(VXLAN, ["red", "10.2.0.0/24", {}]);
    const { pools } = await factsIn(openMemory(table));
    const deleted = pools.map((pool) => ({
      ...pool,
      ...(pool.metadata.name === "blue"
        ? { metadata: { ...pool.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } }
        : {}),
    }));
    await seed(openMemory(table), ...deleted.map(putOf));
    await agent(table).look();

    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.2.0.");
  });

  test("keeps its tunnel address if its pool does not select the node any more: its pods must reach those of the pool", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    const first = await specOf(table);
    await seed(openMemory(table), poolChange("blue", "10.0.0.0/24", { ...VXLAN[2], nodeSelector: "rack == 'b'" }));
    await site.look();

    expect(await specOf(table)).toEqual(first);
  });

  test.each([
    ["of a pool that does not select it, if no pool of the tunnel does", {}, "10.0.0.", "free"],
    ["of a pool that selects it before others", { red: { vxlanMode: "Always" } }, "10.2.0.", "free"],
    ["of another if the pools that select it allow no tunnels", { red: NO_TUNNEL_USE }, "10.0.0.", "free"],
    ["of another if the pools that select it are disabled", { red: OUT_OF_USE }, "10.0.0.", "free"],
    ["of another if the pools that select it are full", { red: { vxlanMode: "Always" } }, "10.0.0.", "full"],
  ] as const)("has a tunnel address %s", async (_, pools, address, state) => {
    const table = await cluster(
      ["blue", "10.0.0.0/24", { ...VXLAN[2], nodeSelector: "rack == 'b'" }],
      ...Object.entries(pools).map(([name, spec]) => [name, "10.2.0.0/32", { blockSize: 32, ...spec }] as const),
    );
    if (state === "full") await fill(table, "red");
    const site = agent(table);
    await site.look();

    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith(address);
    expect(site.problems).toEqual([]);
  });

  test("has a tunnel address of a pool for some namespaces: the node that tunnels has none", async () => {
    const table = await cluster(["blue", "10.0.0.0/24", { ...VXLAN[2], namespaceSelector: "tenant == 'a'" }]);
    const site = agent(table);
    await site.look();

    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.0.0.");
    expect(site.problems).toEqual([]);
  });

  test("gives a tunnel address back if its pool has no tunnel any more", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    await seed(openMemory(table), poolChange("blue", "10.0.0.0/24", { blockSize: 29 }));
    await site.look();
    const spec = await specOf(table);

    expect([spec?.ipv4VXLANTunnelAddr, spec?.vxlanTunnelMACAddr, await taken(table)]).toEqual([
      undefined,
      undefined,
      [],
    ]);
  });

  test.each(["the same agent", "the next agent"])(
    "names no tunnel address that was given back, also if %s has an older copy of it",
    async (who) => {
      const setMode = (vxlanMode: "Always" | "Never") =>
        seed(openMemory(table), poolChange("blue", "10.0.0.0/24", { ...VXLAN[2], vxlanMode }));
      const table = await cluster(VXLAN);
      await setMode("Never");
      const site = agent(table);
      await site.look();
      const { node } = await factsIn(openMemory(table));
      await setMode("Always");
      await site.look();
      await setMode("Never");
      await (who === "the same agent" ? site : agent(table)).look({ node });

      expect([(await specOf(table))?.ipv4VXLANTunnelAddr, await used(table)]).toEqual([undefined, []]);
    },
  );

  test("does not give back the tunnel address that it names, if a copy of it names the former one", async () => {
    const table = await cluster(VXLAN);
    await agent(table).look();
    const { node } = await factsIn(openMemory(table));
    const former = node?.spec.ipv4VXLANTunnelAddr ?? "";
    await moveTunnelPool(table);
    // It dies before the former address is released.
    const { allocator } = interrupted(table);
    await agent(table, { allocator })
      .look()
      .catch(() => {});
    expect(await used(table)).toHaveLength(2);
    await seed(openMemory(table), poolChange("blue", "10.0.0.0/24", { ...VXLAN[2] }));
    await agent(table).look({ node });

    expect([(await specOf(table))?.ipv4VXLANTunnelAddr, await used(table)]).toEqual([former, [former]]);
  });

  test("takes another tunnel address if its own is in no pool of the tunnel any more", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    await moveTunnelPool(table);
    await site.look();

    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.2.0.");
    expect(await taken(table)).toEqual(["vxlan-tunnel-addr-node-1"]);
    expect(await used(table)).toHaveLength(1);
  });

  test("never names a tunnel address that IPAM may assign to others, wherever the agent is killed while it takes another", async () => {
    for (const atomicity of LEVELS) {
      for (let after = 0, isDone = false; !isDone; after += 1) {
        const table = await cluster(VXLAN);
        await agent(table).look();
        await moveTunnelPool(table);
        isDone = !(await isStopped(agent(table, { store: stoppingMemory(table, atomicity, after) }).look()));
        expect(await used(table)).toContain((await specOf(table))?.ipv4VXLANTunnelAddr ?? "none");

        await agent(table).look();
        expect(await used(table)).toEqual([expect.stringMatching(/^10\.2\.0\./)]);
        expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.2.0.");
        const problems = findProblems(await readAllRecords(openMemory(table)));
        expect(problems.filter(({ severity }) => severity === "corrupt")).toEqual([]);
      }
    }
  });

  test("keeps the tunnel address that it has as long as another cannot be taken", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    await seed(
      openMemory(table),
      poolChange("blue", "10.0.0.0/24", { blockSize: 29 }),
      poolChange("red", "10.2.0.0/32", { vxlanMode: "Always", blockSize: 32 }),
    );
    await fill(table, "red");
    await site.look();
    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.0.0.");
    expect([site.problems.length, site.keeper.lacksAddress]).toEqual([1, true]);

    await openAllocator(openMemory(table), means()).releaseHandle({ handle: "other", node: "node-1" });
    await site.look();
    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toBe("10.2.0.0");
    expect([await used(table), site.keeper.lacksAddress]).toEqual([["10.2.0.0"], false]);
  });

  test("takes the address again if another has released it, or removed it from the record", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    const store = openMemory(table);
    await openAllocator(store, means()).releaseHandle({ handle: "vxlan-tunnel-addr-node-1", node: "node-1" });
    site.keeper.distrust();
    await site.look();
    expect(await taken(table)).toEqual(["vxlan-tunnel-addr-node-1"]);

    await seed(store, nodeChange("node-1"));
    await site.look();
    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.0.0.");
    expect(await taken(table)).toEqual(["vxlan-tunnel-addr-node-1"]);
  });

  test("has its former address assigned again when a node joins again, so that a release decided before fails", async () => {
    const table = await cluster(VXLAN);
    await agent(table).look();
    const store = openMemory(table);
    const { blocks } = await readAllRecords(store);
    const decided = blocks.flatMap(allocationsIn).map((allocation) => ({ allocation, reason: "node node-1 is gone" }));
    await seed(store, nodeChange("node-1"));
    await agent(table).look();
    const address = (await specOf(table))?.ipv4VXLANTunnelAddr;
    const options = {
      store,
      allocator: openAllocator(store, means()),
      forget: async () => {},
      rule: "all or none",
    } as const;

    expect(await releaseLeaks(decided, { endpoints: new Map() }, options)).toEqual([]);
    expect(await used(table)).toEqual([address ?? "none"]);
  });

  test("names no address that was released with the former node if the node joined again during a look", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    const former = await factsIn(openMemory(table));
    const store = openMemory(table);
    await openAllocator(store, means()).releaseHandle({ handle: "vxlan-tunnel-addr-node-1", node: "node-1" });
    const joined = NODE.codec.make({ name: "node-1", uid: crypto.randomUUID() }, {});
    await seed(store, { kind: "put", key: NODE_KEY, value: NODE.codec.write(joined) });
    site.addresses = host("192.0.2.6/24");

    expect((await rejectionOf(() => site.look(former))).kind).toBe("try-again-later");
    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toBeUndefined();
    await site.look();
    expect(await used(table)).toEqual([(await specOf(table))?.ipv4VXLANTunnelAddr ?? "none"]);
  });

  test("names a pool that is full, and has everything else", async () => {
    const table = await cluster(["tiny", "10.0.0.0/32", { vxlanMode: "Always", blockSize: 32 }], IPIP);
    await fill(table, "tiny");
    const site = agent(table);
    await site.look();

    expect(site.keeper.lacksAddress).toBe(true);
    expect(site.problems.join()).toContain("The VXLAN tunnel of this node gets no address: ");
    expect((await specOf(table))?.bgp?.ipv4IPIPTunnelAddr).toStartWith("10.1.0.");
  });

  test("is not created, and nothing is taken for a node without one", async () => {
    const table = new MemoryTable();
    await seed(openMemory(table), poolChange(...VXLAN));
    await agent(table).look();

    expect([await specOf(table), await taken(table)]).toEqual([undefined, []]);
  });

  test("is not touched if another machine has registered it", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table, { machineIdentity: () => "this machine" });
    const { node } = await factsIn(openMemory(table));
    if (node === undefined) throw new Error("no node");
    const metadata = { ...node.metadata, annotations: { [MACHINE_ANNOTATION]: "another" } };
    const value = NODE.codec.write({ ...node, metadata });
    await seed(openMemory(table), { kind: "put", key: NODE_KEY, value });

    expect(await isRefused(site.look())).toBe(true);
    expect([(await specOf(table))?.bgp, await taken(table)]).toEqual([undefined, []]);
  });

  test("keeps its tunnel addresses while a pool cannot be read, which may need them", async () => {
    const table = await cluster(VXLAN);
    await agent(table).look();
    await agent(table).look({ pools: [], hasUnknownPool: true });

    expect((await specOf(table))?.ipv4VXLANTunnelAddr).toStartWith("10.0.0.");
    expect(await taken(table)).toEqual(["vxlan-tunnel-addr-node-1"]);
  });

  test("has no tunnel addresses in an embedded datastore, which is of one host", async () => {
    const table = await cluster(VXLAN);
    await agent(table, { datastore: "embedded" }).look();

    expect((await specOf(table))?.bgp).toEqual({ ipv4Address: "192.0.2.5/24" });
    expect(await taken(table)).toEqual([]);
  });

  test("has the ranges of the orchestrator's Node if the network uses them", async () => {
    const table = await cluster();
    const podCidrs = { node: { internalAddresses: [], podCidrs: [] as string[] } };
    const site = agent(table, { podCidrs });
    await site.look();
    expect([(await specOf(table))?.podCIDRs, site.keeper.isIncomplete]).toEqual([undefined, true]);

    podCidrs.node.podCidrs = ["10.244.3.0/24", "fd00:10:244::/64"];
    await site.look();
    expect([(await specOf(table))?.podCIDRs, site.keeper.isIncomplete]).toEqual([["10.244.3.0/24"], false]);

    await agent(table).look();
    expect((await specOf(table))?.podCIDRs).toBeUndefined();
  });

  test("is found by the method of the settings", async () => {
    const table = await cluster();
    const site = agent(table);
    const configuration = nodeAgentConfiguration.make(
      { name: "node.node-1" },
      { ipv4AddressDetection: "cidr=198.51.100.0/24" },
    );
    site.addresses = host("192.0.2.5/24", "198.51.100.5/24");
    await site.look({ configurations: [configuration] });

    expect((await specOf(table))?.bgp).toEqual({ ipv4Address: "198.51.100.5/24" });
  });

  test("has one address of each tunnel wherever an agent is killed, and none is left when the pools have no tunnel", async () => {
    for (const atomicity of LEVELS) {
      for (let after = 0, isDone = false; !isDone; after += 1) {
        const table = await cluster(VXLAN, VXLAN_6);
        const killed = agent(table, { store: stoppingMemory(table, atomicity, after) });
        isDone = !(await isStopped(killed.look()));
        await agent(table).look();
        const spec = await specOf(table);
        const { blocks } = await readAllRecords(openMemory(table));
        const used = blocks.flatMap(({ allocations }) => allocations.filter((each) => each !== undefined));
        expect({ after, count: used.length, handles: await taken(table) }).toEqual({
          after,
          count: 2,
          handles: ["vxlan-tunnel-addr-node-1", "vxlan-v6-tunnel-addr-node-1"],
        });
        expect([spec?.ipv4VXLANTunnelAddr, spec?.ipv6VXLANTunnelAddr]).not.toContain(undefined);

        await seed(
          openMemory(table),
          poolChange("blue", "10.0.0.0/24", { blockSize: 29 }),
          poolChange("six", "fd00::/112"),
        );
        const second = agent(table, { store: stoppingMemory(table, atomicity, after) });
        await isStopped(second.look());
        await agent(table).look();
        expect([await taken(table), (await specOf(table))?.ipv4VXLANTunnelAddr]).toEqual([[], undefined]);
        const problems = findProblems(await readAllRecords(openMemory(table)));
        expect(problems.filter(({ severity }) => severity === "corrupt")).toEqual([]);
      }
    }
  });
});

describe("the MTU of new pods", () => {
  test("is that of the link with the node's address, less the tunnels of the pools", async () => {
    const table = await cluster(VXLAN);
    const site = agent(table);
    await site.look();
    expect(site.mtu).toBe(1450);

    site.addresses = site.addresses.map((each) => ({ ...each, link: { ...each.link, mtu: 9000 } }));
    await site.look();
    expect(site.mtu).toBe(8950);

    await seed(openMemory(table), poolChange("blue", "10.0.0.0/24", { blockSize: 29 }));
    await site.look();
    expect(site.mtu).toBe(9000);
  });

  test("is that of the links with a default route as long as the node has no address", async () => {
    const site = agent(new MemoryTable());
    site.addresses = [];
    await site.look();

    expect(site.mtu).toBe(1400);
  });
});

async function isRefused(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => false,
    () => true,
  );
}
