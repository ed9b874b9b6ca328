/**
 * Two allocators at once, interleaved at every single request of both, at both
 * levels of atomicity and as node agents decide from copies. After every single write the records are looked at: since
 * nothing is ever corrupt, both may also be killed at any moment.
 */
import { describe, expect, test } from "bun:test";
import { asItIs, copyingMemory } from "../../test/support/copying-memory.ts";
import { interleave, turnsOfTwo } from "../../test/support/interleaving.ts";
import { address, means, nodeChange, poolChange, prefix, request, seed } from "../../test/support/ipam.ts";
import { proofSize } from "../../test/support/proof-size.ts";
import { LEVELS } from "../../test/support/stopping-memory.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { PluginError } from "../errors.ts";
import { formatAddress } from "../ip/address.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { writeHandle } from "../model/ipam-handle.ts";
import { handleKey } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { addressAt, attributesOf } from "./block.ts";
import { candidateBlocks } from "./candidates.ts";
import type { HintStore } from "./hints.ts";
import { findProblems } from "./invariants.ts";
import type { AssignRequest } from "./request.ts";

/** One block for all: a second one only where a work asks for it. */
const POOL = "10.0.0.0/28";
const [first = prefix(POOL)] = candidateBlocks(prefix(POOL), 29, { node: "node-1", limit: 1 });
const [, second = prefix(POOL)] = candidateBlocks(prefix(POOL), 29, { node: "node-1", limit: 2 });

type Work = (allocator: Allocator) => Promise<unknown>;
const add = (handle: string, more: Partial<AssignRequest> = {}): Work => {
  return (allocator) => allocator.assign(request(handle, more));
};
const addNamed = (handle: string, text: string, more: Partial<AssignRequest> = {}): Work =>
  add(handle, { ...more, addressRequests: [{ kind: "given", address: address(text) }] });
const del = (handle: string, more: { interface?: string } = {}): Work => {
  return (allocator) => allocator.releaseHandle({ handle, node: "node-1", ...more });
};
const release = (text: string, handle: string): Work => {
  return (allocator) => allocator.releaseAddresses([{ address: address(text), handle }]);
};
const endClaim = (inUse: "keep" | "release", block = first, node = "node-1"): Work => {
  return (allocator) => allocator.releaseAffinity({ node, block, inUse });
};
const FIRST = formatAddress(first.network);

interface Race {
  readonly title: string;
  readonly before?: readonly Work[];
  readonly works: readonly [Work, Work];
}

const RACES: readonly Race[] = [
  { title: "two first assignments of one node", works: [add("net.a"), add("net.b")] },
  { title: "two first assignments of two nodes", works: [add("net.a"), add("net.b", { node: "node-2" })] },
  {
    title: "two nodes that want a new block both",
    works: [addNamed("net.a", FIRST), addNamed("net.b", FIRST, { node: "node-2" })],
  },
  { title: "an assignment and itself", works: [add("net.a"), add("net.a")] },
  {
    title: "two interfaces of one container",
    works: [add("net.a", { interface: "eth0" }), add("net.a", { interface: "eth1" })],
  },
  {
    title: "two interfaces of one container, in two blocks",
    works: [
      addNamed("net.a", FIRST, { interface: "eth0" }),
      addNamed("net.a", formatAddress(second.network), { interface: "eth1" }),
    ],
  },
  {
    title: "two interfaces of one container, in two pools",
    works: [
      add("net.a", { interface: "eth0", addressRequests: [{ kind: "automatic", family: 4, pools: ["red"] }] }),
      addNamed("net.a", FIRST, { interface: "eth1" }),
    ],
  },
  { title: "an assignment and its own release", works: [add("net.a"), del("net.a")] },
  {
    title: "an assignment and its own release, on a block of the node",
    before: [add("net.b")],
    works: [add("net.a"), del("net.a")],
  },
  {
    title: "a second interface and the release of the first",
    before: [add("net.a", { interface: "eth0" })],
    works: [add("net.a", { interface: "eth1" }), del("net.a", { interface: "eth0" })],
  },
  { title: "a release and itself", before: [add("net.a")], works: [del("net.a"), del("net.a")] },
  {
    title: "a release by handle and by address",
    before: [addNamed("net.a", FIRST)],
    works: [del("net.a"), release(FIRST, "net.a")],
  },
  {
    title: "an assignment and a release by address, of one handle",
    before: [addNamed("net.a", FIRST)],
    works: [addNamed("net.a", formatAddress(second.network)), release(FIRST, "net.a")],
  },
  { title: "a release and another's assignment", before: [add("net.a")], works: [del("net.a"), add("net.b")] },
  {
    title: "an assignment and the end of a claim",
    before: [add("net.b"), del("net.b")],
    works: [add("net.a"), endClaim("keep")],
  },
  { title: "a first assignment and the end of its claim", works: [add("net.a"), endClaim("release")] },
  {
    title: "an assignment and the end of a claim in use",
    before: [add("net.b")],
    works: [add("net.a"), endClaim("release")],
  },
  { title: "a release and the end of its claim", before: [add("net.a")], works: [del("net.a"), endClaim("release")] },
  { title: "two ends of one claim", before: [add("net.a")], works: [endClaim("keep"), endClaim("release")] },
  {
    title: "two ends of an empty claim",
    before: [add("net.a"), del("net.a")],
    works: [endClaim("keep"), endClaim("keep")],
  },
  {
    title: "two nodes after a block that is nobody's",
    before: [addNamed("net.c", FIRST), endClaim("release")],
    works: [add("net.a"), add("net.b", { node: "node-2" })],
  },
];

