import { beforeEach, describe, expect, test } from "bun:test";
import { asItIs, copyingMemory } from "../../test/support/copying-memory.ts";
import { address, means, nodeChange, poolChange, prefix, request, seed, textsOf } from "../../test/support/ipam.ts";
import { LEVELS } from "../../test/support/stopping-memory.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Atomicity, Change, Datastore } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { type Address, formatAddress } from "../ip/address.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { writeAffinity } from "../model/block-affinity.ts";
import { hostAffinity, type IPAMBlock, writeBlock } from "../model/ipam-block.ts";
import { writeHandle } from "../model/ipam-handle.ts";
import { affinityKey, blockKey, handleKey } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { emptyBlock } from "./block.ts";
import { candidateBlocks } from "./candidates.ts";
import { findProblems } from "./invariants.ts";
import { isEmptyWithoutNode } from "./release/block-after-release.ts";

let table: MemoryTable;

beforeEach(async () => {
  table = new MemoryTable();
  await seed(openMemory(table), nodeChange("node-1"), nodeChange("node-2"), poolChange("blue", "10.0.0.0/24"));
});

/** `openFor`: opens the datastore of who is overtaken, on the given one. */
interface Mode {
  readonly title: string;
  readonly atomicity: Atomicity;
  readonly openFor: (store: Datastore, table: MemoryTable) => Promise<Datastore>;
}

const AT_EACH_LEVEL = LEVELS.map(
  (level): Mode => ({
    title: `committing ${level} at a time`,
    atomicity: level,
    openFor: asItIs,
  }),
);
const MODES: readonly Mode[] = [
  ...AT_EACH_LEVEL,
  { title: "by a node agent whose copies are old", atomicity: "one object", openFor: copyingMemory },
];

let { atomicity, openFor } = MODES[0] as Mode;
const useMode = (mode: Mode) => {
  ({ atomicity, openFor } = mode);
};
const store = () => openMemory(table, { atomicity });
const allocator = (on: Datastore = store()) => openAllocator(on, means());
const problems = async () => findProblems(await readAllRecords(store()));

/** Lets something happen between the last read and the first commit. */
async function overtakenBy(happening: () => Promise<unknown>): Promise<Datastore> {
  const real = store();
  let isFirst = true;
  const overtaken = storeAround(real, {
    commit: async (changes) => {
      if (isFirst) {
        isFirst = false;
        await happening();
      }
      return real.commit(changes);
    },
  });
  return openFor(overtaken, table);
}

const textsOfHeld = (held: readonly { readonly address: Address }[]) => held.map((each) => formatAddress(each.address));
const put = (key: string, value: string): Change => ({ kind: "put", key, value });
const blockPut = (block: IPAMBlock): Change => put(blockKey(block.cidr), writeBlock(block));
const affinityPut = (node: string, cidr: string): Change =>
  put(affinityKey(node, prefix(cidr)), writeAffinity({ state: "confirmed", deleted: false }));
const handlePut = (handle: string, blocks: Record<string, number>): Change =>
  put(handleKey(handle), writeHandle({ blocks, deleted: false }));
const [firstOfNode = prefix("10.0.0.0/26")] = candidateBlocks(prefix("10.0.0.0/24"), 26, { node: "node-1", limit: 1 });
const first = formatPrefix(firstOfNode);

