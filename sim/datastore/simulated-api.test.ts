import { describe, expect, test } from "bun:test";
import { datastoreContract } from "../../src/datastore/datastore-contract.ts";
import { openKubeStore } from "../../src/datastore/kube/store.ts";
import { replicaContract } from "../../src/datastore/replica/replica-contract.ts";
import type { KubeClient, WatchEvent } from "../../src/kube/api.ts";
import { mayHaveTakenEffect } from "../../src/kube/failure.ts";
import { anyText } from "../../test/support/any-text.ts";
import { FaultyNetwork, UNDISTURBED } from "../faults/network.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import { Random } from "../schedule/random.ts";
import { runInBackground } from "../schedule/run-in-background.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { SimulatedApi, type SimulatedApiOptions } from "./simulated-api.ts";

const PODS = "/api/v1/namespaces/a/pods";

function makeWorld(seed = 1, options?: SimulatedApiOptions) {
  const random = new Random(seed);
  const scheduler = new Scheduler(random.fork("order"));
  const network = new FaultyNetwork(scheduler, random.fork("network"));
  const api = new SimulatedApi(network, options);
  const start = (name: string) => {
    const process = new SimulatedProcess(name, scheduler, random.fork(name));
    return { process, client: api.connect(process, name) };
  };
  return { scheduler, network, api, start };
}

const openWith = (watchList: "served" | "refused") => async () => {
  // A list of a server that is behind would be delivered in two parts.
  const { scheduler, api, start } = makeWorld(1, { lag: () => 0, watchList });
  const background = runInBackground(scheduler);
  let marks = 0;
  const mapping = anyText({ writeAnnotation: "test/write", newMark: () => String(++marks) });
  const connect = (name: string) => {
    const { client } = start(name);
    return openKubeStore({ api: client, mappings: [mapping], close: () => client.close() });
  };
  return {
    store: connect("first"),
    another: async () => connect("another"),
    forgetHistory: async () => api.compact(),
    dispose: async () => background.stop(),
  };
};
datastoreContract("a simulated API", openWith("served"), { atomicity: "one object", revisions: "of each object" });
replicaContract("a simulated API", openWith("served"), { histories: 0, watches: "per kind" });
replicaContract("a simulated API without WatchList", openWith("refused"), { histories: 0, watches: "per kind" });

const pod = (name: string) => ({ metadata: { name, namespace: "a" } });

