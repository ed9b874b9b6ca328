import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { openVerifyingMemory } from "../../test/support/verifying-memory.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { cachingDatastore } from "../datastore/etcd/caching-datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { MemoryTable } from "../datastore/memory/table.ts";
import { PluginError } from "../errors.ts";
import { type Alongside, settle, type Work } from "./commit-loop.ts";
import type { Facts } from "./facts.ts";

const KEY = { kind: "key", key: "/counter" } as const;

/** Counts a key up by one. */
const increment: Work<number> = {
  action: "count",
  first: () => [KEY],
  decide: (facts) => {
    const entry = facts.entry(KEY.key);
    const next = Number(entry?.value ?? 0) + 1;
    const value = String(next);
    const change = entry
      ? ({ kind: "update", key: KEY.key, value, revision: entry.revision } as const)
      : ({ kind: "create", key: KEY.key, value } as const);
    return { kind: "commit", changes: [change], outcome: next };
  },
};
const pace = (waits: number[] = []) => ({
  random: () => 1,
  wait: async (milliseconds: number) => {
    waits.push(milliseconds);
  },
});

function fail(message: string): never {
  throw new PluginError("try-again-later", message);
}

/** Somebody else is quicker, so many times. */
function contested(table: MemoryTable, times: number): Datastore {
  const store = openMemory(table);
  const rival = openMemory(table);
  let left = times;
  return storeAround(store, {
    commit: async (changes) => {
      if (left-- > 0) await rival.commit([{ kind: "put", key: KEY.key, value: String(100 - left) }]);
      return store.commit(changes);
    },
  });
}

describe("settle()", () => {
  test("lets a caller refuse before anything is decided", async () => {
    const refusing = { wanted: [KEY], check: () => fail("not ready"), changes: () => [] };
    const work: Work<number> = { ...increment, decide: () => fail("decided") };

    expect((await rejectionOf(() => settle(openMemory(), work, pace(), refusing))).message).toBe("not ready");
  });

  test("decides anew from a fresh read after every lost race, and waits longer each time up to a limit", async () => {
    const waits: number[] = [];
    const { outcome } = await settle(contested(new MemoryTable(), 8), increment, pace(waits));

    expect(outcome).toBe(101);
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 64, 64]);
  });

  test("gives up in the end, for the runtime to try again later", async () => {
    const store = contested(new MemoryTable(), 1000);
    const error = await rejectionOf(() => settle(store, increment, { ...pace(), attempts: 5 }));

    expect(error.kind).toBe("try-again-later");
  });

  test("commits nothing where nothing is to be changed", async () => {
    const store = openMemory();
    await settle(store, { ...increment, decide: () => ({ kind: "commit", changes: [], outcome: 0 }) }, pace());

    expect(store.roundTrips).toBe(1);
  });

  test("does not read for ever for a decision that is never satisfied", async () => {
    const work: Work<number> = { ...increment, decide: () => ({ kind: "read", wanted: [KEY] }) };

    expect((await rejectionOf(() => settle(openMemory(), work, pace()))).kind).toBe("internal");
  });

  test("decodes an entry once, however often it decides", async () => {
    const store = openMemory();
    await store.commit([{ kind: "put", key: KEY.key, value: "1" }]);
    let [decisions, decodings] = [0, 0];
    const decoder = () => {
      decodings += 1;
      return {};
    };
    const decide: Work<number>["decide"] = (facts) => {
      const entry = facts.entry(KEY.key);
      if (entry !== undefined) facts.decode(entry, decoder);
      decisions += 1;
      if (decisions < 4) return { kind: "read", wanted: [{ kind: "key", key: `/other/${decisions}` }] };
      return { kind: "commit", changes: [], outcome: 0 };
    };
    await settle(store, { ...increment, decide }, pace());

    expect([decisions, decodings]).toEqual([4, 1]);
  });
});

describe("settle() on a datastore that remembers", () => {
  const open = () => {
    const table = new MemoryTable();
    const server = openVerifyingMemory(table);
    const store = cachingDatastore(server, () => 0);
    const roundTripsOf = async (work: Work<number>, alongside?: Alongside<number>) => {
      const before = server.roundTrips;
      const outcome = await settle(store, work, pace(), alongside).then(
        (settled) => settled.outcome,
        (error: unknown) => error,
      );
      return { outcome, roundTrips: server.roundTrips - before };
    };
    const others = (value: string) => openMemory(table).commit([{ kind: "put", key: KEY.key, value }]);
    return { store, roundTripsOf, others };
  };

  test("takes one round trip, from the first on where all is absent", async () => {
    const { roundTripsOf } = open();

    for (const outcome of [1, 2, 3]) expect(await roundTripsOf(increment)).toEqual({ outcome, roundTrips: 1 });
  });

  test("takes two, as without memory, where others were there, and decides from what they wrote", async () => {
    const { roundTripsOf, others } = open();
    await roundTripsOf(increment);
    await others("10");

    expect(await roundTripsOf(increment)).toEqual({ outcome: 11, roundTrips: 2 });
    expect(await roundTripsOf(increment)).toEqual({ outcome: 12, roundTrips: 1 });
  });

  test("answers nothing from memory that it does not commit", async () => {
    const { roundTripsOf, others } = open();
    await roundTripsOf(increment);
    await others("10");
    const seenIn = (facts: Facts) => Number(facts.entry(KEY.key)?.value);
    const look: Work<number> = {
      ...increment,
      decide: (facts) => ({ kind: "commit", changes: [], outcome: seenIn(facts) }),
    };
    const refuse: Work<number> = { ...increment, decide: (facts) => fail(`it is ${seenIn(facts)}`) };

    expect(await roundTripsOf(look)).toEqual({ outcome: 10, roundTrips: 1 });
    await others("20");
    expect(await roundTripsOf(refuse)).toMatchObject({ outcome: { message: "it is 20" }, roundTrips: 1 });
  });

  test("lets a caller refuse only what was read, and proves what the caller read along", async () => {
    const { roundTripsOf, others } = open();
    const beside = { kind: "key", key: "/beside" } as const;
    const work: Work<number> = {
      ...increment,
      first: () => [],
      decide: () => ({ kind: "commit", changes: [{ kind: "put", key: beside.key, value: "x" }], outcome: 0 }),
    };
    const unlessTen: Alongside<number> = {
      wanted: [KEY],
      check: ([found]) => (found?.[0]?.value === "10" ? fail("it is 10") : undefined),
      changes: () => [],
    };
    expect(await roundTripsOf(work, unlessTen)).toMatchObject({ outcome: 0, roundTrips: 1 });
    await others("10");
    expect(await roundTripsOf(work, unlessTen)).toMatchObject({ outcome: { message: "it is 10" }, roundTrips: 1 });
    await others("11");
    expect(await roundTripsOf(work, unlessTen)).toMatchObject({ outcome: 0, roundTrips: 2 });
  });
});
