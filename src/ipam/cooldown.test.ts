import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
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
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Datastore, Wanted } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import type { PluginError } from "../errors.ts";
import { formatAddress } from "../ip/address.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { affineNode, type IPAMBlock } from "../model/ipam-block.ts";
import { blockKey, IPAM_CONFIGURATION_KEY } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import { addressAt, isAllocated } from "./block.ts";
import { openHintMemory } from "./hint-file.ts";
import { findProblems } from "./invariants.ts";
import { surplusBlocks } from "./leaks/find.ts";
import { deleteUnneededBlock, isUnneededBlock } from "./release/block-after-release.ts";
import type { AssignRequest } from "./request.ts";
import { REST_MILLISECONDS, restLeft } from "./rest.ts";

const START = Date.parse("2026-01-02T03:04:05Z");
const COOLDOWN = 600;
/** More than a rest is longer for clocks that are only known by the second. */
const MARGIN = 5;
const HOUR = 3_600;

let table: MemoryTable;
let store: Datastore;
/** Seconds since START, by the clock of the datastore. */
let seconds: number;
const time = () => new Date(START + seconds * 1000);

beforeEach(async () => {
  seconds = 0;
  table = new MemoryTable();
  store = storeAround(openMemory(table), { clock: time });
  await seed(store, nodeChange("node-1"), nodeChange("node-2"));
});

/** `error`: by how many seconds the clock of its host is ahead. */
const allocatorOf = (error = 0, on = store): Allocator =>
  openAllocator(on, means({ now: () => new Date(time().getTime() + error * 1000), hints: openHintMemory() }));
const pool = (cidr: string, more: Parameters<typeof poolChange>[2] = {}) =>
  seed(store, poolChange("blue", cidr, { blockSize: 30, ...more }));
const pod = (handle: string, namespace: string, more: Partial<AssignRequest> = {}) =>
  request(handle, { network: "net", attributes: { pod: handle, namespace }, ...more });
const given = (text: string) => ({ addressRequests: [{ kind: "given", address: address(text) }] }) as const;
const refusalOf = async (work: () => Promise<unknown>) => (await rejectionOf(work)) as PluginError;
const blocks = async () => (await readAllRecords(store)).blocks;
const problems = async () => findProblems({ ...(await readAllRecords(store)), now: time() });

async function fill(allocator: Allocator, count = 4): Promise<readonly string[]> {
  const taken: string[] = [];
  for (let index = 0; index < count; index++) {
    taken.push(textsOf(await allocator.assign(pod(`net.f${index}`, "shop")))[0] ?? "");
  }
  return taken;
}