/** The events of a watch as `TYPE name`, and how it ended. */
function watched(client: KubeClient, query: Readonly<Record<string, string>>) {
  const seen: { events: string[]; end: unknown } = { events: [], end: undefined };
  const describeEvent = ({ type, text }: WatchEvent) => `${type} ${JSON.parse(text).metadata?.name ?? ""}`.trim();
  const follow = async () => {
    for await (const event of client.watch("/api/v1/pods", query, new AbortController().signal)) {
      if (event.type === "OPENED") continue;
      seen.events.push(describeEvent(event));
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

const outcomeOf = <Value>(work: Promise<Value>) => {
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
};

describe("a connection to a SimulatedApi", () => {
  test("does not repeat a write without an answer, which may have taken effect, but repeats a read", async () => {
    const { scheduler, network, api, start } = makeWorld();
    const { client } = start("a");
    network.disturbance = { ...UNDISTURBED, lostAnswer: 1 };
    const write = outcomeOf(client.request({ method: "POST", path: PODS, body: JSON.stringify(pod("x")) }));
    const read = outcomeOf(client.request({ method: "GET", path: `${PODS}/x` }));
    await scheduler.runUntil(4_000);
    network.disturbance = UNDISTURBED;
    await scheduler.runUntil(20_000);

    expect(mayHaveTakenEffect(write.outcome)).toBe(true);
    expect(api.object(`${PODS}/x`)).toBeDefined();
    expect(read.outcome).toMatchObject({ status: 200 });
  });

  test("a server that is down for a moment is waited for, and its refusal has no effect", async () => {
    const { scheduler, api, start } = makeWorld();
    const { client } = start("a");
    const write = (name: string) =>
      outcomeOf(client.request({ method: "POST", path: PODS, body: JSON.stringify(pod(name)) }));
    api.restart(1_000);
    const short = write("short");
    await scheduler.runUntil(5_000);
    api.restart(60_000);
    const long = write("long");
    await scheduler.runUntil(30_000);

    expect(short.outcome).toMatchObject({ status: 201 });
    expect(long.outcome).toMatchObject({ kind: "api-unavailable" });
    expect(mayHaveTakenEffect(long.outcome)).toBe(false);
  });

  test("waits as a busy server asks", async () => {
    const { scheduler, api, start } = makeWorld();
    const { client } = start("a");
    api.beBusy(3_000);
    const write = outcomeOf(client.request({ method: "POST", path: PODS, body: JSON.stringify(pod("x")) }));
    const seen = watched(client, { resourceVersion: "100" });
    await scheduler.runUntil(2_000);
    expect(write.outcome).toBe("waits");
    await scheduler.runUntil(5_000);

    expect(write.outcome).toMatchObject({ status: 201 });
    expect(seen.events).toEqual(["ADDED x"]);
  });

  test("the server ends a watch after some minutes, with a bookmark", async () => {
    const { scheduler, api, start } = makeWorld();
    const seen = watched(start("a").client, {
      resourceVersion: "100",
      allowWatchBookmarks: "true",
      timeoutSeconds: "80",
    });
    scheduler.after(1_000, () => api.create(PODS, pod("x")));
    scheduler.after(75_000, () => api.remove(`${PODS}/x`));
    await scheduler.runUntil(100_000);

    expect(seen).toEqual({ events: ["ADDED x", "BOOKMARK", "DELETED x", "BOOKMARK"], end: "ended" });
  });

  test("a watch breaks with the server, and history that is gone is an event", async () => {
    const { scheduler, api, start } = makeWorld();
    const { client } = start("a");
    const seen = watched(client, { resourceVersion: "100" });
    await scheduler.runUntil(100);
    api.create(PODS, pod("x"));
    api.restart(500);
    await scheduler.runUntil(1_000);
    api.compact();
    const late = watched(client, { resourceVersion: "100" });
    await scheduler.runUntil(2_000);

    expect(seen.end).toMatchObject({ kind: "api-unavailable" });
    expect(late).toEqual({ events: ["ERROR"], end: "ended" });
  });

  test("a cut watch shows everything after it is healed", async () => {
    const { scheduler, network, api, start } = makeWorld();
    const seen = watched(start("a").client, { resourceVersion: "100" });
    await scheduler.runUntil(100);
    network.cut("a");
    api.create(PODS, pod("x"));
    api.patch(`${PODS}/x`, { metadata: { labels: { color: "red" } } });
    api.startRemoval(`${PODS}/x`);
    await scheduler.runUntil(60_000);
    expect(seen.events).toEqual([]);
    expect(api.object(`${PODS}/x`)?.metadata["deletionTimestamp"]).toBeDefined();
    network.heal("a");
    api.remove(`${PODS}/x`);
    await scheduler.runUntil(120_000);

    expect(seen.events).toEqual(["ADDED x", "MODIFIED x", "MODIFIED x", "DELETED x"]);
    expect(api.list("/api/v1/pods")).toEqual([]);
  });

  test("a watch with a selector shows an object that begins and ceases to match", async () => {
    const { scheduler, api, start } = makeWorld();
    const seen = watched(start("a").client, { resourceVersion: "100", fieldSelector: "spec.nodeName=one" });
    await scheduler.runUntil(100);
    api.create(PODS, pod("x"));
    api.patch(`${PODS}/x`, { spec: { nodeName: "one" } });
    api.replace(`${PODS}/x`, { ...pod("x"), spec: { nodeName: "two" } });
    await scheduler.runUntil(1_000);

    expect(seen.events).toEqual(["ADDED x", "DELETED x"]);
  });
});
