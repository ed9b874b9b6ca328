import { beforeEach, describe, expect, test } from "bun:test";
import { address, letRest, means, nodeChange, poolChange, request, seed } from "../../../test/support/ipam.ts";
import { type MemoryDatastore, openMemory } from "../../datastore/memory/memory.ts";
import { MemoryTable } from "../../datastore/memory/table.ts";
import { formatAddress } from "../../ip/address.ts";
import { readAllRecords } from "../all-records.ts";
import { type Allocator, openAllocator } from "../allocator.ts";
import { withFormerHandle } from "../former-handle.ts";
import { findProblems } from "../invariants.ts";

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

describe("releaseHandle()", () => {
  beforeEach(() => seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 })));

  test("gives back what was assigned, keeps the host's empty block, and succeeds when nothing is left", async () => {
    const assigned = await allocator.assign(request("net.a"));
    const released = await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
    const again = await allocator.releaseHandle({ handle: "net.a", node: "node-1" });

    expect(released).toEqual(assigned.addresses.map((each) => each.address));
    expect(again).toEqual([]);
    const world = await readAllRecords(store);
    expect(world.handles).toEqual([]);
    expect(world.blocks).toHaveLength(1);
    expect(await problems()).toEqual([]);
  });

  test("gives back one interface and leaves the other", async () => {
    await allocator.assign(request("net.a", { interface: "eth0" }));
    const kept = await allocator.assign(request("net.a", { interface: "eth1" }));

    await allocator.releaseHandle({ handle: "net.a", interface: "eth0", node: "node-1" });

    const held = await allocator.held({ handle: "net.a", node: "node-1" });
    expect(held.map((each) => each.address)).toEqual(kept.addresses.map((each) => each.address));
    expect(await problems()).toEqual([]);
  });

  test("releases addresses of another node only with evidence that the host was renamed", async () => {
    const { addresses } = await allocator.assign(request("net.a"));
    const [given] = addresses.map((each) => each.address);
    const asNode2 = { handle: "net.a", node: "node-2" };

    expect(await allocator.releaseHandle({ ...asNode2, onAnyNode: ["10.0.0.250"] })).toEqual([]);
    expect(await allocator.releaseHandle({ ...asNode2, onAnyNode: [formatAddress(given ?? address("::"))] })).toEqual([
      given ?? address("::"),
    ]);
    await allocator.assign(request("net.a"));
    await allocator.assign(request("net.a", { node: "node-2" }));
    const whenRenamed = { ...asNode2, ifNoneOnNode: "release those of other nodes" } as const;
    expect(await allocator.releaseHandle(whenRenamed)).toHaveLength(1);
    expect(await allocator.held({ handle: "net.a", node: "node-1" })).toHaveLength(1);
    expect(await allocator.releaseHandle(whenRenamed)).toHaveLength(1);
    expect(await problems()).toEqual([]);
  });

  test("leaves a block that becomes empty and is nobody's until its addresses have rested", async () => {
    await allocator.assign(request("net.a"));
    const [block] = (await readAllRecords(store)).blocks;
    if (!block) throw new Error("expected a block");
    expect(await allocator.releaseAffinity({ node: "node-1", block: block.cidr, inUse: "keep" })).toBe("kept");
    expect(await allocator.releaseAffinity({ node: "node-1", block: block.cidr, inUse: "release" })).toBe("released");

    await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
    expect((await readAllRecords(store)).blocks).toMatchObject([{ released: { 0: { at: expect.any(Number) } } }]);
    expect(await problems()).toEqual([]);

    await letRest(store);
    await allocator.assign(request("net.b"));
    await allocator.releaseHandle({ handle: "net.b", node: "node-1" });
    expect((await readAllRecords(store)).blocks).toHaveLength(1);
  });
});

