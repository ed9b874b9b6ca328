import { afterEach, describe, expect, test } from "bun:test";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { type EtcdOptions, openEtcd } from "../../src/datastore/etcd/etcd.ts";
import { type EtcdCluster, hasEtcd, leaderOf, startEtcd } from "../support/etcd.ts";
import { pollUntil } from "../support/poll.ts";
import { startProxy } from "../support/unreliable-proxy.ts";

/** Makes the client start with the first endpoint. */
const IN_ORDER = { random: () => 0 };

describe.skipIf(!hasEtcd)(`etcd with failing members${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  const clusters: EtcdCluster[] = [];
  const stores: Datastore[] = [];

  const start = async (plan: Parameters<typeof startEtcd>[0]) => {
    const cluster = await startEtcd(plan);
    clusters.push(cluster);
    return cluster;
  };
  const open = async (endpoints: readonly string[], options: EtcdOptions = {}) => {
    const store = await openEtcd({ source: { kind: "endpoints", endpoints } }, { ...IN_ORDER, ...options });
    stores.push(store);
    return store;
  };
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await Promise.all(clusters.splice(0).map((cluster) => cluster.stop()));
  });

  test("asks a silent endpoint only once while another responds", async () => {
    const { endpoints } = await start({});
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { open: () => void asked++, data() {} } });
    let asked = 0;
    const dead = "http://127.0.0.1:1";
    const store = await open([dead, `http://127.0.0.1:${silent.port}`, ...endpoints], {
      limits: { firstAttemptMilliseconds: 200 },
    });
    for (let count = 0; count < 5; count++) await store.commit([{ kind: "put", key: "/k", value: String(count) }]);
    silent.stop(true);

    expect(asked).toBe(1);
  });

  test("keeps one connection for the requests of a process", async () => {
    const { endpoints } = await start({});
    const proxy = await startProxy(Number(new URL(endpoints[0] ?? "").port));
    // On a busy machine an attempt may time out, which correctly closes its connection.
    const limits = { firstAttemptMilliseconds: 30_000, longestAttemptMilliseconds: 30_000 };
    const store = await open([`http://127.0.0.1:${proxy.port}`], { limits });
    // The early connection: a first request that overtakes it would correctly open its own.
    await pollUntil(() => proxy.connections() === 1, "the connection is begun");
    for (let count = 0; count < 5; count++) await store.read([]);

    expect(proxy.connections()).toBe(1);
    await proxy.stop();
  });

  test("loses no increment when the leader is killed", async () => {
    const cluster = await start({ members: 3 });
    const store = await open(cluster.endpoints);
    const leader = leaderOf(cluster);
    let done = 0;
    for (; done < 20; done++) await increment(store);
    leader.signal("SIGKILL");
    for (; done < 40; done++) await increment(store);
    const { answers } = await store.read([{ kind: "key", key: "/counter" }]);

    expect(answers[0]?.[0]?.value).toBe("40");
  }, 60_000);

  test("reads and commits in spite of a frozen member", async () => {
    const cluster = await start({ members: 3 });
    const store = await open(cluster.endpoints);
    await increment(store);
    cluster.members[0]?.signal("SIGSTOP");
    for (let count = 0; count < 5; count++) await increment(store);
    const { answers } = await store.read([{ kind: "key", key: "/counter" }]);

    expect(answers[0]?.[0]?.value).toBe("6");
  }, 60_000);

  test.each([
    ["SIGKILL", "on"],
    ["SIGSTOP", "on"],
    ["SIGKILL", "off"],
    ["SIGSTOP", "off"],
  ] as const)(
    "watches on, without a gap, when its member gets %s (gateway %s)",
    async (signal, gateway) => {
      const cluster = await start({ members: 3, gateway });
      const watcher = await open(cluster.endpoints, {
        watchLimits: { quietMilliseconds: 300, probeMilliseconds: 1_000 },
      });
      const writer = await open(cluster.endpoints.slice(1));
      const { revision } = await writer.read([]);
      const seen: string[] = [];
      for await (const event of watcher.watch("/w/", revision, AbortSignal.timeout(40_000))) {
        if (event.kind === "bookmark" && seen.length === 0) await put(writer, "/w/0");
        if (event.kind !== "put") continue;
        seen.push(event.entry.key);
        if (seen.length === 1) cluster.members[0]?.signal(signal);
        if (seen.length === 5) break;
        await put(writer, `/w/${seen.length}`);
      }

      expect(seen).toEqual(["/w/0", "/w/1", "/w/2", "/w/3", "/w/4"]);
    },
    60_000,
  );

  test("says that a majority is missing", async () => {
    const cluster = await start({ members: 3 });
    const limits = { firstAttemptMilliseconds: 500, wholeMilliseconds: 2_000 };
    const [first = ""] = cluster.endpoints;
    await (await open([first])).read([]);
    const store = await open([first], { limits });
    for (const member of cluster.members.slice(1)) member.signal("SIGKILL");
    const failure = await failureOf(store.commit([{ kind: "put", key: "/k", value: "x" }]));

    expect(failure).toMatchObject({ kind: "datastore-unavailable", details: expect.stringContaining("leader") });
    expect(failure).toMatchObject({ message: expect.stringContaining("not known") });
  }, 60_000);

  test("says that etcd's quota is used up, and still reads", async () => {
    const { endpoints } = await start({ flags: [`--quota-backend-bytes=${64 * 1024}`] });
    const store = await open(endpoints);
    const fill = async () => {
      for (let count = 0; count < 100; count++) await put(store, `/fill/${count}`, "x".repeat(50_000));
    };

    expect(await failureOf(fill())).toMatchObject({
      kind: "datastore-unavailable",
      details: expect.stringContaining("NOSPACE"),
    });
    expect((await store.read([{ kind: "prefix", prefix: "/fill/", limit: 1 }])).answers).toHaveLength(1);
  }, 60_000);

  test("ends an attempt in progress when the signal closes the store", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const store = await open([`http://127.0.0.1:${silent.port}`]);
    const reading = failureOf(store.read([]));
    await store.close();

    expect(await reading).toMatchObject({ kind: "datastore-unavailable" });
    silent.stop(true);
  });
});

async function increment(store: Datastore): Promise<void> {
  for (;;) {
    const entry = (await store.read([{ kind: "key", key: "/counter" }])).answers[0]?.[0];
    const value = String(Number(entry?.value ?? "0") + 1);
    const written = await store.commit([
      entry
        ? { kind: "update", key: "/counter", value, revision: entry.revision }
        : { kind: "create", key: "/counter", value },
    ]);
    if (written.ok) return;
  }
}

async function put(store: Datastore, key: string, value = ""): Promise<void> {
  await store.commit([{ kind: "put", key, value }]);
}

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}
