import { expect, test } from "bun:test";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { NETWORK_POLICY } from "../../src/model/kinds.ts";
import { noCopyLost } from "./copies.ts";
import { recordsOfTable } from "./records.ts";
import { SmallWorld } from "./small-world.ts";

const KEY = NETWORK_POLICY.key({ namespace: "red", name: "knp.default.lasting" });
const put = (table: MemoryTable) => table.commit([{ kind: "put", key: KEY, value: "{}" }]);
const remove = (table: MemoryTable) => {
  const [entry] = recordsOfTable(table).under(KEY);
  table.commit([{ kind: "delete", key: KEY, revision: entry?.revision ?? "" }]);
};

test("a copied policy that is deleted is noticed while its policy exists, unless that was deleted once", async () => {
  const small = await SmallWorld.make("node-1");
  const api = new MemoryTable();
  const world = { now: 0, records: small.records, pods: small.pods, nodes: small.nodes, asked: recordsOfTable(api) };
  const invariant = noCopyLost();
  put(api);
  put(small.table);
  expect(invariant.check(world)).toEqual([]);
  remove(small.table);
  expect(invariant.check(world)).toEqual([`${KEY} is deleted, but its policy exists`]);

  put(small.table);
  remove(api);
  expect(invariant.check(world)).toEqual([]);
  put(api);
  expect(invariant.check(world)).toEqual([]);
  remove(small.table);
  expect(invariant.check(world)).toEqual([]);
});
