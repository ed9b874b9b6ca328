import { describe, expect, test } from "bun:test";
import { type Atomicity, type Datastore, HistoryGone } from "../../src/datastore/datastore.ts";
import { datastoreContract } from "../../src/datastore/datastore-contract.ts";
import { replicaContract } from "../../src/datastore/replica/replica-contract.ts";
import { FaultyNetwork, UNDISTURBED } from "../faults/network.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import { Random } from "../schedule/random.ts";
import { runInBackground } from "../schedule/run-in-background.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { SimulatedStore } from "./simulated-store.ts";

const LEVELS: readonly Atomicity[] = ["all changes", "one object"];

function makeWorld(atomicity: Atomicity, seed = 1) {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const store = new SimulatedStore(network, { atomicity });
  const start = (name: string) => {
    const process = new SimulatedProcess(name, scheduler, random.fork(name));
    return { process, connection: store.connect(process, name) };
  };
  return { scheduler, network, store, start };
}

for (const atomicity of LEVELS) {
  const open = async () => {
    const { scheduler, store, start } = makeWorld(atomicity);
    const background = runInBackground(scheduler);
    return {
      store: start("first").connection,
      another: async () => start("another").connection,
      forgetHistory: async () => store.compact(),
      dispose: async () => background.stop(),
    };
  };
  const name = `a simulated store, ${atomicity},`;
  datastoreContract(name, open, atomicity === "one object" ? { atomicity } : {});
  replicaContract(name, open, { histories: atomicity === "one object" ? 0 : 2 });
}

/** What the work has come to, or "waits" if it still does. */
function followed<Value>(work: Promise<Value>): { outcome: Value | string } {
  const state: { outcome: Value | string } = { outcome: "waits" };
  work.then(
    (value) => {
      state.outcome = value;
    },
    (failure: unknown) => {
      state.outcome = failure instanceof Error ? `failed: ${failure.message}` : String(failure);
    },
  );
  return state;
}

const create = (store: Datastore, key: string) => store.commit([{ kind: "create", key, value: "x" }]);

/** The keys that a watch of everything has shown, and how it ended. */
function watched(store: Datastore, from: string) {
  const seen: { keys: string[]; end: unknown } = { keys: [], end: undefined };
  const follow = async () => {
    for await (const event of store.watch("/", from, new AbortController().signal)) {
      if (event.kind === "put") seen.keys.push(event.entry.key);
    }
  };
  follow().then(
    () => {
      seen.end = "ended";
    },
    (failure: unknown) => {
      seen.end = failure;
    },
  );
  return seen;
}

