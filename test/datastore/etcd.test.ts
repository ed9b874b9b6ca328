import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { HistoryGone } from "../../src/datastore/datastore.ts";
import { failureOf, put, readKey, type Subject } from "../../src/datastore/datastore-contract/subject.ts";
import { datastoreContract } from "../../src/datastore/datastore-contract.ts";
import { type EtcdOptions, openCachingEtcd, openEtcd, openVerifyingEtcd } from "../../src/datastore/etcd/etcd.ts";
import { verifiedCommitContract } from "../../src/datastore/etcd/verified-commit-contract.ts";
import { countRequests, type EtcdCluster, etcdctl, hasEtcd, startEtcd } from "../support/etcd.ts";

for (const gateway of ["on", "off"] as const) {
  describe.skipIf(!hasEtcd)(`etcd with its gateway ${gateway}${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
    let cluster: EtcdCluster;
    beforeAll(async () => {
      cluster = await startEtcd({ gateway });
    });
    afterAll(() => cluster.stop());

    const settings = () => ({ source: { kind: "endpoints", endpoints: cluster.endpoints } }) as const;
    const openWith = (options: EtcdOptions) => openEtcd(settings(), options);
    const open = () => openWith({});
    const empty = () => void etcdctl(cluster.endpoints[0] ?? "", ["del", "", "--from-key"]);
    const subject = async (options: EtcdOptions): Promise<Subject> => {
      const endpoint = cluster.endpoints[0] ?? "";
      empty();
      return {
        store: await openWith(options),
        another: open,
        forgetHistory: async () => {
          const { header } = JSON.parse(etcdctl(endpoint, ["get", "x", "-w", "json"]));
          etcdctl(endpoint, ["compact", String(header.revision)]);
        },
        dispose: async () => {},
      };
    };
    datastoreContract(`etcd, gateway ${gateway}`, () => subject({}));
    datastoreContract(`etcd with a cache, gateway ${gateway}`, () => subject({ cachesReads: true }));
    const staying = { cachesReads: true, upgradesToGrpc: true } as const;
    datastoreContract(`etcd for a long-running process, gateway ${gateway}`, () => subject(staying));

    const verifying = (options: EtcdOptions) => async () => {
      empty();
      return openVerifyingEtcd(settings(), options);
    };
    verifiedCommitContract(`etcd, gateway ${gateway}`, verifying({}));
    verifiedCommitContract(`etcd for a long-running process, gateway ${gateway}`, verifying(staying));

    test("reads a past revision, and throws HistoryGone once that revision is compacted", async () => {
      const store = await openCachingEtcd(settings());
      await put(store, "/past", "old");
      const wanted = [{ kind: "key", key: "/past" }] as const;
      const past = await store.read(wanted);
      await put(store, "/past", "new");
      const seen = await store.read(wanted, past.revision);
      const cached = store.lookUp(wanted)?.answers[0]?.[0]?.value;
      const { revision } = await store.read([]);
      etcdctl(cluster.endpoints[0] ?? "", ["compact", revision]);
      const compacted = await failureOf(store.read(wanted, past.revision));
      const ahead = await failureOf(store.read(wanted, String(BigInt(revision) + 1000n)));
      await store.close();

      expect(seen).toEqual(past);
      expect(cached).toBe("new");
      expect(compacted).toBeInstanceOf(HistoryGone);
      expect(ahead).toBeInstanceOf(HistoryGone);
    });

    test("makes one request for a read of many keys, and one for a commit, refused or not, with or without a read before", async () => {
      const store = await openVerifyingEtcd(settings());
      await store.read([]);
      const before = await countRequests(cluster.endpoints[0] ?? "");
      await store.read([
        { kind: "key", key: "/a" },
        { kind: "prefix", prefix: "/b/" },
      ]);
      await store.commit([
        { kind: "put", key: "/a", value: "1" },
        { kind: "put", key: "/b/1", value: "1" },
      ]);
      await store.commit([{ kind: "create", key: "/a", value: "1" }]);
      const assumed = { wanted: [{ kind: "key", key: "/c" }], answers: [[]] } as const;
      for (const value of ["right", "wrong"])
        await store.commitIfUnchanged(assumed, [{ kind: "put", key: "/c", value }]);
      const after = await countRequests(cluster.endpoints[0] ?? "");
      await store.close();

      expect((after["Txn"] ?? 0) - (before["Txn"] ?? 0)).toBe(5);
      expect(after["Range"]).toBe(before["Range"] ?? 0);
    });
  });
}

describe.skipIf(!hasEtcd)(`etcd without space left${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  test("returns the read if it cannot write: there may be nothing to write", async () => {
    const cluster = await startEtcd();
    const [endpoint = ""] = cluster.endpoints;
    const store = await openCachingEtcd({ source: { kind: "endpoints", endpoints: [endpoint] } });
    const wanted = [{ kind: "key", key: "/absent" }] as const;
    const write = [{ kind: "put", key: "/written", value: "x" }] as const;
    const alarm = JSON.stringify({ action: "ACTIVATE", alarm: "NOSPACE" });
    await (await fetch(`${endpoint}/v3/maintenance/alarm`, { method: "POST", body: alarm })).text();
    const failure = await failureOf(store.commit(write));
    const verified = await store.commitIfUnchanged({ wanted, answers: [[]] }, write);
    const snapshot = await store.read(wanted);
    await store.close();
    await cluster.stop();

    expect(failure).toMatchObject({ kind: "datastore-unavailable" });
    expect(verified).toEqual({ ok: false, snapshot });
  });
});

describe.skipIf(!hasEtcd)(`etcd restored from an older copy${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  test("is not confused with its former state, although a record has the cached revision", async () => {
    const cluster = await startEtcd();
    const settings = { source: { kind: "endpoints", endpoints: cluster.endpoints } } as const;
    const restart = async (meanwhile: (directory: string) => void) => {
      cluster.members[0]?.signal("SIGKILL");
      await cluster.members[0]?.restart(meanwhile);
    };
    const copy = join(cluster.directory, "copy");
    const store = await openCachingEtcd(settings);
    await put(store, "/block", "first");
    await restart((directory) => cpSync(directory, copy, { recursive: true }));
    for (const value of ["second", "third"]) await put(store, "/block", value);
    const cached = await readKey(store, "/block");
    await restart((directory) => {
      rmSync(directory, { recursive: true });
      cpSync(copy, directory, { recursive: true });
    });

    const others = await openEtcd(settings);
    await put(others, "/beside", "x");
    await readKey(store, "/beside");
    await put(others, "/block", "theirs");
    const theirs = await readKey(others, "/block");
    const wanted = [{ kind: "key", key: "/block" }] as const;
    const assumed = store.lookUp(wanted) ?? { wanted, answers: [[]] };
    const verified = await store.commitIfUnchanged(assumed, [{ kind: "put", key: "/written", value: "x" }]);
    await Promise.all([store.close(), others.close()]);
    await cluster.stop();

    expect(theirs?.revision).toBe(cached?.revision ?? "");
    expect(verified).toMatchObject({ ok: false, snapshot: { answers: [[theirs]] } });
  });
});
