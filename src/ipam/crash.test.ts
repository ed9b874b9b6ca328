import { beforeEach, describe, expect, test } from "bun:test";
import { means, nodeChange, poolChange, prefix, request, seed, textsOf } from "../../test/support/ipam.ts";
import { storeAround } from "../../test/support/store-around.ts";
import type { Change, Datastore } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { writeAffinity } from "../model/block-affinity.ts";
import { hostAffinity, type IPAMBlock, writeBlock } from "../model/ipam-block.ts";
import { writeHandle } from "../model/ipam-handle.ts";
import { affinityKey, blockKey, handleKey } from "../model/keys.ts";
import { openAllocator } from "./allocator.ts";
import { assignOrdinal, emptyBlock } from "./block.ts";
import { candidateBlocks } from "./candidates.ts";
import { findProblems } from "./invariants.ts";
import { readWorld } from "./world.ts";

let table: MemoryTable;

beforeEach(async () => {
  table = new MemoryTable();
  await seed(
    openMemory(table),
    nodeChange("node-1"),
    poolChange("four", "10.0.0.0/24"),
    poolChange("six", "fd00::/64"),
  );
});

const healthy = () => openAllocator(openMemory(table), means());
const world = () => readWorld(openMemory(table));
const dual = request("net.a", {
  wishes: [
    { kind: "automatic", family: 4 },
    { kind: "automatic", family: 6 },
  ],
});
const owner = { handle: "net.a", node: "node-1" };

class Crash extends Error {}

/** Dies at a commit, with only so many of its changes written: none, all (the answer got lost), or a part. */
function dyingStore(written: number): Datastore {
  const real = openMemory(table);
  return storeAround(real, {
    commit: async (changes) => {
      for (const change of changes.slice(0, written)) await real.commit([change]);
      throw new Crash();
    },
  });
}

async function crashes(work: Promise<unknown>): Promise<void> {
  const failure = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(Crash);
}

/** Handle, and twice affinity, guard of the pool and block: every place where a first assignment may stop. */
const STOPS = [0, 1, 2, 3, 4, 5, 6, 7];

describe("an assignment that dies with its commit", () => {
  test.each(STOPS)("after %d changes is finished by the next attempt", async (written) => {
    await crashes(openAllocator(dyingStore(written), means()).assign(dual));

    const assigned = await healthy().assign(dual);

    expect(assigned.addresses).toHaveLength(2);
    expect(findProblems(await world())).toEqual([]);
    expect((await healthy().held(owner)).length).toBe(2);
  });

  test.each(STOPS)("after %d changes is undone by DEL, and whoever comes next works", async (written) => {
    await crashes(openAllocator(dyingStore(written), means()).assign(dual));

    await healthy().releaseHandle(owner);
    expect((await world()).handles).toEqual([]);
    expect((await world()).blocks.flatMap((block) => block.attributes)).toEqual([]);

    await healthy().assign({ ...dual, handle: "net.b" });
    expect(findProblems(await world())).toEqual([]);
  });

  test.each(STOPS)("after %d changes does not stand in another's way", async (written) => {
    await crashes(openAllocator(dyingStore(written), means()).assign(dual));

    const other = await healthy().assign({ ...dual, handle: "net.b" });
    const late = await healthy().assign(dual);

    expect(textsOf(late)).not.toEqual(textsOf(other));
    expect(findProblems(await world())).toEqual([]);
  });
});

describe("a release that dies with its commit", () => {
  test.each([0, 1, 2, 3])("after %d changes is finished by the next attempt", async (written) => {
    await healthy().assign(dual);
    await crashes(openAllocator(dyingStore(written), means()).releaseHandle(owner));

    await healthy().releaseHandle(owner);

    expect((await world()).handles).toEqual([]);
    expect((await world()).blocks.flatMap((block) => block.attributes)).toEqual([]);
    expect(findProblems(await world())).toEqual([]);
  });
});

describe("what others left half done", () => {
  const [first] = candidateBlocks(prefix("10.0.0.0/24"), 26, { node: "node-1", limit: 1 });
  const cidr = first ?? prefix("10.0.0.0/26");
  const affinityOf = (state: "pending" | "pendingDeletion" | "confirmed"): Change => ({
    kind: "put",
    key: affinityKey("node-1", cidr),
    value: writeAffinity({ state, deleted: false }),
  });
  const blockOf = (block: IPAMBlock): Change => ({ kind: "put", key: blockKey(block.cidr), value: writeBlock(block) });
  const ours = emptyBlock(cidr, hostAffinity("node-1"), 1n);
  const theirs = emptyBlock(cidr, hostAffinity("node-2"), 1n);
  const nobodys = emptyBlock(cidr, undefined, 1n);
  const theirClaim: Change = {
    kind: "put",
    key: affinityKey("node-2", cidr),
    value: writeAffinity({ state: "confirmed", deleted: false }),
  };

  test.each([
    ["a claim whose block was never made", [affinityOf("pending")]],
    ["a claim never confirmed", [affinityOf("pending"), blockOf(ours)]],
    ["a release that stopped before the block", [affinityOf("pendingDeletion"), blockOf(ours)]],
    ["a release that stopped before the claim", [affinityOf("pendingDeletion"), blockOf(nobodys)]],
    ["a claim on a block that another won", [affinityOf("pending"), blockOf(theirs), theirClaim]],
    ["a stale claim", [affinityOf("confirmed"), blockOf(theirs), theirClaim]],
    ["a block whose claim is lost", [blockOf(ours)]],
    [
      "a handle that no block knows",
      [{ kind: "put", key: handleKey("net.a"), value: writeHandle({ blocks: { "10.0.0.0/26": 1 }, deleted: false }) }],
    ],
  ] as const)("%s is put right by the next assignment", async (_, changes) => {
    await seed(openMemory(table), ...changes);

    const { addresses } = await healthy().assign(request("net.a"));

    expect(addresses).toHaveLength(1);
    expect(findProblems(await world())).toEqual([]);
  });

  test("an allocation whose handle is lost is found again by its owner, who gets its handle back", async () => {
    const taken = assignOrdinal(ours, 3, { handleId: "net.a", secondary: {} });
    await seed(openMemory(table), affinityOf("confirmed"), blockOf(taken?.block ?? ours));

    const { addresses } = await healthy().assign(request("net.a"));

    expect(addresses[0]?.held).toBe(true);
    expect(findProblems(await world())).toEqual([]);
  });
});

describe("many at once on one table", () => {
  test("hold no address twice and lose none, whatever the order", async () => {
    let state = 7;
    const random = () => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return state / 2147483648;
    };
    const holders = new Map<string, string>();
    const worker = async (name: string) => {
      const allocator = openAllocator(openMemory(table), means({ random }));
      for (let round = 0; round < 12; round++) {
        const handle = `${name}.${round}`;
        const node = `node-${(round + name.length) % 3}`;
        const [address = ""] = textsOf(await allocator.assign(request(handle, { node })));
        expect(holders.get(address)).toBeUndefined();
        holders.set(address, handle);
        if (random() < 0.2) continue;
        holders.delete(address);
        await allocator.releaseHandle({ handle, node });
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => worker(`w${index}`)));

    const after = await world();
    expect(findProblems(after)).toEqual([]);
    expect(after.handles.map((each) => each.handleId).sort()).toEqual([...holders.values()].sort());
  });
});
