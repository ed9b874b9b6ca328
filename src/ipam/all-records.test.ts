import { describe, expect, test } from "bun:test";
import { means, nodeChange, poolChange, request, seed } from "../../test/support/ipam.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { readAllEntries } from "../datastore/pages.ts";
import { PRODUCT_API } from "../identity.ts";
import { keysUnder, ROOT_PREFIX } from "../model/keys.ts";
import { readValidRecords } from "./all-records.ts";
import { openAllocator } from "./allocator.ts";

describe("readValidRecords()", () => {
  test("reads the tree of another product by its keys", async () => {
    const store = openMemory();
    await seed(store, poolChange("blue", "10.0.0.0/16"), nodeChange("node-1"));
    await openAllocator(store, means()).assign(request("net.a"));
    const own = await readValidRecords(store);
    const other = openMemory();
    const moved = (await readAllEntries(store, ROOT_PREFIX)).map(({ key, value }) => ({
      kind: "put" as const,
      key: key.replace(ROOT_PREFIX, "/other/").replace(`/${PRODUCT_API.group}/`, "/other.example/"),
      value,
    }));
    await other.commit(moved);

    const read = await readValidRecords(other, keysUnder("/other", { group: "other.example", version: "v3" }));

    expect(own.records).toMatchObject({ pools: [{}], blocks: [{}], handles: [{}], affinities: [{}] });
    expect(read).toEqual(own);
    expect((await readValidRecords(other)).records).toEqual({
      pools: [],
      overlappingPools: [],
      blocks: [],
      handles: [],
      affinities: [],
    });
  });
});
