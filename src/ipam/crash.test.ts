/**
 * Every operation of the allocator, stopped after every single write, at both
 * levels of atomicity and as a node agent decides it from copies. Whatever is left is never corrupt, and is finished or
 * undone by the same call again, by a DEL, or by another's ADD.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { asItIs, copyingMemory } from "../../test/support/copying-memory.ts";
import { means, nodeChange, poolChange, prefix, request, seed, textsOf } from "../../test/support/ipam.ts";
import { isStopped, LEVELS, stoppingMemory } from "../../test/support/stopping-memory.ts";
import type { Change } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import type { AllocatorMeans } from "./allocator-means.ts";
import { candidateBlocks } from "./candidates.ts";
import type { Alongside } from "./commit-loop.ts";
import { openHintMemory } from "./hint-file.ts";
import { findProblems } from "./invariants.ts";

const ENDPOINT = { kind: "key", key: "/endpoint/a" } as const;
const DUAL = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;
const dual = request("net.a", { addressRequests: DUAL });
const owner = { handle: "net.a", node: "node-1" };
const [firstOfNode = prefix("10.0.0.0/26")] = candidateBlocks(prefix("10.0.0.0/24"), 26, { node: "node-1", limit: 1 });

/** As the network plugin does: the endpoint comes last. */
const writingEndpoint: Alongside<unknown> = {
  wanted: [ENDPOINT],
  changes: ([found]): readonly Change[] => (found?.[0] ? [] : [{ kind: "create", key: ENDPOINT.key, value: "x" }]),
};
const removingEndpoint: Alongside<unknown> = {
  wanted: [ENDPOINT],
  changes: ([found]) => found?.map(({ key, revision }): Change => ({ kind: "delete", key, revision })) ?? [],
};
const add = (allocator: Allocator) => allocator.assign(dual, writingEndpoint);
const del = (allocator: Allocator) => allocator.releaseHandle(owner, removingEndpoint);
const another = (allocator: Allocator) => allocator.assign(request("net.b", { addressRequests: DUAL }));

interface Operation {
  readonly title: string;
  readonly before: readonly ((allocator: Allocator) => Promise<unknown>)[];
  readonly run: (allocator: Allocator) => Promise<unknown>;
  /** How many single writes it is, at the level of all changes and of one object. */
  readonly writes: readonly [number, number];
}

const endOfClaim = (inUse: "keep" | "release") => (allocator: Allocator) =>
  allocator.releaseAffinity({ node: "node-1", block: firstOfNode, inUse, resting: "forget" });
const releaseByAddress = (allocator: Allocator) =>
  allocator.releaseAddresses([{ address: firstOfNode.network, handle: "net.a" }]);

const OPERATIONS: readonly Operation[] = [
  // Per family: claim, empty block, address, claim confirmed; the handle, the endpoint.
  { title: "an assignment from new blocks", before: [], run: add, writes: [1, 10] },
  { title: "an assignment from the node's blocks", before: [another], run: add, writes: [1, 4] },
  {
    title: "an assignment from a block that is nobody's",
    before: [another, endOfClaim("release")],
    run: add,
    // The handle, the endpoint, an address of each family, and the claim on one block, twice.
    writes: [1, 6],
  },
  { title: "a release by handle", before: [add], run: del, writes: [1, 4] },
  { title: "a release by handle beside another", before: [another, add], run: del, writes: [1, 4] },
  { title: "a release of an address", before: [add], run: releaseByAddress, writes: [1, 2] },
  { title: "the end of a claim on an empty block", before: [add, del], run: endOfClaim("keep"), writes: [1, 3] },
  // With the record that the node's addresses in it are borrowed now.
  { title: "the end of a claim on a block in use", before: [add], run: endOfClaim("release"), writes: [1, 4] },
];

const MODES = [
  ...LEVELS.map((level, index) => ({ level, index, title: "", remembers: false, openFor: asItIs })),
  // A store with a request for each record then reads less.
  { level: "one object", index: 1, title: " on a host that remembers its blocks", remembers: true, openFor: asItIs },
  { level: "one object", index: 1, title: " by a node agent with copies", remembers: true, openFor: copyingMemory },
] as const;

for (const { index, level, title, remembers, openFor } of MODES) {
  describe(`with a datastore that commits ${level} at a time${title}, stopped after any write,`, () => {
    let table: MemoryTable;
    let more: Pick<AllocatorMeans, "hints">;
    beforeEach(async () => {
      table = new MemoryTable();
      await seedWorld();
    });

    const seedWorld = () => {
      more = remembers ? { hints: openHintMemory() } : {};
      return seed(
        openMemory(table),
        nodeChange("node-1"),
        poolChange("four", "10.0.0.0/24"),
        poolChange("six", "fd00::/64"),
      );
    };
    const healthy = () => openAllocator(openMemory(table, { atomicity: level }), means(more));
    const world = () => readAllRecords(openMemory(table));
    const problems = async () => findProblems(await world());
    const corrupt = async () => (await problems()).filter(({ severity }) => severity === "corrupt");
    const endpoints = async () => (await openMemory(table).read([ENDPOINT])).answers[0]?.length ?? 0;

    /** Once for every place where it may stop: stops there, then lets `recover` go on. */
    const afterEveryStop = async ({ before, run, writes }: Operation, recover: () => Promise<unknown>) => {
      let stops = 0;
      for (; ; stops++) {
        table = new MemoryTable();
        await seedWorld();
        for (const step of before) await step(healthy());
        const store = await openFor(stoppingMemory(table, level, stops), table);
        const stopped = await isStopped(run(openAllocator(store, means(more))));
        await store.close();
        if (!stopped) break;
        expect(await corrupt()).toEqual([]);
        await recover();
        expect(await corrupt()).toEqual([]);
      }
      expect(stops).toBe((writes[index] ?? 0) + 1);
    };

    for (const operation of OPERATIONS) {
      test(`${operation.title} is finished by the same call again`, async () => {
        await afterEveryStop(operation, async () => {
          await operation.run(healthy());
          expect(await problems()).toEqual([]);
        });
      });

      test(`${operation.title} is undone by a DEL`, async () => {
        await afterEveryStop(operation, async () => {
          await del(healthy());
          const { handles, blocks } = await world();
          const holders = blocks.flatMap((block) => block.attributes.map(({ handleId }) => handleId));
          expect([...handles.map(({ handleId }) => handleId), ...holders]).not.toContain("net.a");
          expect(await endpoints()).toBe(0);
        });
      });

      test(`${operation.title} is in nobody's way`, async () => {
        await afterEveryStop(operation, async () => {
          const theirs = await healthy().assign(request("net.c", { addressRequests: DUAL }));
          const late = await add(healthy());
          expect(new Set([...textsOf(theirs), ...textsOf(late)]).size).toBe(4);
          await del(healthy());
          await healthy().releaseHandle({ handle: "net.c", node: "node-1" });
          expect(await problems()).toEqual([]);
        });
      });
    }
  });
}
