import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HistoryGone } from "../../src/datastore/datastore.ts";
import { put, readKey } from "../../src/datastore/datastore-contract/subject.ts";
import { type EtcdOptions, openEtcd } from "../../src/datastore/etcd/etcd.ts";
import type { FollowedStore } from "../../src/datastore/replica/feed.ts";
import { replicaContract } from "../../src/datastore/replica/replica-contract.ts";
import { startReplica } from "../../src/datastore/replica.ts";
import { type EtcdCluster, etcdctl, hasEtcd, startEtcd } from "../support/etcd.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { startProxy } from "../support/unreliable-proxy.ts";

const openAt = (endpoints: readonly string[], options: EtcdOptions = {}) =>
  openEtcd({ source: { kind: "endpoints", endpoints } }, options);

function compact(endpoint: string): void {
  const { header } = JSON.parse(etcdctl(endpoint, ["get", "x", "-w", "json"]));
  etcdctl(endpoint, ["compact", String(header.revision)]);
}

for (const gateway of ["on", "off"] as const) {
  describe.skipIf(!hasEtcd)(`etcd with its gateway ${gateway}${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
    let cluster: EtcdCluster;
    beforeAll(async () => {
      cluster = await startEtcd({ gateway });
    });
    afterAll(() => cluster.stop());

    replicaContract(
      `etcd, gateway ${gateway}`,
      async () => {
        const [endpoint = ""] = cluster.endpoints;
        etcdctl(endpoint, ["del", "", "--from-key"]);
        return {
          store: await openAt(cluster.endpoints),
          another: () => openAt(cluster.endpoints),
          // A random history may request the same revision twice, which etcd rejects.
          forgetHistory: async () => compactIfNew(endpoint),
          dispose: async () => {},
        };
      },
      { histories: proofSize({ everyDay: 1, soak: 6 }) },
    );
  });
}

describe.skipIf(!hasEtcd)(`a watch of etcd${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  test("says that the history is gone if a deletion after its bookmark was compacted", async () => {
    const cluster = await startEtcd();
    try {
      const [endpoint = ""] = cluster.endpoints;
      const store = await openAt(cluster.endpoints);
      await put(store, "/k/gone", "x");
      const { revision } = await store.read([]);
      etcdctl(endpoint, ["del", "/k/gone"]);
      // At the revision of the deletion.
      compact(endpoint);
      const stop = new AbortController();
      const events = store.watch("/k/", revision, stop.signal)[Symbol.asyncIterator]();
      await expect(
        (async () => {
          // The first is the bookmark that it starts from.
          for (let count = 0; count < 2; count++) await events.next();
        })(),
      ).rejects.toThrow(HistoryGone);
      stop.abort();
      await store.close();
    } finally {
      await cluster.stop();
    }
  });
});

function compactIfNew(endpoint: string): void {
  try {
    compact(endpoint);
  } catch (error) {
    if (!String(error).includes("has been compacted")) throw error;
  }
}

describe.skipIf(!hasEtcd)(`a replica of a failing etcd${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  const kinds = { things: { prefix: "/k/", decode: ({ value }: { readonly value: string }) => value } };
  const limits = { firstPauseMilliseconds: 20, longestPauseMilliseconds: 200, pageSize: 50, largestPageSize: 100 };
  const brief = { limits: { wholeMilliseconds: 1_000, briefMilliseconds: 200, firstAttemptMilliseconds: 500 } };
  let cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
    cleanups = [];
  });
  const cleanUp = <Thing>(thing: Thing, cleanup: (thing: Thing) => Promise<unknown>): Thing => {
    cleanups.push(() => cleanup(thing));
    return thing;
  };
  const start = async () => cleanUp(await startEtcd(), (cluster) => cluster.stop());
  const open = async (endpoints: readonly string[], options: EtcdOptions = {}) =>
    cleanUp(await openAt(endpoints, options), (store) => store.close());
  const follow = (store: FollowedStore) => {
    const stop = new AbortController();
    const problems: string[] = [];
    const report = ({ message }: Error) => void problems.push(message);
    const replica = startReplica(store, kinds, { signal: stop.signal, limits, report });
    cleanUp(replica, ({ ended }) => {
      stop.abort();
      return ended;
    });
    const shows = (expected: Record<string, string>) =>
      pollUntil(
        () => Bun.deepEquals(Object.fromEntries(replica.snapshot?.things ?? []), expected),
        `the replica shows ${Object.keys(expected).length} records; it complained: ${problems.join("; ")}`,
        30_000,
      );
    return { replica, shows, problems };
  };

  test("shows a long list of one revision while others write all the time outside its prefix", async () => {
    const { endpoints } = await start();
    const store = await open(endpoints);
    const writer = await open(endpoints);
    const expected: Record<string, string> = {};
    for (let start = 0; start < 1_000; start += 100) {
      const keys = Array.from({ length: 100 }, (_, index) => `/k/${start + index}`);
      await store.commit(keys.map((key) => ({ kind: "put", key, value: key })));
      for (const key of keys) expected[key] = key;
    }
    let isWriting = true;
    const writing = (async () => {
      for (let count = 0; isWriting; count++) await put(writer, `/elsewhere/${count % 10}`, String(count));
    })();
    await follow(store).shows(expected);
    isWriting = false;
    await writing;
  }, 60_000);

  test("resumes after the server was killed and restarted, and reports that it is stale in between", async () => {
    const cluster = await start();
    const store = await open(cluster.endpoints, brief);
    await put(store, "/k/a", "1");
    const { replica, shows } = follow(store);
    await shows({ "/k/a": "1" });
    cluster.members[0]?.signal("SIGKILL");
    await pollUntil(() => replica.status.state === "stale", "the replica is stale", 30_000);
    const meanwhile = Object.fromEntries(replica.snapshot?.things ?? []);
    await cluster.members[0]?.restart();
    const direct = await open(cluster.endpoints);
    await put(direct, "/k/b", "2");
    await shows({ "/k/a": "1", "/k/b": "2" });

    expect(meanwhile).toEqual({ "/k/a": "1" });
    expect(replica.status.state).toBe("in sync");
  }, 90_000);

  test("lists again after a restart with compacted history, and misses no deletion", async () => {
    const cluster = await start();
    const [endpoint = ""] = cluster.endpoints;
    const proxy = cleanUp(await startProxy(Number(new URL(endpoint).port)), ({ stop }) => stop());
    const direct = await open(cluster.endpoints);
    for (const name of ["a", "b"]) await put(direct, `/k/${name}`, "1");
    const { shows } = follow(await open([`http://127.0.0.1:${proxy.port}`], brief));
    await shows({ "/k/a": "1", "/k/b": "1" });
    await proxy.whileDown(async () => {
      const gone = await readKey(direct, "/k/a");
      await direct.commit([{ kind: "delete", key: "/k/a", revision: gone?.revision ?? "" }]);
      await put(direct, "/k/c", "1");
      compact(endpoint);
    });
    await shows({ "/k/b": "1", "/k/c": "1" });
  }, 60_000);

  test("follows the state of an etcd that was restored from an older copy", async () => {
    const cluster = await start();
    const restart = async (meanwhile: (directory: string) => void) => {
      cluster.members[0]?.signal("SIGKILL");
      await cluster.members[0]?.restart(meanwhile);
    };
    const copy = join(cluster.directory, "copy");
    const store = await open(cluster.endpoints);
    await put(store, "/k/a", "first");
    await restart((directory) => cpSync(directory, copy, { recursive: true }));
    const { shows } = follow(store);
    for (const value of ["second", "third"]) await put(store, "/k/a", value);
    await put(store, "/k/lost", "x");
    await shows({ "/k/a": "third", "/k/lost": "x" });
    await restart((directory) => {
      rmSync(directory, { recursive: true });
      cpSync(copy, directory, { recursive: true });
    });
    await shows({ "/k/a": "first" });
  }, 90_000);

  test("misses nothing while connections are lost again and again", async () => {
    const cluster = await start();
    const proxy = cleanUp(await startProxy(Number(new URL(cluster.endpoints[0] ?? "").port)), ({ stop }) => stop());
    const direct = await open(cluster.endpoints);
    const { shows } = follow(await open([`http://127.0.0.1:${proxy.port}`], brief));
    const expected: Record<string, string> = {};
    for (let count = 0; count < 60; count++) {
      const key = `/k/${count % 20}`;
      await put(direct, key, String(count));
      expected[key] = String(count);
      if (count % 6 === 0) proxy.cutAll();
      await Bun.sleep(10);
    }
    await shows(expected);

    expect(proxy.connections()).toBeGreaterThan(5);
  }, 60_000);
});
