import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Change, Datastore, Entry, Wanted } from "../../src/datastore/datastore.ts";
import type { CachingDatastore } from "../../src/datastore/etcd/caching-datastore.ts";
import { openCachingEtcd, openEtcd } from "../../src/datastore/etcd/etcd.ts";
import type { AssumedRead } from "../../src/datastore/etcd/verified-commit.ts";
import { type EtcdCluster, etcdctl, hasEtcd, startEtcd } from "../support/etcd.ts";
import { startProxy, type UnreliableProxy } from "../support/unreliable-proxy.ts";

describe.skipIf(!hasEtcd)(`a commit whose response is lost${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  let cluster: EtcdCluster;
  let proxy: UnreliableProxy;
  let store: CachingDatastore;
  let direct: Datastore;
  let seen: Entry;

  const settingsOf = (endpoint: string) => ({ source: { kind: "endpoints", endpoints: [endpoint] } }) as const;
  const readKey = async (key: string) => (await direct.read([{ kind: "key", key }])).answers[0]?.[0];
  const put = (key: string, value: string) => direct.commit([{ kind: "put", key, value }]);

  beforeAll(async () => {
    cluster = await startEtcd();
    const [endpoint = ""] = cluster.endpoints;
    proxy = await startProxy(Number(new URL(endpoint).port));
    store = await openCachingEtcd(settingsOf(`http://127.0.0.1:${proxy.port}`));
    direct = await openEtcd(settingsOf(endpoint));
  });
  afterAll(async () => {
    await Promise.all([store.close(), direct.close()]);
    await proxy.stop();
    await cluster.stop();
  });
  beforeEach(async () => {
    etcdctl(cluster.endpoints[0] ?? "", ["del", "", "--from-key"]);
    await put("/block", "one");
    await put("/beside", "x");
    seen = (await readKey("/block")) as Entry;
    await store.read([]);
  });

  /** Changes as an allocator makes them: a block updated, a handle created. */
  const assignment = (): Change[] => [
    { kind: "update", key: "/block", value: "two", revision: seen.revision },
    { kind: "create", key: "/handle", value: "mine" },
  ];

  test("is reported as done if it took effect", async () => {
    proxy.loseNext("answer");
    const written = await store.commit(assignment());

    expect(written).toEqual({ ok: true, revision: (await readKey("/block"))?.revision ?? "" });
    expect((await readKey("/handle"))?.value).toBe("mine");
  });

  test("is retried exactly once if it never arrived", async () => {
    proxy.loseNext("request");
    const written = await store.commit(assignment());

    expect(written).toEqual({ ok: true, revision: String(BigInt((await direct.read([])).revision)) });
    expect(await versionOf("/block")).toBe(2);
  });

  test("is reported as done if it took effect and others have changed the keys since", async () => {
    let own = "";
    proxy.loseNext("answer", async () => {
      own = (await readKey("/block"))?.revision ?? "";
      await put("/block", "three");
    });

    expect(await store.commit(assignment())).toEqual({ ok: true, revision: own });
    expect((await readKey("/block"))?.value).toBe("three");
  });

  test.each(["request", "answer"] as const)(
    "is reported as done when it was done, though the %s of the watch that tells is lost, too",
    async (loss) => {
      const text = loss === "request" ? "/v3/watch" : '"created":true';
      proxy.loseNext("answer", async () => proxy.loseNext(loss, undefined, text));
      const written = await store.commit(assignment());

      expect(written).toEqual({ ok: true, revision: (await readKey("/block"))?.revision ?? "" });
    },
  );

  test("is reported as refused if it never arrived and another was faster", async () => {
    proxy.loseNext("request", () => put("/block", "theirs"));

    expect(await store.commit(assignment())).toEqual({ ok: false, reason: "stale", key: "/block" });
    expect(await readKey("/handle")).toBeUndefined();
  });

  test("is not confused with another's commit that wrote the same handle, but another block", async () => {
    proxy.loseNext("request", () =>
      direct.commit([
        { kind: "put", key: "/block", value: "theirs" },
        { kind: "put", key: "/handle", value: "mine" },
      ]),
    );

    expect(await store.commit(assignment())).toMatchObject({ ok: false });
  });

  test("distinguishes its own delete from another's", async () => {
    const change: Change = { kind: "delete", key: "/block", revision: seen.revision };
    proxy.loseNext("answer");
    expect((await store.commit([change])).ok).toBe(true);

    await put("/block", "again");
    expect(await store.commit([change])).toEqual({ ok: false, reason: "stale", key: "/block" });
  });

  test("is found by the revision that created the keys if it only creates", async () => {
    let own = "";
    proxy.loseNext("answer", async () => {
      own = (await readKey("/new"))?.revision ?? "";
      await put("/new", "changed since");
    });

    expect(await store.commit([{ kind: "create", key: "/new", value: "mine" }])).toEqual({ ok: true, revision: own });
  });

  test("is not repeated if it took effect and writes unconditionally", async () => {
    proxy.loseNext("answer");
    await store.commit([{ kind: "put", key: "/block", value: "put" }]);

    expect(await versionOf("/block")).toBe(2);
  });

  test("is reported as refused if the history is compacted", async () => {
    proxy.loseNext("answer", async () => {
      await put("/block", "three");
      await put("/block", "four");
      etcdctl(cluster.endpoints[0] ?? "", ["compact", (await direct.read([])).revision]);
    });

    expect(await store.commit(assignment())).toMatchObject({ ok: false });
  });

  test("is reported as refused, at once, if only its own deletion is compacted", async () => {
    await put("/block", "last");
    const revision = (await readKey("/block"))?.revision ?? "";
    proxy.loseNext("answer", async () => {
      etcdctl(cluster.endpoints[0] ?? "", ["compact", (await direct.read([])).revision]);
    });
    const written = store.commit([{ kind: "delete", key: "/block", revision }]);

    expect(await written).toEqual({ ok: false, reason: "missing", key: "/block" });
  }, 3_000);

  describe("and that verifies an assumed read", () => {
    const POOLS: Wanted = { kind: "prefix", prefix: "/pools/" };
    const wanted = [{ kind: "key", key: "/block" }, { kind: "key", key: "/handle" }, POOLS] as const;
    let assumed: AssumedRead;
    beforeEach(async () => {
      await put("/pools/a", "x");
      assumed = { wanted, answers: (await store.read(wanted)).answers };
    });

    test("is reported as done if it took effect, although others have changed the keys since", async () => {
      let own = "";
      proxy.loseNext("answer", async () => {
        own = (await readKey("/block"))?.revision ?? "";
        await put("/block", "three");
        await put("/pools/b", "x");
      });

      expect(await store.commitIfUnchanged(assumed, assignment())).toEqual({ ok: true, revision: own });
      expect((await readKey("/handle"))?.value).toBe("mine");
    });

    test("is retried exactly once if it never arrived", async () => {
      proxy.loseNext("request");

      expect((await store.commitIfUnchanged(assumed, assignment())).ok).toBe(true);
      expect(await versionOf("/block")).toBe(2);
    });

    const foreign: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["what it writes", () => put("/block", "theirs")],
      ["what it only compares", () => put("/pools/b", "x")],
    ];
    test.each(foreign)("returns the read if it never arrived and another changed %s", async (_, act) => {
      proxy.loseNext("request", act);

      expect(await store.commitIfUnchanged(assumed, assignment())).toEqual({
        ok: false,
        snapshot: await direct.read(wanted),
      });
      expect(await readKey("/handle")).toBeUndefined();
    });

    test("returns the read if it took effect and the history is compacted", async () => {
      proxy.loseNext("answer", async () => {
        for (const value of ["three", "four"]) await put("/block", value);
        etcdctl(cluster.endpoints[0] ?? "", ["compact", (await direct.read([])).revision]);
      });

      expect(await store.commitIfUnchanged(assumed, assignment())).toEqual({
        ok: false,
        snapshot: await direct.read(wanted),
      });
    });

    test("clears the cache", async () => {
      expect(store.lookUp([POOLS])).toBeDefined();
      proxy.loseNext("answer");
      await store.commit([{ kind: "create", key: "/new", value: "mine" }]);

      expect(store.lookUp([POOLS])).toBeUndefined();
    });
  });

  /** How often the key was written since it was created. */
  async function versionOf(key: string): Promise<number> {
    const answer = JSON.parse(etcdctl(cluster.endpoints[0] ?? "", ["get", key, "-w", "json"]));
    return answer.kvs[0].version;
  }
});