/** A node agent does not look at the pool of a block that exists: an address of a pool that was just disabled may be given. */
describe.each(AT_EACH_LEVEL)("$title, an assignment overtaken by", (mode) => {
  beforeEach(() => useMode(mode));

  test("the disabling of its pool gives no address of it, though the block was there already", async () => {
    await allocator().assign(request("net.a"));
    const late = allocator(
      await overtakenBy(() => seed(store(), poolChange("blue", "10.0.0.0/24", { disabled: true }))),
    );

    const error = await rejectionOf(() => late.assign(request("net.b")));

    expect(error.kind).toBe("addresses-exhausted");
    expect((await readAllRecords(store())).handles.map(({ handleId }) => handleId)).toEqual(["net.a"]);
  });

  test("the disabling of its pool does not give a named address of it either", async () => {
    const addressRequests = [{ kind: "given", address: firstOfNode.network }] as const;
    await allocator().assign(request("net.a", { network: "net" }));
    await allocator().releaseHandle({ handle: "net.a", node: "node-1" });
    const late = allocator(
      await overtakenBy(() => seed(store(), poolChange("blue", "10.0.0.0/24", { disabled: true }))),
    );

    const error = await rejectionOf(() => late.assign(request("net.b", { network: "net", addressRequests })));

    expect(error.kind).toBe("address-outside-pools");
  });

  describe("the disabling of the pool of its second address", () => {
    const both = ([4, 6] as const).map((family) => ({ kind: "automatic", family }) as const);
    const disableSix = () => seed(store(), poolChange("six", "fd00::/64", { disabled: true }));
    beforeEach(async () => {
      await seed(store(), poolChange("six", "fd00::/64"));
      await allocator().assign(request("net.b", { addressRequests: both }));
    });
    const heldBy = async (handle: string) => textsOfHeld(await allocator().held({ handle, node: "node-1" }));

    test("leaves it without the first", async () => {
      const late = allocator(await overtakenBy(disableSix));

      expect((await rejectionOf(() => late.assign(request("net.a", { addressRequests: both })))).kind).toBe(
        "addresses-exhausted",
      );
      expect((await readAllRecords(store())).handles.map(({ handleId }) => handleId)).toEqual(["net.b"]);
      expect(await problems()).toEqual([]);
    });

    test("leaves it the first that it had held before", async () => {
      const before = textsOf(await allocator().assign(request("net.a")));
      const late = allocator(await overtakenBy(disableSix));

      expect((await rejectionOf(() => late.assign(request("net.a", { addressRequests: both })))).kind).toBe(
        "addresses-exhausted",
      );
      expect(await heldBy("net.a")).toEqual([...before]);
    });
  });
});