/** How often the two take turns, and how many requests one makes at most before it is the other's turn. */
const SIZES = proofSize({
  everyDay: [
    { turns: 2, most: 8 },
    { turns: 3, most: 3 },
  ],
  soak: [
    { turns: 3, most: 12 },
    { turns: 4, most: 5 },
  ],
});
const SCHEDULES = SIZES.flatMap(({ turns, most }) => [...turnsOfTwo(most, turns)]);

/** Both blocks are remembered, though they may not exist: a store with a request for each record then reads less. */
const REMEMBERED: HintStore = {
  load: async () => ({
    blocks: [first, second].map((cidr) => ({ cidr: formatPrefix(cidr), full: false })),
    warnedUnregistered: false,
  }),
  save: async () => {},
};

const MODES = [
  ...LEVELS.map((atomicity) => ({ atomicity, title: `${atomicity} at a time`, more: {}, openFor: asItIs })),
  { atomicity: "one object", title: "one object at a time, with hints", more: { hints: REMEMBERED }, openFor: asItIs },
  {
    atomicity: "one object",
    title: "decided by node agents from their copies",
    more: { hints: REMEMBERED },
    openFor: copyingMemory,
  },
] as const;

for (const { atomicity, title: mode, more, openFor } of MODES) {
  describe(`at every interleaving, ${mode},`, () => {
    const open = async (before: readonly Work[], surplus: boolean) => {
      const table = new MemoryTable();
      await seed(openMemory(table), nodeChange("node-1"), nodeChange("node-2"));
      await seed(openMemory(table), poolChange("blue", POOL, { blockSize: 29 }));
      // Only for who asks for it.
      await seed(openMemory(table), poolChange("red", "10.1.0.0/29", { blockSize: 29, nodeSelector: "has(red)" }));
      if (surplus) {
        // What an assignment left that died behind its handle.
        const value = writeHandle({ blocks: { "10.0.0.0/29": 1, "10.0.0.8/29": 1 }, deleted: false });
        await seed(openMemory(table), { kind: "put", key: handleKey("net.a"), value });
      }
      for (const work of before) await work(openAllocator(openMemory(table, { atomicity }), means()));
      return table;
    };
    const problemsOf = async (table: MemoryTable) => findProblems(await readAllRecords(openMemory(table)));

    for (const { title, before = [], works } of RACES) {
      test.each([
        ["", false],
        [", with a surplus of the handle", true],
      ])(
        `${title}${"%s"} never leave corrupt records`,
        async (_, surplus) => {
          for (const schedule of SCHEDULES) {
            const table = await open(before, surplus);
            const corrupt = async () => (await problemsOf(table)).filter(({ severity }) => severity === "corrupt");
            const results = await interleave({
              table,
              atomicity,
              works: works.map((work) => async (requests) => {
                const store = await openFor(requests, table);
                return work(openAllocator(store, means(more))).finally(() => store.close());
              }),
              schedule,
              afterEachWrite: async () =>
                expect({ schedule, corrupt: await corrupt() }).toEqual({ schedule, corrupt: [] }),
            });
            for (const { outcome } of results) requireExpected(outcome);
            await endAll(table);
            expect({ schedule, problems: await problemsOf(table) }).toEqual({ schedule, problems: [] });
          }
        },
        120_000,
      );
    }

    /** Every container goes, then every node's claims: nothing may be left. */
    const endAll = async (table: MemoryTable) => {
      const allocator = openAllocator(openMemory(table, { atomicity }), means());
      for (const handle of ["net.a", "net.b", "net.c"]) {
        for (const node of ["node-1", "node-2"]) await allocator.releaseHandle({ handle, node });
      }
      const { blocks, handles } = await readAllRecords(openMemory(table));
      const held = blocks.flatMap((block) =>
        block.allocations.flatMap((_, ordinal) => (attributesOf(block, ordinal) ? addressAt(block, ordinal) : [])),
      );
      expect([...handles, ...held]).toEqual([]);
      for (const node of ["node-1", "node-2"]) {
        for (const block of [first, second, prefix("10.1.0.0/29")])
          await allocator.releaseAffinity({ node, block, inUse: "keep" });
      }
    };
  });
}

/** An address that both want goes to one of them. */
function requireExpected(outcome: unknown): void {
  if (!(outcome instanceof Error)) return;
  if (outcome instanceof PluginError && outcome.kind === "address-taken") return;
  throw outcome;
}