describe.skipIf(!hasEtcd)(
  `increments over gRPC whose responses are lost${hasEtcd ? "" : " (skipped: no etcd)"}`,
  () => {
    test("happen once each", async () => {
      const cluster = await startEtcd({ gateway: "off" });
      const proxy = await startProxy(Number(new URL(cluster.endpoints[0] ?? "").port));
      const store = await openEtcd({ source: { kind: "endpoints", endpoints: [`http://127.0.0.1:${proxy.port}`] } });
      await store.commit([{ kind: "create", key: "/counter", value: "0" }]);
      for (let count = 0; count < 10; count++) {
        const entry = (await store.read([{ kind: "key", key: "/counter" }])).answers[0]?.[0] as Entry;
        proxy.loseNext(count % 2 === 0 ? "answer" : "request");
        const value = String(Number(entry.value) + 1);
        const written = await store.commit([{ kind: "update", key: "/counter", value, revision: entry.revision }]);
        expect(written.ok).toBe(true);
      }
      const answer = JSON.parse(etcdctl(cluster.endpoints[0] ?? "", ["get", "/counter", "-w", "json"]));
      await store.close();
      await proxy.stop();
      await cluster.stop();

      expect(answer.kvs[0]).toMatchObject({ value: Buffer.from("10").toString("base64"), version: 11 });
    });
  },
);