describe.each(MODES)("$title,", (mode) => {
  beforeEach(() => useMode(mode));

  describe("an assignment overtaken by", () => {
    test("a release of the same handle leaves the address with a handle that leads to it", async () => {
      // A handle that counts an address its block does not hold: what a crash may leave.
      await seed(store(), affinityPut("node-1", first), handlePut("net.a", { [first]: 1 }));
      await seed(store(), blockPut(emptyBlock(firstOfNode, hostAffinity("node-1"), 1n)));
      const release = () => allocator().releaseHandle({ handle: "net.a", node: "node-1" });

      await allocator(await overtakenBy(release)).assign(request("net.a"));

      expect(await problems()).toEqual([]);
    });

    test("one of the same handle gives both the same address", async () => {
      let other: readonly string[] = [];
      const sibling = async () => {
        other = textsOf(await allocator().assign(request("net.a")));
      };

      const own = textsOf(await allocator(await overtakenBy(sibling)).assign(request("net.a")));

      expect(own).toEqual(other);
      expect(await problems()).toEqual([]);
    });

    test("another for the last address of all fails, and takes nothing", async () => {
      await seed(store(), poolChange("blue", "10.0.0.0/32", { blockSize: 32 }));
      const late = allocator(await overtakenBy(() => allocator().assign(request("net.a", { node: "node-2" }))));

      const error = await rejectionOf(() => late.assign(request("net.b")));

      expect(error.kind).toBe("addresses-exhausted");
      expect((await readAllRecords(store())).handles.map(({ handleId }) => handleId)).toEqual(["net.a"]);
      // Of the claim at most, which was never confirmed.
      expect((await problems()).filter(({ severity }) => severity === "corrupt")).toEqual([]);
    });

    test("a claim of the same block by another node takes another block", async () => {
      const theirs = emptyBlock(firstOfNode, hostAffinity("node-2"), 1n);
      const late = allocator(await overtakenBy(() => seed(store(), affinityPut("node-2", first), blockPut(theirs))));

      const { addresses } = await late.assign(request("net.a"));

      expect(formatPrefix(addresses[0]?.block ?? firstOfNode)).not.toBe(first);
      expect(await problems()).toEqual([]);
    });

    test("the end of its node's claim on the block does not write into a block that is gone", async () => {
      await allocator().assign(request("net.a"));
      await allocator().releaseHandle({ handle: "net.a", node: "node-1" });
      const end = () => allocator().releaseAffinity({ node: "node-1", block: firstOfNode, inUse: "keep" });

      await allocator(await overtakenBy(end)).assign(request("net.b"));

      expect(await problems()).toEqual([]);
    });

    test("a sibling that claims a block anew does not take the renewed claim away as stale", async () => {
      // This node's claim on a block that is nobody's by now.
      await seed(store(), affinityPut("node-1", first), blockPut(emptyBlock(firstOfNode, undefined, 1n)));
      await seed(store(), poolChange("red", "10.1.0.0/24"));
      const from = (pool: string) => ({ addressRequests: [{ kind: "automatic", family: 4, pools: [pool] }] as const });
      const remembered = { blocks: [{ cidr: first, full: false }], warnedUnregistered: false };
      const hints = { load: async () => remembered, save: async () => {} };
      const sibling = () => allocator().assign(request("net.b", from("blue")));
      const late = openAllocator(await overtakenBy(sibling), means({ hints }));

      await late.assign(request("net.a", from("red")));

      expect(await problems()).toEqual([]);
    });
  });

  describe("a first assignment", () => {
    test.each([
      ["disabled", { disabled: true }],
      ["given another block size", { blockSize: 28 }],
    ])("creates no block in a pool that was %s meanwhile", async (_, changed) => {
      const late = allocator(await openFor(store(), table));
      await seed(store(), poolChange("blue", "10.0.0.0/24", changed));
      await allocator()
        .assign(request("net.b", { node: "node-2" }))
        .catch(() => {});

      const outcome = await late.assign(request("net.a")).catch((error) => error);

      if ("disabled" in changed) expect(outcome).toMatchObject({ kind: "addresses-exhausted" });
      expect((await readAllRecords(store())).blocks.map(({ cidr }) => cidr.length)).not.toContain(26);
      expect(await problems()).toEqual([]);
    });
  });

  describe("a release overtaken by", () => {
    const owner = { handle: "net.a", node: "node-1" };

    test("another release of the same handle is done as well", async () => {
      await allocator().assign(request("net.a"));
      const twin = () => allocator().releaseHandle(owner);

      expect(await allocator(await overtakenBy(twin)).releaseHandle(owner)).toEqual([]);
      expect(await problems()).toEqual([]);
    });

    test("a new owner of the address leaves it alone", async () => {
      await seed(store(), poolChange("blue", "10.0.0.0/32", { blockSize: 32 }));
      await allocator().assign(request("net.a"));
      const change = async () => {
        await allocator().releaseHandle(owner);
        await allocator().assign(request("net.b"));
      };
      const guarded = [{ address: address("10.0.0.0"), handle: "net.a" }];

      const { released, refused } = await allocator(await overtakenBy(change)).releaseAddresses(guarded);

      expect([released.length, refused.length]).toEqual([0, 1]);
      expect((await readAllRecords(store())).handles.map(({ handleId }) => handleId)).toEqual(["net.b"]);
    });

    test("the end of the claim leaves an empty block behind that is nobody's only until it has rested", async () => {
      await allocator().assign(request("net.a"));
      const end = () => allocator().releaseAffinity({ node: "node-1", block: firstOfNode, inUse: "release" });

      await allocator(await overtakenBy(end)).releaseHandle(owner);

      const { blocks, affinities } = await readAllRecords(store());
      expect([blocks.map(isEmptyWithoutNode), affinities]).toEqual([[true], []]);
      expect(await problems()).toEqual([]);
    });
  });

  describe("records that no writer of this product leaves", () => {
    test("a claim of another block length is not finished into a block that overlaps others", async () => {
      await seed(store(), poolChange("blue", "10.0.0.0/24", { blockSize: 28 }), affinityPut("node-1", "10.0.0.0/24"));
      await allocator().assign(request("net.a", { node: "node-2" }));

      await allocator().assign(request("net.b"));

      expect((await problems()).map(({ kind }) => kind)).not.toContain("blocks-overlap");
    });

    test("an address that is both free and held is not given again", async () => {
      const { addresses } = await allocator().assign(request("net.a"));
      const [block] = (await readAllRecords(store())).blocks;
      if (!block) throw new Error("expected a block");
      await seed(store(), blockPut({ ...block, unallocated: [0, ...block.unallocated] }));

      const { addresses: others } = await allocator().assign(request("net.b"));

      expect(others[0]?.address).not.toEqual(addresses[0]?.address as never);
    });
  });

  describe("what an attachment holds", () => {
    test("is given to it again by name after the pool was disabled", async () => {
      const addressRequests = [{ kind: "given", address: address("10.0.0.7") }] as const;
      await allocator().assign(request("net.a", { addressRequests }));
      await seed(store(), poolChange("blue", "10.0.0.0/24", { disabled: true }));

      const { addresses } = await allocator().assign(request("net.a", { addressRequests }));

      expect(addresses[0]).toMatchObject({ held: true, given: true });
    });
  });
});
