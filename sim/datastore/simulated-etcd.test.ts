import { describe, expect, test } from "bun:test";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { datastoreContract } from "../../src/datastore/datastore-contract.ts";
import { replicaContract } from "../../src/datastore/replica/replica-contract.ts";
import { FaultyNetwork, UNDISTURBED } from "../faults/network.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import { Random } from "../schedule/random.ts";
import { runInBackground } from "../schedule/run-in-background.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { SimulatedEtcd } from "./simulated-etcd.ts";

function makeWorld(seed = 1) {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const etcd = new SimulatedEtcd(network);
  const connect = (name: string, options: { cachesReads?: boolean } = {}) =>
    etcd.connect(new SimulatedProcess(name, scheduler, random.fork(name)), name, options);
  return { scheduler, network, etcd, connect };
}

for (const cachesReads of [false, true]) {
  const open = async () => {
    const { scheduler, etcd, connect } = makeWorld();
    const background = runInBackground(scheduler);
    return {
      store: connect("first", { cachesReads }),
      another: async () => connect("another", { cachesReads }),
      forgetHistory: async () => etcd.compact(),
      dispose: async () => background.stop(),
    };
  };
  const name = cachesReads ? "the etcd client with a cache, in a simulation," : "the etcd client in a simulation";
  datastoreContract(name, open);
  replicaContract(name, open, { histories: 2 });
}

const create = (store: Datastore, key: string, value = "x") => store.commit([{ kind: "create", key, value }]);

function followed<Value>(work: Promise<Value>): { outcome: unknown } {
  const state: { outcome: unknown } = { outcome: "waits" };
  work.then(
    (value) => {
      state.outcome = value;
    },
    (failure: unknown) => {
      state.outcome = failure;
    },
  );
  return state;
}

describe("the etcd client in a simulation", () => {
  test("finds out that its commit took effect though all answers were lost for a while", async () => {
    const { scheduler, network, etcd, connect } = makeWorld();
    network.disturbance = { ...UNDISTURBED, lostAnswer: 1 };
    const work = followed(create(connect("a"), "/a"));
    await scheduler.runUntil(5_000);
    network.disturbance = UNDISTURBED;
    await scheduler.runUntil(20_000);

    expect(work.outcome).toEqual({ ok: true, revision: "2" });
    expect(etcd.table.revision).toBe("2");
  });

  test("finds out that another one was first", async () => {
    const { scheduler, network, connect } = makeWorld();
    const [slow, quick] = [connect("slow"), connect("quick")];
    network.cut("slow");
    const late = followed(create(slow, "/a", "slow"));
    const soon = followed(create(quick, "/a", "quick"));
    await scheduler.runUntil(5_000);
    network.heal("slow");
    await scheduler.runUntil(20_000);

    expect(soon.outcome).toMatchObject({ ok: true });
    expect(late.outcome).toEqual({ ok: false, reason: "exists", key: "/a" });
  });

  test("gives up after its time, without anything that would wake it later", async () => {
    const { scheduler, network, connect } = makeWorld();
    network.cut("a");
    const work = followed(create(connect("a"), "/a"));
    await scheduler.runUntil(60_000);
    const { steps } = scheduler;
    await scheduler.runUntil(500_000);

    expect(work.outcome).toMatchObject({ kind: "datastore-unavailable" });
    expect(scheduler.steps).toBe(steps);
  });

  test("a watch of a member without changes says every 20 seconds that it is alive", async () => {
    const { scheduler, connect } = makeWorld();
    const store = connect("a");
    const ending = new AbortController();
    const bookmarks: string[] = [];
    const following = (async () => {
      for await (const event of store.watch("/", "1", ending.signal))
        bookmarks.push(`${event.kind} ${"revision" in event && event.revision}`);
    })();
    await scheduler.runUntil(65_000);
    ending.abort();
    await scheduler.runUntil(66_000);
    await following;

    expect(bookmarks).toEqual(["bookmark 1", "bookmark 1", "bookmark 1", "bookmark 1"]);
  });

  test("a watch resumes after a restart, a break and a silent loss, and misses nothing", async () => {
    const { scheduler, etcd, connect } = makeWorld();
    const keys: string[] = [];
    const follow = async () => {
      for await (const event of connect("reader").watch("/", "1", new AbortController().signal)) {
        if (event.kind === "put") keys.push(event.entry.key);
      }
    };
    void follow();
    const writer = connect("writer");
    const faults = [() => etcd.restart(500), () => etcd.breakWatches(), () => etcd.loseWatches("reader"), () => {}];
    for (const [index, fault] of faults.entries()) {
      scheduler.after(index * 900_000 + 1_000, fault);
      scheduler.after(index * 900_000 + 5_000, () => void create(writer, `/${index}`));
    }
    await scheduler.runUntil(3_600_000);

    expect(keys).toEqual(["/0", "/1", "/2", "/3"]);
  });
});