describe("releaseHandle() and the handle of older releases, the container ID alone", () => {
  beforeEach(() => seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 28 })));
  const release = (containerId: string, more: { readonly network?: string } = {}) =>
    allocator.releaseHandle({
      handle: `net.${containerId}`,
      node: "node-1",
      ...more,
      ...withFormerHandle(containerId, "node-1"),
    });
  const heldUnder = async (handle: string, node: string) => (await allocator.held({ handle, node })).length;

  test("gives back what is held under either, in as many round trips", async () => {
    await allocator.assign(request("net.abc"));
    await allocator.assign(request("abc"));
    store.roundTrips = 0;

    expect(await release("abc")).toHaveLength(2);
    expect(store.roundTrips).toBe(2);
    expect((await readAllRecords(store)).handles).toEqual([]);
    expect(await problems()).toEqual([]);
  });

  test("gives back what is held under the older one alone, and tells CHECK of it", async () => {
    const { addresses } = await allocator.assign(request("abc"));
    const asked = { handle: "net.abc", node: "node-1", ...withFormerHandle("abc", "node-1") };

    expect((await allocator.held(asked)).map((each) => each.address)).toEqual(addresses.map((each) => each.address));
    expect(await release("abc")).toEqual(addresses.map((each) => each.address));
    expect(await release("abc")).toEqual([]);
    expect(await problems()).toEqual([]);
  });

  test("leaves what only looks alike: another node's, a tunnel's, or the handle of a network", async () => {
    await allocator.assign(request("abc", { node: "node-2" }));
    await allocator.assign(request("tunnel", { attributes: { type: "vxlanTunnelAddress" } }));
    await allocator.assign(request("other.abc"));
    await allocator.assign(request("recorded", { network: "recorded-network" }));

    for (const containerId of ["abc", "tunnel", "other.abc", "recorded"]) {
      expect([containerId, await release(containerId)]).toEqual([containerId, []]);
    }
    expect(await heldUnder("abc", "node-2")).toBe(1);
    for (const handle of ["tunnel", "other.abc", "recorded"]) {
      expect([handle, await heldUnder(handle, "node-1")]).toEqual([handle, 1]);
    }
    expect(await problems()).toEqual([]);
  });
});

describe("releaseAddresses()", () => {
  test("releases only what still belongs to whom it is thought to belong", async () => {
    await seed(store, poolChange("blue", "10.0.0.0/24"), poolChange("six", "fd00::/64"));
    const { addresses } = await allocator.assign(request("net.a", { addressRequests: dual }));
    const [four, six] = addresses.map((each) => each.address);
    if (!four || !six) throw new Error("expected two addresses");
    const [block] = (await readAllRecords(store)).blocks;
    const sequenceNumber = Object.values(block?.sequenceNumberForAllocation ?? {})[0] ?? 0n;

    const refused = await allocator.releaseAddresses([
      { address: four, handle: "net.other" },
      { address: six, sequenceNumber: 1n },
      { address: address("192.0.2.1") },
    ]);
    const released = await allocator.releaseAddresses([
      { address: four, handle: "net.a", sequenceNumber },
      { address: six, handle: "net.a" },
    ]);

    expect(refused).toEqual({ released: [], refused: [four, six], absent: [address("192.0.2.1")] });
    expect(released.released).toEqual([four, six]);
    expect((await readAllRecords(store)).handles).toEqual([]);
    expect(await problems()).toEqual([]);
  });

  test("does not release an address that was given anew since its sequence number was read", async () => {
    await seed(store, poolChange("tiny", "10.0.0.0/32", { blockSize: 32 }));
    await allocator.assign(request("net.a"));
    const [before] = (await readAllRecords(store)).blocks;
    const stale = before?.sequenceNumberForAllocation[0] ?? 0n;
    await allocator.releaseHandle({ handle: "net.a", node: "node-1" });
    await allocator.assign(request("net.a"));

    const { refused } = await allocator.releaseAddresses([
      { address: address("10.0.0.0"), handle: "net.a", sequenceNumber: stale },
    ]);

    expect(refused).toEqual([address("10.0.0.0")]);
  });
});
