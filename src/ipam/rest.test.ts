import { beforeEach, describe, expect, test } from "bun:test";
import {
  address,
  configurationChange,
  means,
  nodeChange,
  poolChange,
  prefix,
  request,
  seed,
  textsOf,
} from "../../test/support/ipam.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { type MemoryDatastore, openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import type { PluginError } from "../errors.ts";
import { blockOf } from "../ip/block.ts";
import { hostAffinity, readBlock, writeBlock } from "../model/ipam-block.ts";
import { blockKey } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { assignOrdinal, emptyBlock, releaseOrdinals } from "./block.ts";
import { openHintMemory } from "./hint-file.ts";
import { findProblems } from "./invariants.ts";
import type { AssignRequest } from "./request.ts";
import { REST_MILLISECONDS, restLeft } from "./rest.ts";

const START = Date.parse("2026-01-02T03:04:05Z");
let seconds: number;
let store: MemoryDatastore;
const hints = openHintMemory();
const now = () => new Date(START + seconds * 1000);
const allocator = () => openAllocator(store, means({ now, hints }));

beforeEach(async () => {
  seconds = 0;
  store = openMemory(new MemoryTable());
  await hints.save({ blocks: [], warnedUnregistered: false });
  await seed(store, nodeChange("node-1"), nodeChange("node-2"));
  await seed(store, poolChange("blue", "10.0.0.0/24", { blockSize: 30 }));
});

const pod = (handle: string, namespace: string, more: Partial<AssignRequest> = {}) =>
  request(handle, { network: "net", attributes: { pod: handle, namespace }, ...more });
const given = (text: string) => ({ addressRequests: [{ kind: "given", address: address(text) }] }) as const;
const release = (handle: string, node = "node-1") => allocator().releaseHandle({ handle, node });
const assign = async (asked: AssignRequest) => textsOf(await allocator().assign(asked))[0] ?? "";

const blockAround = (text: string) => blockOf(address(text), 30);

/** Takes all four addresses of the node's block; returns them in the order in which they are assigned. */
async function fillBlock(prefixOfHandles = "net.f"): Promise<readonly string[]> {
  const taken: string[] = [];
  for (const index of [0, 1, 2, 3]) taken.push(await assign(pod(`${prefixOfHandles}${index}`, "shop")));
  return taken;
}