describe("a connection to a SimulatedStore", () => {
  test.each(LEVELS)("executes a request once whose answers are lost, and finds out that it did: %s", async (level) => {
    const { scheduler, network, store, start } = makeWorld(level);
    const { connection } = start("a");
    network.disturbance = { ...UNDISTURBED, lostAnswer: 1 };
    const work = followed(create(connection, "/a"));
    await scheduler.runUntil(500);
    expect(work.outcome).toBe("waits");
    network.disturbance = UNDISTURBED;
    await scheduler.runUntil(5_000);

    expect(work.outcome).toMatchObject({ ok: true });
    expect(store.table.revision).toBe("2");
  });

  test.each(LEVELS)("fails after a while if all answers are lost, though it was executed: %s", async (level) => {
    const { scheduler, network, store, start } = makeWorld(level);
    network.disturbance = { ...UNDISTURBED, lostAnswer: 1 };
    const work = followed(create(start("a").connection, "/a"));
    await scheduler.runUntil(60_000);

    expect(work.outcome).toStartWith("failed");
    expect(store.table.answer({ kind: "key", key: "/a" })).toHaveLength(1);
  });

  test("a request may arrive after its client gave up", async () => {
    const late = Array.from({ length: 20 }, async (_, seed) => {
      const { scheduler, network, store, start } = makeWorld("one object", seed);
      network.disturbance = { ...UNDISTURBED, lateRequest: 1 };
      const { connection, process } = start("a");
      void create(connection, "/a");
      await scheduler.runUntil(0);
      process.kill();
      await scheduler.runUntil(900);
      const soon = store.table.revision;
      await scheduler.runUntil(60_000);
      return soon === "1" && store.table.revision === "2";
    });

    expect((await Promise.all(late)).filter(Boolean).length).toBeGreaterThan(10);
  });

  test("a place that is cut off waits, and goes on when it is healed", async () => {
    const { scheduler, network, start } = makeWorld("all changes");
    const [cut, other] = [start("cut"), start("other")];
    const seen = watched(cut.connection, "1");
    await scheduler.runUntil(100);
    network.cut("cut");
    const works = [followed(create(cut.connection, "/a")), followed(create(other.connection, "/b"))];
    await scheduler.runUntil(5_000);
    expect(works.map(({ outcome }) => outcome)).toMatchObject(["waits", { ok: true }]);
    expect(seen.keys).toEqual([]);
    network.heal("cut");
    await scheduler.runUntil(30_000);

    expect(works[0]?.outcome).toMatchObject({ ok: true });
    expect(seen.keys).toEqual(["/b", "/a"]);
  });

  test("a restart refuses requests for its time and breaks watches", async () => {
    const { scheduler, store, start } = makeWorld("all changes");
    const { connection } = start("a");
    const seen = watched(connection, "1");
    await scheduler.runUntil(100);
    store.restart(1_000);
    const short = followed(create(connection, "/a"));
    await scheduler.runUntil(3_000);
    store.restart(60_000);
    const long = followed(create(connection, "/b"));
    await scheduler.runUntil(50_000);

    expect(seen.end).toMatchObject({ kind: "datastore-unavailable" });
    expect(short.outcome).toMatchObject({ ok: true });
    expect(long.outcome).toStartWith("failed");
  });

  test("a server that hangs executes everything later, also what its client has given up", async () => {
    const { scheduler, store, start } = makeWorld("one object");
    const work = followed(create(start("a").connection, "/a"));
    store.hang(30_000);
    await scheduler.runUntil(29_000);
    expect(work.outcome).toStartWith("failed");
    expect(store.table.revision).toBe("1");
    await scheduler.runUntil(40_000);

    expect(store.table.revision).toBe("2");
  });

  test("a stalled watch shows the past, and later everything in order", async () => {
    const { scheduler, store, start } = makeWorld("all changes");
    const [reader, writer] = [start("reader"), start("writer")];
    const seen = watched(reader.connection, "1");
    await scheduler.runUntil(100);
    store.stallWatches("reader", 10_000);
    void create(writer.connection, "/a").then(() => create(writer.connection, "/b"));
    await scheduler.runUntil(10_000);
    expect(seen.keys).toEqual([]);
    await scheduler.runUntil(20_000);

    expect(seen.keys).toEqual(["/a", "/b"]);
  });

  test("a watch from before a compaction throws HistoryGone", async () => {
    const { scheduler, store, start } = makeWorld("all changes");
    const { connection } = start("a");
    void create(connection, "/a");
    await scheduler.runUntil(100);
    store.compact();
    const seen = watched(connection, "1");
    await scheduler.runUntil(200);

    expect(seen.end).toBeInstanceOf(HistoryGone);
  });

  test("a dead process hears nothing, but what it has sent is executed", async () => {
    const { scheduler, store, start } = makeWorld("one object");
    const { process, connection } = start("a");
    const seen = watched(connection, "1");
    await scheduler.runUntil(100);
    const work = followed(create(connection, "/a"));
    process.kill();
    await scheduler.runUntil(60_000);

    expect(work.outcome).toBe("waits");
    expect(seen).toEqual({ keys: [], end: undefined });
    expect(store.table.revision).toBe("2");
    expect(store.traffic.of("a")).toEqual({ reads: 1, writes: 1 });
    expect([store.reads, store.writes]).toEqual([1, 1]);
  });

  test("a process can die between the effect of its request and the answer", async () => {
    const deaths: string[] = [];
    for (let effects = 0; effects < 6; effects++) {
      const { scheduler, store, start } = makeWorld("one object");
      const { process, connection } = start("a");
      process.killAfter(effects);
      const work = followed(connection.commit(["/a", "/b"].map((key) => ({ kind: "create", key, value: "" }))));
      await scheduler.runUntil(60_000);
      deaths.push(`${store.table.answer({ kind: "prefix", prefix: "/" }).length} ${work.outcome === "waits"}`);
    }

    expect(deaths).toEqual(["0 true", "1 true", "1 true", "2 true", "2 false", "2 false"]);
  });
});
