import { expect, test } from "bun:test";
import { means, seed } from "../../../test/support/ipam.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { openAllocator } from "../../ipam/allocator.ts";
import { writeHandle } from "../../model/ipam-handle.ts";
import { HANDLES_PREFIX, handleKey } from "../../model/keys.ts";
import { OrphanedHandles } from "./orphaned-handles.ts";

const MINUTE = 60_000;

/** One handle without an address. */
async function opened() {
  const store = openMemory(undefined, { atomicity: "one object" });
  const value = writeHandle({ blocks: { "10.0.0.0/26": 1 }, deleted: false });
  const leave = () => seed(store, { kind: "put", key: handleKey("net.left"), value });
  await leave();
  const state = { lists: 0, isFailing: false };
  const counting = storeAround(store, {
    read: async (wanted) => {
      if (wanted.some((each) => each.kind === "prefix" && each.prefix === HANDLES_PREFIX)) {
        state.lists += 1;
        if (state.isFailing) throw new PluginError("try-again-later", "Cannot use the datastore");
      }
      return store.read(wanted);
    },
  });
  const allocator = openAllocator(store, means());
  const handles = new OrphanedHandles({ store: counting, allocator, each: (work) => work() });
  const left = async () => (await store.read([{ kind: "key", key: handleKey("net.left") }])).answers.flat().length;
  return { state, handles, left, leave };
}

test("without a grace period all handles are listed every ten minutes, not at every look", async () => {
  const { state, handles, left, leave } = await opened();
  const lists: number[] = [];
  for (let now = 0; now <= 20 * MINUTE; now += 5 * MINUTE) {
    await handles.look([], { now, graceMilliseconds: 0 });
    lists.push(state.lists);
    if (now === 0) expect(await left()).toBe(0);
    if (now === 0) await leave();
  }

  expect(lists).toEqual([1, 1, 2, 2, 3]);
  expect(await left()).toBe(0);
});

test.each([0, MINUTE])("a list that fails is not begun again at every look (grace %d)", async (graceMilliseconds) => {
  const { state, handles, left } = await opened();
  for (const now of [0, MINUTE / 2]) await handles.look([], { now, graceMilliseconds: MINUTE });
  state.isFailing = true;
  const first = MINUTE;
  expect(await rejectionOf(() => handles.look([], { now: first, graceMilliseconds }))).toBeInstanceOf(PluginError);
  for (let now = first + 10_000; now < first + 10 * MINUTE; now += 10_000) {
    await handles.look([], { now, graceMilliseconds });
  }
  expect([state.lists, await left()]).toEqual([1, 1]);

  state.isFailing = false;
  await handles.look([], { now: first + 10 * MINUTE, graceMilliseconds });
  expect([state.lists, await left()]).toEqual([2, 0]);
});

test("the handles of a node that is gone are looked at again after a failure", async () => {
  const { state, handles, left, leave } = await opened();
  const at = (now: number) => ({ now, graceMilliseconds: 0 });
  await handles.look([], at(0));
  await leave();
  handles.expect("n1", at(MINUTE));
  state.isFailing = true;
  expect(await rejectionOf(() => handles.look([], at(MINUTE)))).toBeInstanceOf(PluginError);
  state.isFailing = false;
  await handles.look([], at(2 * MINUTE));
  expect([state.lists, await left()]).toEqual([2, 1]);
  await handles.look([], at(11 * MINUTE));
  expect(await left()).toBe(0);
});
