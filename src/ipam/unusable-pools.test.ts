/** Pools that an API server without validation rules accepts, and changes of pools that it does not refuse. */
import { beforeEach, describe, expect, test } from "bun:test";
import { address, means, nodeChange, poolChange, request, seed, textsOf } from "../../test/support/ipam.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { type MemoryDatastore, openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { resourceKey } from "../model/keys.ts";
import { readAllRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";
import { findProblems } from "./invariants.ts";
import { poolWarnings } from "./request.ts";

let store: MemoryDatastore;

beforeEach(async () => {
  store = openMemory(new MemoryTable());
  await seed(store, nodeChange("node-1"), nodeChange("node-2"));
});

const assign = (handle: string, more: Parameters<typeof request>[1] = {}) =>
  openAllocator(store, means()).assign(request(handle, more));

/** As kubectl writes it: nobody validates it. `generation`: as the API server counts changes of the spec. */
async function write(name: string, spec: object, generation = 1): Promise<void> {
  const key = resourceKey("ippools", { name });
  await store.commit([
    { kind: "put", key, value: JSON.stringify({ kind: "IPPool", metadata: { name, generation }, spec }) },
  ]);
}

describe("a pool that is not valid", () => {
  test.each([
    ["a CIDR that is none", { cidr: "nonsense" }, "spec.cidr: it must be a network"],
    ["host bits", { cidr: "10.8.0.1/16" }, "spec.cidr: it must be a network"],
    ["a loopback range", { cidr: "127.0.0.0/8" }, "spec.cidr 127.0.0.0/8 overlaps the loopback range"],
    ["a block size that does not exist", { cidr: "10.8.0.0/16", blockSize: 64 }, "spec.blockSize 64 is out of range"],
    ["blocks larger than itself", { cidr: "10.8.0.0/24", blockSize: 20 }, "spec.blockSize 20 makes a block larger"],
    [
      "two tunnel modes",
      { cidr: "10.8.0.0/16", ipipMode: "Always", vxlanMode: "Always" },
      "spec.ipipMode Always cannot be combined with vxlanMode Always",
    ],
  ])("with %s is passed over with a warning, and refused by name", async (_, spec, reason) => {
    await write("aaa", spec);
    await seed(store, poolChange("blue", "10.0.0.0/24"));

    const assignment = await assign("net.a");
    expect(textsOf(assignment)).toEqual([expect.stringMatching(/^10\.0\.0\./)]);
    expect(poolWarnings(assignment)).toEqual([expect.stringContaining(reason)]);
    expect(poolWarnings(assignment)).toEqual([expect.stringContaining("aaa")]);

    const asked = { addressRequests: [{ kind: "automatic", family: 4, pools: ["aaa"] }] } as const;
    expect((await rejectionOf(() => assign("net.b", asked))).message).toContain(reason);
  });

  test("is named if there is no other", async () => {
    await write("aaa", { cidr: "nonsense" });

    const failure = await rejectionOf(() => assign("net.a"));
    expect(failure.kind).toBe("addresses-exhausted");
    expect(failure.details).toContain('ippools/aaa": spec.cidr');
  });
});

describe("a pool whose block size was changed", () => {
  const LENGTHS = [
    [26, 28],
    [28, 26],
  ] as const;

  test.each(LENGTHS)("from %d to %d gets no block that overlaps another", async (before, after) => {
    await write("blue", { cidr: "10.0.0.0/24", blockSize: before });
    const given = new Set(textsOf(await assign("net.first")));
    await write("blue", { cidr: "10.0.0.0/24", blockSize: after }, 2);

    for (let index = 0; index < 2 ** (32 - before) - 1; index++) {
      const [text = ""] = textsOf(await assign(`net.${index}`, { node: index % 2 === 0 ? "node-2" : "node-1" }));
      expect(given.has(text)).toBe(false);
      given.add(text);
    }
    const failure = await rejectionOf(() => assign("net.last", { node: "node-2" }));
    expect(failure.details).toContain(`pool "blue" has blockSize ${after}, but block 10.0.0.`);
    expect(failure.details).toContain(`set blockSize back to ${before}`);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test.each(LENGTHS)("from %d to %d gives no requested address of a new block", async (before, after) => {
    await write("blue", { cidr: "10.0.0.0/24", blockSize: before });
    const { addresses } = await assign("net.first");
    await write("blue", { cidr: "10.0.0.0/24", blockSize: after }, 2);

    const block = addresses[0]?.block.network.value ?? 0n;
    const wanted = { ...address("10.0.0.0"), value: block + 9n };
    const failure = await rejectionOf(() =>
      assign("net.b", { node: "node-2", addressRequests: [{ kind: "given", address: wanted }] }),
    );
    expect(failure.message).toContain(`set blockSize back to ${before}`);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("is used as before when it is changed back, or was changed without any block", async () => {
    await write("blue", { cidr: "10.0.0.0/24", blockSize: 26 }, 3);
    await assign("net.first");

    expect((await assign("net.second", { node: "node-2" })).addresses[0]?.block.length).toBe(26);
  });
});
