import { describe, expect, test } from "bun:test";
import { ManualClock, settled } from "../../../test/support/manual-clock.ts";
import { startedReplicas } from "../../../test/support/started-replicas.ts";
import { HistoryGone } from "../datastore.ts";
import { openMemory } from "../memory/memory.ts";
import { MemoryTable } from "../memory/table.ts";
import { type ReplicaOptions, startReplica } from "../replica.ts";
import type { Clock } from "./clock.ts";
import type { FollowedStore } from "./feed.ts";

interface Traffic {
  reads: number;
  watchesBegun: number;
  watchesOpen: number;
}

/** A scripted store that counts its requests. */
function counted(store: FollowedStore): { readonly store: FollowedStore; readonly traffic: Traffic } {
  const traffic: Traffic = { reads: 0, watchesBegun: 0, watchesOpen: 0 };
  return {
    traffic,
    store: {
      read: (...asked: Parameters<FollowedStore["read"]>) => {
        traffic.reads += 1;
        return store.read(...asked);
      },
      async *watch(...asked: Parameters<FollowedStore["watch"]>) {
        traffic.watchesBegun += 1;
        traffic.watchesOpen += 1;
        try {
          yield* store.watch(...asked);
        } finally {
          traffic.watchesOpen -= 1;
        }
      },
    },
  };
}