describe("an address that was released", () => {
  test("is not assigned while the node has another free address, in whichever of its blocks", async () => {
    const first = await fillBlock();
    const second = await fillBlock("net.s");
    await release("net.s0");
    seconds = 100;
    await release("net.f0");
    seconds = 181;

    // The one in the first block still rests; the block that was used last is the one that hints name first.
    expect(await assign(pod("net.x", "mallory"))).toBe(second[0] ?? "");
    expect(first).not.toContain(second[0]);
    expect((await readAllRecords(store)).affinities).toHaveLength(2);
  });

  test("is assigned if all others rest too: the one that has rested longest, and no block is claimed for it", async () => {
    const addresses = await fillBlock();
    await release("net.f2");
    seconds = 1;
    await release("net.f0");
    seconds = 2;

    expect(await assign(pod("net.x", "mallory"))).toBe(addresses[2] ?? "");
    expect(await assign(pod("net.y", "mallory"))).toBe(addresses[0] ?? "");
    expect((await readAllRecords(store)).blocks).toHaveLength(1);
  });

  test.each([
    ["first", "net.f3", "net.s1"],
    ["second", "net.s1", "net.f3"],
  ])("of two blocks of the node, the one that has rested longest is taken: of the %s", async (_, sooner, later) => {
    const taken = new Map<string, string>();
    for (const [index, text] of (await fillBlock()).entries()) taken.set(`net.f${index}`, text);
    for (const [index, text] of (await fillBlock("net.s")).entries()) taken.set(`net.s${index}`, text);
    await release(sooner);
    seconds = 1;
    await release(later);
    seconds = 2;

    expect(await assign(pod("net.x", "mallory"))).toBe(taken.get(sooner) ?? "");
    expect(await assign(pod("net.y", "mallory"))).toBe(taken.get(later) ?? "");
    expect((await readAllRecords(store)).affinities).toHaveLength(2);
  });

  test("may be asked for by name at once in the same namespace, in another one only after its rest", async () => {
    const wanted = await assign(pod("net.web", "shop"));
    await release("net.web");
    seconds = 12;

    const refusal = (await rejectionOf(() => assign(pod("net.evil", "mallory", given(wanted))))) as PluginError;
    expect(refusal.kind).toBe("try-again-later");
    expect(refusal.message).toContain(`"${wanted}"`);
    expect(refusal.message).toContain("168 s");
    expect(
      await rejectionOf(() => assign(pod("net.evil", "mallory", { ...given(wanted), node: "node-2" }))),
    ).toBeDefined();
    expect(await assign(pod("net.web2", "shop", { ...given(wanted), node: "node-2" }))).toBe(wanted);

    await release("net.web2", "node-2");
    seconds = 12 + 180;
    expect(await assign(pod("net.evil", "mallory", given(wanted)))).toBe(wanted);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("of a container without a pod may be asked for at once by another container of the same network", async () => {
    const wanted = await assign(request("podman.c1", { network: "podman" }));
    await release("podman.c1");

    expect(await rejectionOf(() => assign(pod("net.evil", "mallory", given(wanted))))).toBeDefined();
    expect(await rejectionOf(() => assign(request("o.c2", { network: "o", ...given(wanted) })))).toBeDefined();
    expect(await assign(request("podman.c2", { network: "podman", ...given(wanted) }))).toBe(wanted);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("rests in a block that was given back, which has no node until it is deleted", async () => {
    await fillBlock();
    const wanted = await assign(pod("net.second", "shop"));
    await release("net.f0");
    await release("net.second");
    const { blocks, affinities } = await readAllRecords(store);
    expect(blocks.map(({ affinity }) => affinity)).toEqual([hostAffinity("node-1"), undefined]);
    expect(affinities).toHaveLength(1);
    const byName = pod("net.evil", "mallory", { ...given(wanted), node: "node-2" });
    expect(((await rejectionOf(() => assign(byName))) as PluginError).kind).toBe("try-again-later");

    seconds = 179;
    await release("net.f1");
    expect((await readAllRecords(store)).blocks).toHaveLength(2);
    seconds = 181;
    await release("net.f2");
    expect((await readAllRecords(store)).blocks).toHaveLength(1);
    expect(findProblems({ ...(await readAllRecords(store)), now: now() })).toEqual([]);
  });

  test("refuses no pod of another node if strictAffinity is on", async () => {
    await seed(store, configurationChange({ strictAffinity: true }));
    await seed(store, poolChange("blue", "10.0.0.0/29", { blockSize: 30 }));
    const all = [...(await fillBlock()), ...(await fillBlock("net.s"))];
    const handles = ["net.f", "net.s"].flatMap((start) => [0, 1, 2, 3].map((index) => `${start}${index}`));
    for (const handle of handles) await release(handle);

    const other = openAllocator(store, means({ now }));
    const [got = ""] = textsOf(await other.assign(pod("net.x", "mallory", { node: "node-2" })));
    expect(all).toContain(got);
    const { blocks, affinities } = await readAllRecords(store);
    expect(blocks.map(({ affinity }) => affinity).toSorted()).toEqual(["node-1", "node-2"].map(hostAffinity));
    expect(affinities).toHaveLength(2);
    expect(findProblems({ ...(await readAllRecords(store)), now: now() })).toEqual([]);
  });

  test("is asked for by name on another node at once by its namespace, if strictAffinity is on and its node has left the block", async () => {
    await seed(store, configurationChange({ strictAffinity: true }));
    await fillBlock();
    const wanted = await assign(pod("net.second", "shop"));
    await release("net.f0");
    await release("net.second");

    expect(await assign(pod("net.third", "shop", { ...given(wanted), node: "node-2" }))).toBe(wanted);
    const owners = (await readAllRecords(store)).blocks.map(({ affinity }) => affinity);
    expect(owners.toSorted()).toEqual(["node-1", "node-2"].map(hostAffinity));
    expect(findProblems({ ...(await readAllRecords(store)), now: now() })).toEqual([]);
  });

  test("is not preferred to a block that nobody has used", async () => {
    await fillBlock();
    const wanted = await assign(pod("net.second", "shop"));
    await release("net.f0");
    await release("net.second");
    const other = openAllocator(store, means({ now }));
    for (let index = 0; index < 8; index++) {
      const [got = ""] = textsOf(await other.assign(pod(`net.x${index}`, "mallory", { node: "node-2" })));
      expect(got).not.toBe(wanted);
    }
  });

  test("rests in a block without a node, too", async () => {
    const wanted = await assign(pod("net.web", "shop"));
    await allocator().releaseAffinity({ node: "node-1", block: blockAround(wanted), inUse: "release" });
    await release("net.web");

    const byName = pod("net.evil", "mallory", { ...given(wanted), node: "node-2" });
    expect(((await rejectionOf(() => assign(byName))) as PluginError).kind).toBe("try-again-later");
    expect(findProblems({ ...(await readAllRecords(store)), now: now() })).toEqual([]);
    seconds = 181;
    expect(findProblems({ ...(await readAllRecords(store)), now: now() }).map(({ kind }) => kind)).toEqual([
      "block-abandoned",
    ]);
    expect(await assign(byName)).toBe(wanted);
    expect((await readAllRecords(store)).blocks.map(({ affinity }) => affinity)).toEqual([hostAffinity("node-2")]);
  });

  test("is not named by its block any more once it is assigned again, nor after its rest", async () => {
    const wanted = await assign(pod("net.web", "shop"));
    await assign(pod("net.other", "shop"));
    await release("net.web");
    const releases = async () => Object.keys((await readAllRecords(store)).blocks[0]?.released ?? {});
    expect(await releases()).toEqual(["0"]);

    await assign(pod("net.web2", "shop", given(wanted)));
    expect(await releases()).toEqual([]);
    await release("net.web2");
    seconds = 181;
    await release("net.other");
    expect(await releases()).toEqual(["1"]);
  });
});

describe("a block written by the former release", () => {
  test("loses the releases, and its addresses may be used at once", async () => {
    const wanted = await assign(pod("net.web", "shop"));
    await release("net.web");
    const [block] = (await readAllRecords(store)).blocks;
    if (block === undefined) throw new Error("expected a block");
    const { released: _, ...former } = block;
    await seed(store, { kind: "put", key: blockKey(block.cidr), value: writeBlock(former) });

    expect(await assign(pod("net.evil", "mallory", given(wanted)))).toBe(wanted);
  });

  test("may call an address released that is allocated: it is allocated", async () => {
    const block = emptyBlock(prefix("10.0.0.0/30"), "host:node-1", 1n);
    const taken = assignOrdinal(block, 0, { handleId: "net.web", secondary: {} })?.block ?? block;
    const stale = { ...taken, released: { 0: { at: START / 1000, namespace: "shop" } } };
    await seed(store, { kind: "put", key: blockKey(block.cidr), value: writeBlock(stale) });

    const refusal = (await rejectionOf(() => assign(pod("net.x", "shop", given("10.0.0.0"))))) as PluginError;
    expect(refusal.kind).toBe("address-taken");
    const left = releaseOrdinals(stale, [0], new Date(START + 5000));
    expect(left.released).toEqual({ 0: { at: START / 1000 + 5 } });
  });

  test.each([
    ["text", '"yesterday"'],
    ["a list", "[1]"],
    ["an entry without a time", '{"0":{"namespace":"shop"}}'],
    ["an ordinal outside the block", '{"9":{"at":1}}'],
  ])("is readable although its releases are %s", (_, releases) => {
    const text = writeBlock(emptyBlock(prefix("10.0.0.0/30"), "host:n", 1n));

    expect(readBlock(`${text.slice(0, -1)},"released":${releases}}`, "key").released).toBeUndefined();
  });
});

describe("restLeft()", () => {
  const at = START / 1000;
  const left = (later: number) => restLeft({ at }, new Date(START + later * 1000));

  test("outlasts the time for which the kernel tracks UDP, by more than clocks differ", () => {
    expect(REST_MILLISECONDS).toBeGreaterThanOrEqual(120_000 + 60_000);
    expect([left(0), left(60), left(180), left(10_000)]).toEqual([180_000, 120_000, 0, 0]);
  });

  test("never is longer than a rest, and no clock that was wrong keeps an address for long", () => {
    // The clock of the releasing node was ahead, or that of this one was set back.
    expect([left(-1), left(-180), left(-181), left(-86_400)]).toEqual([180_000, 180_000, 0, 0]);
  });
});
