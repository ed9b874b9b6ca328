/** What a writer of another release, or one that died, may have left: put right by whoever passes. */
import { beforeEach, describe, expect, test } from "bun:test";
import { means, nodeChange, poolChange, prefix, request, seed, textsOf } from "../../test/support/ipam.ts";
import { LEVELS } from "../../test/support/stopping-memory.ts";
import type { Change } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { writeAffinity } from "../model/block-affinity.ts";
import { hostAffinity, type IPAMBlock, writeBlock } from "../model/ipam-block.ts";
import { writeHandle } from "../model/ipam-handle.ts";
import { affinityKey, blockKey, handleKey } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { assignOrdinal, emptyBlock } from "./block.ts";
import { candidateBlocks } from "./candidates.ts";
import { findProblems } from "./invariants.ts";

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

const world = () => readAllRecords(openMemory(table));

for (const level of LEVELS) {
  const healthy = () => openAllocator(openMemory(table, { atomicity: level }), means());

  describe(`what others left half done, where ${level} are committed at a time`, () => {
    const [first] = candidateBlocks(prefix("10.0.0.0/24"), 26, { node: "node-1", limit: 1 });
    const cidr = first ?? prefix("10.0.0.0/26");
    const affinityOf = (state: "pending" | "pendingDeletion" | "confirmed"): Change => ({
      kind: "put",
      key: affinityKey("node-1", cidr),
      value: writeAffinity({ state, deleted: false }),
    });
    const blockOf = (block: IPAMBlock): Change => ({
      kind: "put",
      key: blockKey(block.cidr),
      value: writeBlock(block),
    });
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
        [
          {
            kind: "put",
            key: handleKey("net.a"),
            value: writeHandle({ blocks: { "10.0.0.0/26": 1 }, deleted: false }),
          },
        ],
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

  describe(`many at once on one table, ${level} at a time`, () => {
    test("hold no address twice and lose none, whatever the order", async () => {
      let state = 7;
      const random = () => {
        state = (state * 1103515245 + 12345) % 2147483648;
        return state / 2147483648;
      };
      const holders = new Map<string, string>();
      const worker = async (name: string) => {
        const allocator = openAllocator(openMemory(table, { atomicity: level }), means({ random }));
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
}