describe("startReplica()", () => {
  const kinds = { things: { prefix: "/k/", decode: ({ value }: { readonly value: string }) => value } };
  const limits = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 1_000, quietMilliseconds: 60_000 };
  const started = startedReplicas();
  const start = (store: FollowedStore, clock: Clock, pageSize = 500, report?: ReplicaOptions["report"]) => {
    const sized = {
      limits: { ...limits, pageSize, largestPageSize: pageSize },
      ...(report === undefined ? {} : { report }),
    };
    const options = { signal: started.stop.signal, clock, random: () => 1, ...sized };
    const replica = startReplica(store, kinds, options);
    started.note(replica);
    return replica;
  };
  const stateOf = (replica: ReturnType<typeof start>) => Object.fromEntries(replica.snapshot?.things ?? []);
  const put = (table: MemoryTable, key: string, value: string) => table.commit([{ kind: "put", key, value }]);

  test("waits longer and longer between attempts, and reports each failure", async () => {
    const clock = new ManualClock();
    const { store, traffic } = counted({
      read: () => Promise.reject(new Error("no route")),
      watch: openMemory().watch,
    });
    const replica = start(store, clock);
    await settled();
    const attempts = [traffic.reads];
    for (const pause of [100, 200, 400, 800, 1_000, 1_000]) {
      await clock.advance(pause - 1);
      attempts.push(traffic.reads);
      await clock.advance(1);
    }

    expect(clock.waits).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000]);
    expect(attempts).toEqual([1, 1, 2, 3, 4, 5, 6]);
    expect(replica.snapshot).toBeUndefined();
    expect(replica.status).toMatchObject({ state: "listing", since: 0, failure: { kind: "datastore-unavailable" } });
  });

  test("a part with other kinds goes on without a kind that cannot be listed, if each has its own watch", async () => {
    const memory = openMemory();
    const decode = kinds.things.decode;
    const store: FollowedStore = {
      read: (wanted) =>
        Bun.inspect(wanted).includes("/absent/") ? Promise.reject(new Error("no such CRD")) : memory.read(wanted),
      watch: (...asked) => memory.watch(...asked),
    };
    await memory.commit([{ kind: "put", key: "/k/1", value: "one" }]);
    const table = { ...kinds, absent: { prefix: "/absent/", decode } };
    const whole = startReplica(store, table, {
      signal: started.stop.signal,
      watches: "per kind",
      clock: new ManualClock(),
    });
    started.note(whole);
    const part = whole.part(["things"]);
    for await (const { snapshot, changes } of part.updates(started.stop.signal)) {
      expect([...snapshot.things]).toEqual([["/k/1", "one"]]);
      expect(Object.keys(changes)).toEqual(["things"]);
      break;
    }
    expect([part.status.state, whole.status.state]).toEqual(["in sync", "listing"]);
    expect([part.snapshot?.things.size, whole.snapshot]).toEqual([1, undefined]);
  });

  test.each(["breaks", "ends"] as const)(
    "does not reset the backoff for a watch that opens and %s immediately",
    async (how) => {
      const clock = new ManualClock();
      const memory: FollowedStore = openMemory();
      const { store, traffic } = counted({
        read: (...asked) => memory.read(...asked),
        async *watch(_prefix, from) {
          yield { kind: "bookmark", revision: from };
          if (how === "breaks" || traffic.watchesBegun > 1_000) throw new Error("broken");
        },
      });
      const replica = start(store, clock);
      for (let turn = 0; turn < 100; turn++) await clock.advance(100);

      expect(traffic.watchesBegun).toBeLessThan(16);
      expect(traffic.reads).toBe(1);
      expect(replica.status).toMatchObject({ state: "stale", since: expect.any(Number) });
    },
  );

  test("opens a quiet watch again, and treats a watch that delivers nothing at all as lost", async () => {
    const clock = new ManualClock();
    const memory: FollowedStore = openMemory();
    let isMute = false;
    const { store, traffic } = counted({
      read: (...asked) => memory.read(...asked),
      async *watch(prefix, from, signal) {
        if (!isMute) return yield* memory.watch(prefix, from, signal);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
    });
    const replica = start(store, clock);
    await settled();
    isMute = true;
    await clock.advance(60_000);
    const whileQuiet = [traffic.watchesBegun, replica.status.state];
    await clock.advance(60_000);
    const whileMute = [traffic.watchesBegun, replica.status.state];
    isMute = false;
    await clock.advance(100);

    expect(whileQuiet).toEqual([2, "in sync"]);
    expect(whileMute).toEqual([2, "stale"]);
    expect([traffic.watchesBegun, replica.status.state]).toEqual([3, "in sync"]);
    expect([traffic.reads, traffic.watchesOpen]).toEqual([1, 1]);
  });

  test("detects a store restored from an older copy, although a record has the same revision", async () => {
    const clock = new ManualClock();
    const [before, after] = [new MemoryTable(), new MemoryTable()];
    for (const table of [before, after]) put(table, "/k/same", "a");
    put(before, "/k/changed", "before");
    put(after, "/k/changed", "after");
    put(before, "/k/gone", "x");
    let table = before;
    const connect = (): FollowedStore => openMemory(table);
    let cut = new AbortController();
    const { store } = counted({
      read: (...asked) => connect().read(...asked),
      async *watch(prefix, from, signal) {
        yield* openMemory(table).watch(prefix, from, AbortSignal.any([signal, cut.signal]));
        if (!signal.aborted) throw new Error("cut");
      },
    });
    const replica = start(store, clock);
    await settled();
    const updates = replica.updates()[Symbol.asyncIterator]();
    const revision = (await updates.next()).value?.snapshot.things.revisionOf("/k/changed");
    table = after;
    cut.abort();
    cut = new AbortController();
    await settled();
    await clock.advance(100);
    await clock.advance(200);
    const update = (await updates.next()).value;

    expect(stateOf(replica)).toEqual({ "/k/same": "a", "/k/changed": "after" });
    expect(replica.snapshot?.things.revisionOf("/k/changed")).toBe(revision);
    expect(update?.changes.things.map(({ kind, key }: { kind: string; key: string }) => `${kind} ${key}`)).toEqual([
      "delete /k/gone",
      "put /k/changed",
    ]);
  });

  test.each([
    { times: 1, reads: 2, reported: [], state: "in sync" },
    { times: 3, reads: 2, reported: ["try-again-later"], state: "stale" },
  ])(
    "lists again at once if the history is gone, and pauses only if it is gone again: $times times",
    async ({ times, reads, reported, state }) => {
      const clock = new ManualClock();
      const memory: FollowedStore = openMemory();
      let left = times;
      const { store, traffic } = counted({
        read: (...asked) => memory.read(...asked),
        async *watch(prefix, from, signal) {
          yield { kind: "bookmark", revision: from };
          if (left-- > 0) throw new HistoryGone(from);
          yield* memory.watch(prefix, from, signal);
        },
      });
      const problems: string[] = [];
      const replica = start(store, clock, 500, ({ kind }) => void problems.push(kind));
      await settled();

      expect({ reads: traffic.reads, reported: problems, state: replica.status.state }).toEqual({
        reads,
        reported: [...reported],
        state,
      });
      await clock.advance(100);
      await clock.advance(200);
      expect([traffic.reads, replica.status.state]).toEqual([times + 1, "in sync"]);
    },
  );

  test("waits before it lists again, the longer the more replicas there are", async () => {
    const clock = new ManualClock();
    const table = new MemoryTable();
    const { store, traffic } = counted(openMemory(table));
    let isGone = false;
    const ending: FollowedStore = {
      read: (...asked) => store.read(...asked),
      async *watch(prefix, from, signal) {
        if (isGone) throw new HistoryGone(from);
        yield* store.watch(prefix, from, AbortSignal.any([signal, cut.signal]));
        if (!signal.aborted) throw new Error("cut");
      },
    };
    const cut = new AbortController();
    const options = { signal: started.stop.signal, clock, random: () => 0.5, peers: () => 500, limits };
    const replica = startReplica(ending, kinds, options);
    started.note(replica);
    await settled();
    isGone = true;
    cut.abort();
    await settled();
    // Half of the way: of 100 ms and 500 ms for the watch, of 10 s for the list.
    const paused = [...clock.waits.slice(-1)];
    await clock.advance(75 + 250);
    isGone = false;
    const waiting = [traffic.reads, replica.status.state];
    await clock.advance(4_999);
    const before = traffic.reads;
    await clock.advance(1);

    expect(paused).toEqual([75 + 250]);
    expect([waiting, before, traffic.reads]).toEqual([[1, "stale"], 1, 2]);
  });

  test("lists again if the revision of its first page is compacted before the last page", async () => {
    const clock = new ManualClock();
    const table = new MemoryTable();
    for (const name of ["a", "b", "c", "d"]) put(table, `/k/${name}`, "x");
    const memory: FollowedStore = openMemory(table);
    let failures = 1;
    const { store, traffic } = counted({
      read: async (wanted, at) => {
        if (at !== undefined && failures-- > 0) throw new HistoryGone(at);
        return memory.read(wanted, at);
      },
      watch: (...asked) => memory.watch(...asked),
    });
    const replica = start(store, clock, 2);
    await settled();
    await clock.advance(100);

    expect(Object.keys(stateOf(replica))).toHaveLength(4);
    expect(traffic.reads).toBe(2 + 3);
  });

  test("restarts a failed list from the beginning, at a new revision", async () => {
    const clock = new ManualClock();
    const table = new MemoryTable();
    for (const name of ["a", "b", "c"]) put(table, `/k/${name}`, "x");
    const memory: FollowedStore = openMemory(table);
    const { store, traffic } = counted({
      read: (...asked) => (traffic.reads === 2 ? Promise.reject(new Error("lost")) : memory.read(...asked)),
      watch: (...asked) => memory.watch(...asked),
    });
    const replica = start(store, clock, 2);
    await settled();
    const a = table.answer({ kind: "key", key: "/k/a" })[0];
    table.commit([{ kind: "delete", key: "/k/a", revision: a?.revision ?? "" }]);
    put(table, "/k/d", "x");
    table.forgetHistory();
    await clock.advance(100);

    expect(Object.keys(stateOf(replica)).toSorted()).toEqual(["/k/b", "/k/c", "/k/d"]);
    expect([traffic.reads, traffic.watchesBegun]).toEqual([2 + 2, 1]);
  });

  test("closes everything when its signal fires, whatever it is doing", async () => {
    const clock = new ManualClock();
    const memory: FollowedStore = openMemory();
    const hanging = counted({ read: () => new Promise<never>(() => {}), watch: memory.watch });
    const failing = counted({ read: () => Promise.reject(new Error("no route")), watch: memory.watch });
    const following = counted({
      read: (...asked) => memory.read(...asked),
      watch: (...asked) => memory.watch(...asked),
    });
    const replicas = [hanging, failing, following].map(({ store }) => start(store, clock));
    const consumers = replicas.map(async (replica) => {
      for await (const _ of replica.updates());
    });
    await settled();
    started.stop.abort();
    await Promise.all([...consumers, ...replicas.map(({ ended }) => ended)]);

    expect(following.traffic).toEqual({ reads: 1, watchesBegun: 1, watchesOpen: 0 });
    expect(clock.sleeping).toBe(0);
  });

  test("ends an iteration with the consumer's own signal, and continues for others", async () => {
    const table = new MemoryTable();
    const replica = start(openMemory(table), new ManualClock());
    const own = new AbortController();
    let count = 0;
    for await (const _ of replica.updates(own.signal)) {
      count += 1;
      own.abort();
    }
    put(table, "/k/a", "x");
    await settled();

    expect(count).toBe(1);
    expect(stateOf(replica)).toEqual({ "/k/a": "x" });
  });
});
