/** Addresses that are kept for an identity, by the allocator, at both levels of atomicity and stopped after every write. */
import { beforeEach, describe, expect, test } from "bun:test";
import { copyingMemory } from "../../test/support/copying-memory.ts";
import { address, means, nodeChange, poolChange, request, seed, textsOf } from "../../test/support/ipam.ts";
import { isStopped, LEVELS, stoppingMemory } from "../../test/support/stopping-memory.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { formatAddress } from "../ip/address.ts";
import { isWaiting, keepHandle, keptOf } from "../model/kept-address.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { KeptInUse } from "./assign/kept-address.ts";
import { findProblems } from "./invariants.ts";
import type { AssignRequest, KeepRequest, ReleaseHandleRequest } from "./request.ts";

const HANDLE = keepHandle({ network: "net", namespace: "shop", identity: "pod/db-0" });
const DUAL = [
  { kind: "automatic", family: 4 },
  { kind: "automatic", family: 6 },
] as const;

function ofPod(container: string, node: string, keep: Partial<KeepRequest> = {}): AssignRequest {
  return request(`net.${container}`, {
    network: "net",
    interface: "eth0",
    node,
    attributes: { pod: "db-0", namespace: "shop" },
    addressRequests: DUAL,
    keep: { handle: HANDLE, containerId: container, when: "always", title: 'pod "shop/db-0"', ...keep },
  });
}

function released(container: string, node: string, more: Partial<ReleaseHandleRequest> = {}): ReleaseHandleRequest {
  const kept = { containerId: container, handle: HANDLE };
  return { handle: `net.${container}`, network: "net", interface: "eth0", node, kept, ...more };
}

let table: MemoryTable;
beforeEach(async () => {
  table = new MemoryTable();
  await seedWorld();
});
const seedWorld = (more: object = {}) =>
  seed(
    openMemory(table),
    nodeChange("node-1"),
    nodeChange("node-2"),
    poolChange("four", "10.0.0.0/24", more),
    poolChange("six", "fd00::/64"),
  );
const records = () => readAllRecords(openMemory(table));
const problems = async () => findProblems(await records());
const attributes = async () => (await records()).blocks.flatMap((block) => block.attributes);

test("an address in use has the time of its host, by which that looks for leaks", async () => {
  const clock = () => new Date("2026-01-02T09:00:00Z");
  const allocator = openAllocator(storeAround(openMemory(table), { clock }), means());
  await allocator.assign(ofPod("c1", "node-1"));
  expect((await attributes()).map((each) => keptOf(each)?.since)).toEqual([means().now(), means().now()]);
  await allocator.releaseHandle(released("c1", "node-1"));
  expect((await attributes()).map((each) => keptOf(each)?.since)).toEqual([clock(), clock()]);
});

describe("an agent that remembers blocks as they were", () => {
  /** Node 1 remembers the block of node 2 as it was before an address in it was kept for the pod. */
  async function keptSinceRemembered(keep: Partial<KeepRequest>) {
    const direct = openMemory(table, { atomicity: "one object" });
    const other = openAllocator(direct, means());
    const { keep: _, ...ordinary } = ofPod("c0", "node-2");
    await other.assign(ordinary);
    const agent = openAllocator(await copyingMemory(direct, table), means());
    const first = await other.assign(ofPod("c1", "node-2", keep));
    await other.releaseHandle(released("c1", "node-2"));
    return { agent, first };
  }

  test("gives a pod what is kept for it elsewhere", async () => {
    const { agent, first } = await keptSinceRemembered({});
    expect(textsOf(await agent.assign(ofPod("c2", "node-1")))).toEqual(textsOf(first));
    expect((await attributes()).filter(isWaiting)).toEqual([]);
    expect(await problems()).toEqual([]);
  });

  test("also if the pools decide, and the present one does not keep", async () => {
    await seed(openMemory(table), poolChange("other", "10.0.1.0/24", { keepAddresses: true }));
    const { agent, first } = await keptSinceRemembered({ when: "always" });
    const again = await agent.assign(ofPod("c2", "node-1", { when: "if its pool does" }));
    expect(textsOf(again)).toEqual(textsOf(first));
    expect(await problems()).toEqual([]);
  });
});