describe("an address of a pool with cooldownSeconds", () => {
  test("is not given before its time, also if the pool is full: the runtime is told when to try again", async () => {
    await pool("10.0.0.0/30", { cooldownSeconds: COOLDOWN });
    const allocator = allocatorOf();
    const [first = ""] = await fill(allocator);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });
    seconds = 100;
    await allocator.releaseHandle({ handle: "net.f1", node: "node-1" });
    seconds = 400;

    const refusal = await refusalOf(() => allocator.assign(pod("net.x", "shop")));
    expect([refusal.kind, refusal.cniCode]).toEqual(["try-again-later", 11]);
    expect(refusal.message).toContain("2 released addresses rest");
    expect(refusal.message).toContain("the next one is free in 203 s");
    expect(refusal.details).toContain("cooldownSeconds");
    expect(refusal.details).toContain('"vendorctl ipam show" counts them, a smaller value frees them earlier');
    seconds = COOLDOWN + MARGIN;
    expect(textsOf(await allocator.assign(pod("net.x", "shop")))).toEqual([first]);
    expect((await refusalOf(() => allocator.assign(pod("net.y", "shop")))).kind).toBe("try-again-later");
    seconds += 100;
    await allocator.assign(pod("net.y", "shop"));
    expect((await refusalOf(() => allocator.assign(pod("net.z", "shop")))).kind).toBe("addresses-exhausted");
    expect(await problems()).toEqual([]);
  });

  test("is named beside those that are kept for pods that do not run, if the pool is full", async () => {
    await pool("10.0.0.0/30", { cooldownSeconds: COOLDOWN });
    const allocator = allocatorOf();
    const keep = { handle: "keep-db", containerId: "db", when: "always", title: "db" } as const;
    const [kept = ""] = textsOf(await allocator.assign(pod("net.db", "shop", { keep })));
    await fill(allocator, 3);
    await allocator.releaseAddresses([{ address: address(kept) }]);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });

    const { kind, message, details } = await refusalOf(() => allocator.assign(pod("net.x", "shop")));
    expect([kind, message]).toEqual(["try-again-later", expect.stringContaining("3 of 4 used")]);
    expect(message).toContain("1 released address rests");
    expect(details).toContain('"vendorctl ipam show" counts them');
    expect(details).toContain("1 of the used addresses is kept for pods that do not run");
    expect(details).toContain('"vendorctl ipam release --pod NAMESPACE/POD" frees them');
  });

  test("is not given by name to another namespace, on any node; at once to the one that had it", async () => {
    await pool("10.0.0.0/28", { cooldownSeconds: COOLDOWN });
    const allocator = allocatorOf();
    const [wanted = ""] = await fill(allocator, 2);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });
    seconds = 590;
    for (const node of ["node-1", "node-2"]) {
      const refusal = await refusalOf(() =>
        allocatorOf().assign(pod("net.evil", "mallory", { ...given(wanted), node })),
      );
      expect(refusal.kind).toBe("try-again-later");
      expect(refusal.message).toContain("13 s");
    }
    expect(textsOf(await allocator.assign(pod("net.web", "shop", given(wanted))))).toEqual([wanted]);
  });

  test("is taken from another block of the node, or from a new one, while its own rests", async () => {
    await pool("10.0.0.0/28", { cooldownSeconds: COOLDOWN });
    const allocator = allocatorOf();
    const first = await fill(allocator);
    for (const index of [0, 1, 2, 3]) await allocator.releaseHandle({ handle: `net.f${index}`, node: "node-1" });
    for (let index = 0; index < 12; index++) {
      expect(first).not.toContain(textsOf(await allocator.assign(pod(`net.n${index}`, "shop")))[0] ?? "");
    }
    expect((await refusalOf(() => allocator.assign(pod("net.last", "shop")))).message).toContain(
      "4 released addresses",
    );
  });

  test("rests at least as long as without a setting, even if less is set", async () => {
    await pool("10.0.0.0/32", { blockSize: 32, cooldownSeconds: 1 });
    const allocator = allocatorOf();
    await fill(allocator, 1);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });
    seconds = REST_MILLISECONDS / 1000 - 1;
    expect((await refusalOf(() => allocator.assign(pod("net.x", "shop")))).kind).toBe("try-again-later");
    seconds += MARGIN;
    await allocator.assign(pod("net.x", "shop"));
  });

  test.each([
    ["of the cluster", { configured: COOLDOWN, own: undefined }, "try-again-later"],
    ["of the pool, which overrides that of the cluster", { configured: 0, own: COOLDOWN }, "try-again-later"],
    ["of none in the pool, which overrides that of the cluster", { configured: COOLDOWN, own: 0 }, "given"],
    ["that is not set", { configured: undefined, own: undefined }, "given"],
    ["that nobody would have accepted", { configured: -5, own: undefined }, "given"],
  ] as const)("goes by the setting %s", async (_, { configured, own }, expected) => {
    await pool("10.0.0.0/30", own === undefined ? {} : { cooldownSeconds: own });
    if (configured !== undefined) await seed(store, configurationChange({ cooldownSeconds: configured }));
    const allocator = allocatorOf();
    await fill(allocator);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });
    const outcome = await allocator.assign(pod("net.x", "shop")).then(
      () => "given",
      ({ kind }: PluginError) => kind,
    );
    expect(outcome).toBe(expected);
    const isSet = expected === "try-again-later";
    expect((await blocks()).map(({ cooldownSeconds }) => cooldownSeconds)).toEqual([isSet ? COOLDOWN : undefined]);
  });

  test("no longer rests by a setting that was taken back", async () => {
    await pool("10.0.0.0/30", { cooldownSeconds: COOLDOWN });
    const allocator = allocatorOf();
    await fill(allocator);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });
    await pool("10.0.0.0/30");
    await allocator.assign(pod("net.x", "shop"));
    expect((await blocks()).map(({ cooldownSeconds }) => cooldownSeconds)).toEqual([undefined]);
  });

  test("is remembered by every release of its block for as long as it rests", async () => {
    await pool("10.0.0.0/30", { cooldownSeconds: COOLDOWN });
    const allocator = allocatorOf();
    await fill(allocator);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });
    seconds = 500;
    await allocator.releaseHandle({ handle: "net.f1", node: "node-1" });
    expect(Object.values((await blocks())[0]?.released ?? {}).map(({ at }) => at - START / 1000)).toEqual([0, 500]);
    seconds = COOLDOWN + MARGIN;
    await allocator.releaseHandle({ handle: "net.f2", node: "node-1" });
    expect(Object.values((await blocks())[0]?.released ?? {}).map(({ at }) => at - START / 1000)).toEqual([500, 605]);
  });
});

