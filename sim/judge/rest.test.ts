import { expect, test } from "bun:test";
import { blocksPrefix } from "../../src/model/keys.ts";
import { address } from "../../test/support/ipam.ts";
import { releasedAddressesRest } from "./rest.ts";
import { SmallWorld } from "./small-world.ts";

const MINUTE = 60_000;

test("an address that is used again before its rest is noticed, if another one has rested", async () => {
  const world = await SmallWorld.make("node-1");
  const invariant = releasedAddressesRest();
  const one = await world.addPod("one", "node-1");
  expect(invariant.check(world)).toEqual([]);
  await world.addPod("two", "node-1");
  expect(invariant.check(world)).toEqual([]);
  const [text = ""] = one.addresses;
  const held = world.records.under(blocksPrefix(4));
  world.now = 5 * MINUTE;
  await world.allocator.releaseAddresses([{ address: address(text) }]);
  expect(invariant.check(world)).toEqual([]);

  world.now += MINUTE;
  world.table.commit(held.map(({ key, value }) => ({ kind: "put", key, value })));
  expect(invariant.check(world)).toEqual([`${text} was released 60.0 s ago, and is taken before 10.0.0.74`]);
});