for (const level of LEVELS) {
  describe(`on a datastore that commits ${level} at a time`, () => {
    const healthy = (): Allocator => openAllocator(openMemory(table, { atomicity: level }), means());

    test("gives a pod its addresses back on another node, and counts them all the time", async () => {
      const first = await healthy().assign(ofPod("c1", "node-1"));
      expect((await attributes()).map((each) => keptOf(each)?.user)).toEqual([
        { containerId: "c1", node: "node-1" },
        { containerId: "c1", node: "node-1" },
      ]);
      expect(await problems()).toEqual([]);
      const left = await healthy().releaseHandle(released("c1", "node-1"));
      expect(left.map(formatAddress)).toEqual([...textsOf(first)]);
      expect((await attributes()).every(isWaiting)).toBe(true);
      expect(await problems()).toEqual([]);
      const others = await Promise.all(
        [1, 2, 3].map((each) => healthy().assign(request(`net.o${each}`, { addressRequests: DUAL }))),
      );
      const second = await healthy().assign(ofPod("c2", "node-2"));

      expect(textsOf(second)).toEqual(textsOf(first));
      expect(second.addresses.map(({ kept, held }) => [kept, held])).toEqual([
        ["again", false],
        ["again", false],
      ]);
      expect(others.flatMap(textsOf)).not.toContain(textsOf(first)[0] ?? "");
      expect(await problems()).toEqual([]);
    });

    test("gives a second ADD of the same container the same", async () => {
      const first = await healthy().assign(ofPod("c1", "node-1"));
      const again = await healthy().assign({ ...ofPod("c1", "node-1"), renewsHeld: true });

      expect(textsOf(again)).toEqual(textsOf(first));
      expect(again.addresses.every(({ held }) => held)).toBe(true);
      expect(await problems()).toEqual([]);
    });

    test("refuses a pod whose former container still uses them, and names container and node", async () => {
      const first = await healthy().assign(ofPod("c1", "node-1"));
      const failure = await refusalOf(healthy().assign(ofPod("c2", "node-2")));

      expect(failure).toBeInstanceOf(KeptInUse);
      expect(failure).toMatchObject({ kind: "try-again-later" });
      for (const each of [...textsOf(first), '"c1"', '"node-1"', "shop/db-0"]) {
        expect(String(failure)).toContain(each);
      }
      expect(await problems()).toEqual([]);
    });

    test("a DEL of another container of the pod, or a late one, changes nothing", async () => {
      await healthy().assign(ofPod("c1", "node-1"));
      await healthy().releaseHandle(released("c1", "node-1"));
      const second = await healthy().assign(ofPod("c2", "node-2"));

      expect(await healthy().releaseHandle(released("c1", "node-1"))).toEqual([]);
      expect(await healthy().held(released("c2", "node-2"))).toHaveLength(2);
      expect(textsOf(second)).toHaveLength(2);
      expect(await problems()).toEqual([]);
    });

    test("without the pod's name, the addresses of the runtime's result lead DEL to them", async () => {
      const { addresses } = await healthy().assign(ofPod("c1", "node-1"));
      const likely = addresses.map((each) => formatAddress(each.address));
      const left = await healthy().releaseHandle(released("c1", "node-1", { likely, kept: { containerId: "c1" } }));

      expect(left).toHaveLength(2);
      expect((await attributes()).every(isWaiting)).toBe(true);
    });

    test("they do so whatever the size of the blocks and the name of the pod: of a virtual machine DEL knows neither", async () => {
      table = new MemoryTable();
      await seedWorld({ blockSize: 28 });
      const machine = keepHandle({ network: "net", namespace: "shop", identity: "vm/desktop" });
      const { addresses } = await healthy().assign({
        ...ofPod("c1", "node-1", { handle: machine }),
        addressRequests: [DUAL[0]],
      });
      const likely = addresses.map((each) => formatAddress(each.address));

      expect(await healthy().held(released("c1", "node-1", { likely }))).toHaveLength(1);
      expect(await healthy().releaseHandle(released("c1", "node-1", { likely }))).toHaveLength(1);
      expect((await attributes()).every(isWaiting)).toBe(true);
    });

    test("undoing an ADD frees what is new, and lets what waited wait again", async () => {
      const first = await healthy().assign(ofPod("c1", "node-1"));
      const forGood = first.addresses.map((each) => each.address);
      await healthy().releaseHandle(released("c1", "node-1", { kept: { containerId: "c1", handle: HANDLE, forGood } }));
      expect(await attributes()).toEqual([]);
      expect((await records()).handles).toEqual([]);
      await healthy().assign(ofPod("c1", "node-1"));
      await healthy().releaseHandle(released("c1", "node-1"));
      await healthy().assign(ofPod("c2", "node-1"));
      await healthy().releaseHandle(
        released("c2", "node-1", { kept: { containerId: "c2", handle: HANDLE, forGood: [] } }),
      );

      expect((await attributes()).map(isWaiting)).toEqual([true, true]);
      expect(await problems()).toEqual([]);
    });

    test("a pool that keeps addresses does so for the whole attachment, for as long as it says", async () => {
      table = new MemoryTable();
      await seedWorld({ keepAddresses: true, keepFor: "2h" });
      const ofPool = (container: string, node: string) => ofPod(container, node, { when: "if its pool does" });
      const first = await healthy().assign(ofPool("c1", "node-1"));
      expect((await attributes()).map((each) => keptOf(each)?.keepForSeconds)).toEqual([7200, 86400]);
      await healthy().releaseHandle(released("c1", "node-1"));

      expect(textsOf(await healthy().assign(ofPool("c2", "node-2")))).toEqual(textsOf(first));
      expect(await problems()).toEqual([]);
    });

    test("without such a pool a pod's addresses are its container's", async () => {
      const [first] = (await healthy().assign(ofPod("c1", "node-1", { when: "if its pool does" }))).addresses;
      await healthy().releaseHandle(released("c1", "node-1"));

      expect(first?.kept).toBeUndefined();
      expect(await attributes()).toEqual([]);
    });

    test("a pod that keeps nothing reads and writes not one key more, in ADD and in DEL", async () => {
      const counted = async (keep: boolean) => {
        table = new MemoryTable();
        await seedWorld();
        const requests: string[] = [];
        const inner = openMemory(table, { atomicity: level });
        const read: Datastore["read"] = (wanted) => {
          requests.push(...wanted.map((each) => `read ${JSON.stringify(each)}`));
          return inner.read(wanted);
        };
        const commit: Datastore["commit"] = (changes) => {
          requests.push(...changes.map(({ kind, key }) => `${kind} ${key}`));
          return inner.commit(changes);
        };
        const allocator = openAllocator(storeAround(inner, { read, commit }), means());
        for (const container of ["c1", "c2"]) {
          const { keep: asked, ...ordinary } = ofPod(container, "node-1", { when: "if its pool does" });
          await allocator.assign(keep && asked !== undefined ? { ...ordinary, keep: asked } : ordinary);
          const { kept, ...plain } = released(container, "node-1");
          await allocator.releaseHandle(keep && kept !== undefined ? { ...plain, kept } : plain);
        }
        return requests;
      };
      const without = await counted(false);

      expect(without.length).toBeGreaterThan(10);
      expect(await counted(true)).toEqual(without);
    });

    test("one that holds addresses of its own keeps these", async () => {
      const { keep: _, ...ordinary } = ofPod("c1", "node-1");
      const first = await healthy().assign(ordinary);

      expect(textsOf(await healthy().assign(ofPod("c1", "node-1")))).toEqual(textsOf(first));
      expect((await attributes()).map(keptOf)).toEqual([undefined, undefined]);
    });

    test("an address that is asked for by its name is the kept one, or is refused", async () => {
      const given = (container: string, text: string) => ({
        ...ofPod(container, "node-1"),
        addressRequests: [{ kind: "given" as const, address: address(text) }],
      });
      await healthy().assign(given("c1", "10.0.0.77"));
      await healthy().releaseHandle(released("c1", "node-1"));

      expect(textsOf(await healthy().assign(given("c2", "10.0.0.77")))).toEqual(["10.0.0.77"]);
      await healthy().releaseHandle(released("c2", "node-1"));
      const failure = await refusalOf(healthy().assign(given("c3", "10.0.0.78")));
      expect(failure).toMatchObject({ kind: "address-taken" });
      expect(String(failure)).toContain("10.0.0.77");
    });

    test("nobody else gets one by its name", async () => {
      await healthy().assign({ ...ofPod("c1", "node-1"), addressRequests: [DUAL[0]] });
      await healthy().releaseHandle(released("c1", "node-1"));
      const [kept] = (await records()).blocks.flatMap((block) =>
        block.allocations.flatMap((index, ordinal) => (index === undefined ? [] : { block, ordinal })),
      );
      const text = `10.0.0.${Number((kept?.block.cidr.network.value ?? 0n) & 255n) + (kept?.ordinal ?? 0)}`;
      const asked = request("net.o", { addressRequests: [{ kind: "given", address: address(text) }] });

      expect(await refusalOf(healthy().assign(asked))).toMatchObject({ kind: "address-taken" });
    });

    describe("stopped after any write", () => {
      const add = (container: string, node: string) => (allocator: Allocator) =>
        allocator.assign(ofPod(container, node));
      const del = (container: string, node: string) => (allocator: Allocator) =>
        allocator.releaseHandle(released(container, node));
      const free = (container: string, forGood: readonly string[]) => (allocator: Allocator) =>
        allocator.releaseHandle(
          released(container, "node-1", {
            kept: { containerId: container, handle: HANDLE, forGood: forGood.map(address) },
          }),
        );

      const STEPS = [
        { title: "an ADD that keeps", before: [], run: add("c1", "node-1"), again: add("c1", "node-1") },
        { title: "a DEL", before: [add("c1", "node-1")], run: del("c1", "node-1"), again: del("c1", "node-1") },
        {
          title: "an ADD on another node",
          before: [add("c1", "node-1"), del("c1", "node-1")],
          run: add("c2", "node-2"),
          again: add("c2", "node-2"),
        },
      ] as const;

      test.each(STEPS.map((each) => [each.title, each] as const))(
        "%s is finished by the same call",
        async (_, step) => {
          let stops = 0;
          for (; ; stops += 1) {
            table = new MemoryTable();
            await seedWorld();
            for (const each of step.before) await each(healthy());
            const kept = (await attributes()).length > 0 ? await heldTexts() : undefined;
            const stopped = await isStopped(step.run(openAllocator(stoppingMemory(table, level, stops), means())));
            expect((await problems()).filter(({ severity }) => severity === "corrupt")).toEqual([]);
            const other = await healthy().assign(request("net.o", { addressRequests: DUAL }));
            await step.again(healthy());
            expect(await problems()).toEqual([]);
            const held = await heldTexts();
            expect(held).toHaveLength(2);
            if (kept !== undefined) expect(held).toEqual(kept);
            expect(held).not.toContainAnyValues([...textsOf(other)]);
            if (!stopped) break;
          }
          expect(stops).toBeGreaterThan(0);
        },
      );

      test("the undoing of an ADD is finished by a DEL, or leaves what waits", async () => {
        for (let stops = 0; ; stops += 1) {
          table = new MemoryTable();
          await seedWorld();
          const first = await healthy().assign(ofPod("c1", "node-1"));
          const store = stoppingMemory(table, level, stops);
          const stopped = await isStopped(free("c1", textsOf(first))(openAllocator(store, means())));
          expect((await problems()).filter(({ severity }) => severity === "corrupt")).toEqual([]);
          await free("c1", textsOf(first))(healthy());
          expect(await problems()).toEqual([]);
          expect(await attributes()).toEqual([]);
          if (!stopped) break;
        }
      });
    });
  });
}