describe("a block with addresses that rest by a setting", () => {
  const emptied = async () => {
    await pool("10.0.0.0/28", { cooldownSeconds: COOLDOWN });
    const allocator = allocatorOf();
    await fill(allocator, 6);
    for (const index of [0, 1, 2, 3, 4]) await allocator.releaseHandle({ handle: `net.f${index}`, node: "node-1" });
    const { pools } = await allocator.assign(pod("net.f5", "shop"));
    const surplus = async () =>
      surplusBlocks({ pools, blocks: await blocks() }, { node: "node-1", now: time() }).map(({ cidr }) => cidr);
    return { allocator, surplus };
  };
  const owners = async () => (await blocks()).map((block) => affineNode(block));

  test("stays with its node until then", async () => {
    const { allocator, surplus } = await emptied();
    const [first] = (await blocks()).filter(({ attributes }) => attributes.length === 0);
    if (first === undefined) throw new Error("expected an empty block");
    expect(await owners()).toEqual(["node-1", "node-1"]);
    await allocator.releaseHandle({ handle: "net.f5", node: "node-1" });
    expect(await owners()).toEqual(["node-1", "node-1"]);
    expect(await surplus()).toEqual([]);
    const giving = { node: "node-1", block: first.cidr, inUse: "keep" } as const;
    expect(await allocator.releaseAffinity(giving)).toBe("kept");
    expect(await allocator.releaseAffinity({ ...giving, resting: "forget unless set" })).toBe("kept");

    seconds = COOLDOWN + MARGIN;
    expect((await surplus()).map(formatPrefix)).toHaveLength(1);
    expect(await allocator.releaseAffinity(giving)).toBe("released");
    expect(await owners()).toEqual(["node-1"]);
    expect(await problems()).toEqual([]);
  });

  test("loses a node that is gone, and is deleted only then", async () => {
    const { allocator } = await emptied();
    for (const { cidr } of await blocks()) {
      const gone = { node: "node-1", block: cidr, inUse: "release", resting: "forget unless set" } as const;
      expect(await allocator.releaseAffinity(gone)).toBe("released");
    }
    const empty = (await blocks()).filter(({ attributes }) => attributes.length === 0);
    expect(empty.map((block) => affineNode(block))).toEqual([undefined]);
    seconds = COOLDOWN - 1;
    expect(await problems()).toEqual([]);
    expect(empty.map((block) => isUnneededBlock(block, time()))).toEqual([false]);
    seconds = COOLDOWN + MARGIN;
    expect((await problems()).map(({ kind }) => kind)).toEqual(["block-abandoned"]);
  });

  test("goes with its pool, which an administrator deletes", async () => {
    const { allocator } = await emptied();
    for (const { cidr } of await blocks())
      await allocator.releaseAffinity({ node: "node-1", block: cidr, inUse: "keep", resting: "forget" });
    expect(await blocks()).toHaveLength(1);
  });
});

