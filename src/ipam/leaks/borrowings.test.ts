import { expect, test } from "bun:test";
import { means, podRequest, poolChange, seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import type { Atomicity, Datastore, OrderedChange } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { blocksPrefix } from "../../model/keys.ts";
import { openAllocator } from "../allocator.ts";
import { forgetBorrowings, readBorrowings } from "./borrowings.ts";

/** Node n2 has had addresses in blocks of node n1, which has all. */
async function borrowed(atomicity: Atomicity) {
  const store = openMemory(undefined, { atomicity });
  await seed(store, poolChange("blue", "10.0.0.0/28", { blockSize: 28 }));
  await seed(store, poolChange("green", "fd00::/124", { blockSize: 124 }));
  const add = (container: string, node: string, through: Datastore = store) =>
    openAllocator(through, means()).assign(podRequest(container, { pod: container, node }));
  const del = (container: string, node: string) =>
    openAllocator(store, means()).releaseHandle({ handle: `net.${container}`, node });
  await add("owner", "n1");
  await add("former", "n2");
  await del("former", "n2");
  return { store, add, blocks: async () => (await readBorrowings(store, "n2")).length };
}

const LEVELS = ["all changes", "one object"] as const;

test.each(LEVELS)("a node's borrowings are forgotten when it has no address there (%s)", async (atomicity) => {
  const { store, blocks } = await borrowed(atomicity);
  expect(await blocks()).toBe(2);
  await forgetBorrowings(store, "n2");

  expect(await blocks()).toBe(0);
});

test("no block is written if all changes are committed at once", async () => {
  const { store, blocks } = await borrowed("all changes");
  const revisions = async () => (await readAllEntries(store, blocksPrefix(4))).map(({ revision }) => revision);
  const before = await revisions();
  await forgetBorrowings(store, "n2");

  expect([await blocks(), await revisions()]).toEqual([0, before]);
});

test.each(LEVELS)("those of addresses that are assigned meanwhile stay (%s)", async (atomicity) => {
  const { store, add, blocks } = await borrowed(atomicity);
  let isAdded = false;
  const commit = async (changes: readonly OrderedChange[]) => {
    if (!isAdded) await add("again", "n2");
    isAdded = true;
    return store.commit(changes);
  };
  await forgetBorrowings(storeAround(store, { commit }), "n2");

  expect([isAdded, await blocks()]).toEqual([true, 2]);
});

test("those of an address stay whose record was written before, and whose block is written afterwards", async () => {
  const { store, add, blocks } = await borrowed("one object");
  let isForgotten = false;
  const commit = async (changes: readonly OrderedChange[]) => {
    if (isForgotten) return store.commit(changes);
    // The API changes nothing, not even the revision, if an object is written as it is.
    const records = changes.filter(({ kind }) => kind === "put");
    expect(await Promise.all(records.map((record) => isAsItIs(store, record)))).toEqual([true, true]);
    isForgotten = true;
    await forgetBorrowings(store, "n2");
    expect(await blocks()).toBe(0);
    return store.commit(changes.filter((change) => !records.includes(change)));
  };
  await add("again", "n2", storeAround(store, { commit }));

  expect([isForgotten, await blocks()]).toEqual([true, 2]);
});

async function isAsItIs(store: Datastore, change: OrderedChange): Promise<boolean> {
  if (change.kind !== "put") return false;
  const [entries = []] = (await store.read([{ kind: "key", key: change.key }])).answers;
  return entries[0]?.value === change.value;
}