for (const first of ["kept from now on", "kept again"] as const) {
  test(`an ADD that lost leaves what the pod's next container uses by then (${first})`, async () => {
    const healthy = () => openAllocator(openMemory(table, { atomicity: "one object" }), means());
    const stranger = (name: string) => healthy().assign(request(name, { addressRequests: DUAL }));
    await stranger("net.x");
    if (first === "kept again") {
      await healthy().assign(ofPod("c1", "node-1"));
      await healthy().releaseHandle(released("c1", "node-1"));
    }
    let stage: "not written" | "written in part" | "overtaken" = "not written";
    let next: readonly string[] = [];
    const store = openMemory(table, {
      atomicity: "one object",
      around: async (kind, work) => {
        if (kind === "read" && stage === "written in part") {
          stage = "overtaken";
          await healthy().releaseHandle(released("c2", "node-1"));
          next = textsOf(await healthy().assign(ofPod("c3", "node-2")));
        }
        const done = await work();
        const users = (await attributes()).map((each) => keptOf(each)?.user?.containerId);
        if (kind === "write" && stage === "not written" && users.includes("c2")) {
          stage = "written in part";
          await healthy().assign(request("net.y", { addressRequests: [DUAL[1]] }));
        }
        return done;
      },
    });

    expect(await refusalOf(openAllocator(store, means()).assign(ofPod("c2", "node-1")))).toBeInstanceOf(KeptInUse);
    expect((await healthy().held(released("c3", "node-2"))).map((each) => formatAddress(each.address))).toEqual([
      ...next,
    ]);
    expect(textsOf(await stranger("net.z"))).not.toContainAnyValues([...next]);
    expect(await problems()).toEqual([]);
  });
}

async function heldTexts(): Promise<readonly string[]> {
  const { blocks } = await records();
  return blocks
    .flatMap((block) =>
      block.allocations.flatMap((index, ordinal) => {
        if (index === undefined || block.attributes[index]?.handleId !== HANDLE) return [];
        const { family, value } = block.cidr.network;
        return formatAddress({ family, value: value + BigInt(ordinal) });
      }),
    )
    .toSorted();
}

function refusalOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
}