describe("without a setting", () => {
  test("a block has the same text as always", async () => {
    await pool("10.0.0.0/30");
    const allocator = allocatorOf();
    await fill(allocator, 2);
    await allocator.releaseHandle({ handle: "net.f0", node: "node-1" });
    const { answers } = await store.read([{ kind: "prefix", prefix: "" }]);
    expect(answers.flat().filter(({ value }) => value.includes("ooldown"))).toEqual([]);
  });

  /** Keys and prefixes that an ADD from the blocks of its node reads from a store that needs a request for each. */
  async function readBySteadyAdd(): Promise<readonly string[]> {
    const wanted: string[] = [];
    const direct = openMemory(table, { atomicity: "one object" });
    const counted = storeAround(direct, { clock: time });
    const requests: Datastore = {
      ...counted,
      transact: (asked, decide) => {
        const note = (each: Wanted) =>
          void (each.optional || wanted.push(each.kind === "key" ? each.key : each.prefix));
        asked.forEach(note);
        return direct.transact(asked, (reads) => {
          const decision = decide(reads);
          if (decision.kind === "read") decision.wanted.forEach(note);
          return decision;
        });
      },
    };
    const allocator = allocatorOf(0, requests);
    await allocator.assign(pod("net.first", "shop"));
    await allocator.assign(pod("net.second", "shop"));
    await allocator.releaseHandle({ handle: "net.first", node: "node-1" });
    seconds += HOUR;
    wanted.length = 0;
    await allocator.assign(pod("net.third", "shop"));
    return wanted;
  }

  test("an ADD reads nothing more; nor with the default of the cluster, which blocks remember", async () => {
    await pool("10.0.0.0/28", { blockSize: 28 });
    const usual = await readBySteadyAdd();
    expect(usual).not.toContain(IPAM_CONFIGURATION_KEY);
    await seed(store, configurationChange({ cooldownSeconds: COOLDOWN }));
    table = new MemoryTable();
    store = storeAround(openMemory(table), { clock: time });
    await seed(store, nodeChange("node-1"), configurationChange({ cooldownSeconds: COOLDOWN }));
    await pool("10.0.0.0/28", { blockSize: 28 });
    expect(await readBySteadyAdd()).toEqual(usual);
    expect((await blocks()).map(({ cooldownSeconds }) => cooldownSeconds)).toEqual([COOLDOWN]);
  });
});

describe("restLeft() with a setting", () => {
  const left = (later: number, cooldown: number) =>
    restLeft({ at: START / 1000 }, new Date(START + later * 1000), cooldown) / 1000;

  test("believes a release in the future, up to the longest rest", () => {
    expect([left(0, 600), left(600, 600), left(604, 600)]).toEqual([603, 3, 0]);
    expect([left(-1, 600), left(-HOUR, 600), left(-86_400, 600), left(-86_401, 600)]).toEqual([603, 603, 603, 0]);
  });
});

describe("whatever nodes do, whose clocks are wrong", () => {
  const NODES = ["node-1", "node-2", "node-3"];
  const ERRORS = [-26 * HOUR, 0, 5 * HOUR];
  const node = fc.integer({ min: 0, max: NODES.length - 1 });
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant("assign" as const), node, namespace: fc.constantFrom("a", "b") }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("release" as const), index: fc.nat() }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant("ask" as const),
        ...{ node, namespace: fc.constantFrom("a", "b"), host: fc.nat({ max: 15 }) },
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant("wait" as const), seconds: fc.constantFrom(1, 60, 170, 290, 310) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("give back" as const), node, isGone: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete empty" as const), node }) },
  );
  const SET = 300;

  test("no address is another owner's before its rest has passed by the clock of the datastore", async () => {
    const walk = fc.record({ steps: fc.array(step, { minLength: 20, maxLength: 60 }), strict: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(walk, async ({ steps, strict }) => {
        seconds = 0;
        table = new MemoryTable();
        store = storeAround(openMemory(table), { clock: time });
        await seed(store, ...NODES.map((name) => nodeChange(name)), configurationChange({ strictAffinity: strict }));
        await pool("10.0.0.0/28", { cooldownSeconds: SET });
        const allocators = ERRORS.map((error) => allocatorOf(error));
        const held: { handle: string; node: number; namespace: string; text: string }[] = [];
        let made = 0;
        const freed = new Map<string, { at: number; namespace: string }>();
        const onNode = (index: number) => allocators[index] ?? allocatorOf();
        const judge = (text: string, namespace: string, isByName: boolean) => {
          const last = freed.get(text);
          if (last === undefined || (isByName && last.namespace === namespace)) return;
          if (seconds - last.at < SET) throw new Error(`${text} was given ${seconds - last.at} s after its release`);
        };
        const assign = async (at: number, namespace: string, more: Partial<AssignRequest>) => {
          made += 1;
          const handle = `net.c${made}`;
          const outcome = await onNode(at)
            .assign(pod(handle, namespace, { node: NODES[at] ?? "", ...more }))
            .catch((failure: PluginError) => failure);
          if (outcome instanceof Error) return outcome;
          const [text = ""] = textsOf(outcome);
          judge(text, namespace, more.addressRequests !== undefined);
          held.push({ handle, node: at, namespace, text });
          return undefined;
        };
        for (const each of steps) {
          switch (each.kind) {
            case "assign": {
              const refusal = await assign(each.node, each.namespace, {});
              // A setting refuses nothing that has rested.
              if (refusal !== undefined && !strict) expect(rested(await blocks(), freed)).toEqual([]);
              break;
            }
            case "ask":
              await assign(each.node, each.namespace, given(`10.0.0.${each.host}`));
              break;
            case "release": {
              const [gone] = held.splice(each.index % Math.max(held.length, 1), 1);
              if (gone === undefined) break;
              await onNode(gone.node).releaseHandle({ handle: gone.handle, node: NODES[gone.node] ?? "" });
              freed.set(gone.text, { at: seconds, namespace: gone.namespace });
              break;
            }
            case "wait":
              seconds += each.seconds;
              break;
            case "give back":
              for (const { cidr } of await blocks()) {
                const inUse = each.isGone ? "release" : "keep";
                await onNode(each.node).releaseAffinity({ node: NODES[each.node] ?? "", block: cidr, inUse });
              }
              break;
            case "delete empty":
              for (const { cidr } of await blocks())
                await deleteUnneededBlock(store, cidr, (block) => isUnneededBlock(block, time()));
          }
        }
        const corrupt = findProblems(await readAllRecords(store)).filter(({ severity }) => severity === "corrupt");
        expect(corrupt).toEqual([]);
      }),
      { numRuns: 150 },
    );
  }, 60_000);

  /** Free addresses that may be anybody's, of the blocks that exist. */
  function rested(all: readonly IPAMBlock[], freed: ReadonlyMap<string, { readonly at: number }>): readonly string[] {
    return all.flatMap((block) =>
      block.unallocated
        .filter((ordinal) => !isAllocated(block, ordinal))
        .map((ordinal) => formatAddress(addressAt(block, ordinal)))
        .filter((text) => seconds - (freed.get(text)?.at ?? Number.NEGATIVE_INFINITY) > SET + MARGIN),
    );
  }
});

test("a release is remembered by the clock of the datastore, not of the node that releases it", async () => {
  await pool("10.0.0.0/30", { cooldownSeconds: COOLDOWN });
  for (const error of [-26 * HOUR, 5 * HOUR]) {
    const allocator = allocatorOf(error);
    const [text = ""] = textsOf(await allocator.assign(pod("net.web", "shop")));
    await allocator.releaseHandle({ handle: "net.web", node: "node-1" });
    const entry = (await store.read([{ kind: "key", key: blockKey(prefix("10.0.0.0/30")) }])).answers[0]?.[0];
    const released: Readonly<Record<string, { readonly at: number }>> = JSON.parse(entry?.value ?? "").released;
    expect(released[text.split(".").at(-1) ?? ""]?.at).toBe(START / 1000);
  }
});
