import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { failureOf, put, readKey, type Subject } from "../../src/datastore/contract/subject.ts";
import { datastoreContract } from "../../src/datastore/contract.ts";
import { HistoryGone } from "../../src/datastore/datastore.ts";
import { type EtcdOptions, openEtcd, openProvingEtcd, openRememberingEtcd } from "../../src/datastore/etcd/etcd.ts";
import { provingContract } from "../../src/datastore/etcd/proving-contract.ts";
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
    datastoreContract(`etcd that remembers, gateway ${gateway}`, () => subject({ remembers: true }));
    const staying = { remembers: true, grpcTakesOver: true } as const;
    datastoreContract(`etcd for a process that stays, gateway ${gateway}`, () => subject(staying));

    const proving = (options: EtcdOptions) => async () => {
      empty();
      return openProvingEtcd(settings(), options);
    };
    provingContract(`etcd, gateway ${gateway}`, proving({}));
    provingContract(`etcd for a process that stays, gateway ${gateway}`, proving(staying));

    test("reads a past moment, and throws HistoryGone once that moment is compacted", async () => {
      const store = await openRememberingEtcd(settings());
      await put(store, "/past", "old");
      const wanted = [{ kind: "key", key: "/past" }] as const;
      const past = await store.read(wanted);
      await put(store, "/past", "new");
      const seen = await store.read(wanted, past.revision);
      const recalled = store.recall(wanted)?.answers[0]?.[0]?.value;
      const { revision } = await store.read([]);
      etcdctl(cluster.endpoints[0] ?? "", ["compact", revision]);
      const compacted = await failureOf(store.read(wanted, past.revision));
      const ahead = await failureOf(store.read(wanted, String(BigInt(revision) + 1000n)));
      await store.close();

      expect(seen).toEqual(past);
      expect(recalled).toBe("new");
      expect(compacted).toBeInstanceOf(HistoryGone);
      expect(ahead).toBeInstanceOf(HistoryGone);
    });

    test("makes one request for a read of many, and one for a commit, refused or not, guessed or not", async () => {
      const store = await openProvingEtcd(settings());
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
      const guess = { wanted: [{ kind: "key", key: "/c" }], answers: [[]] } as const;
      for (const value of ["right", "wrong"]) await store.commitIfUnchanged(guess, [{ kind: "put", key: "/c", value }]);
      const after = await countRequests(cluster.endpoints[0] ?? "");
      await store.close();

      expect((after["Txn"] ?? 0) - (before["Txn"] ?? 0)).toBe(5);
      expect(after["Range"]).toBe(before["Range"] ?? 0);
    });
  });
}

describe.skipIf(!hasEtcd)(`etcd without space${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  test("answers the read to a guess that it will not write: there may be nothing to write", async () => {
    const cluster = await startEtcd();
    const [endpoint = ""] = cluster.endpoints;
    const store = await openRememberingEtcd({ source: { kind: "endpoints", endpoints: [endpoint] } });
    const wanted = [{ kind: "key", key: "/absent" }] as const;
    const write = [{ kind: "put", key: "/written", value: "x" }] as const;
    const alarm = JSON.stringify({ action: "ACTIVATE", alarm: "NOSPACE" });
    await (await fetch(`${endpoint}/v3/maintenance/alarm`, { method: "POST", body: alarm })).text();
    const failure = await failureOf(store.commit(write));
    const proven = await store.commitIfUnchanged({ wanted, answers: [[]] }, write);
    const snapshot = await store.read(wanted);
    await store.close();
    await cluster.stop();

    expect(failure).toMatchObject({ kind: "datastore-unavailable" });
    expect(proven).toEqual({ ok: false, snapshot });
  });
});

describe.skipIf(!hasEtcd)(`etcd restored from an older copy${hasEtcd ? "" : " (skipped: no etcd)"}`, () => {
  test("is not taken for what it was, though a record has the very revision that was remembered", async () => {
    const cluster = await startEtcd();
    const settings = { source: { kind: "endpoints", endpoints: cluster.endpoints } } as const;
    const restart = async (meanwhile: (directory: string) => void) => {
      cluster.members[0]?.signal("SIGKILL");
      await cluster.members[0]?.restart(meanwhile);
    };
    const copy = join(cluster.directory, "copy");
    const store = await openRememberingEtcd(settings);
    await put(store, "/block", "first");
    await restart((directory) => cpSync(directory, copy, { recursive: true }));
    for (const value of ["second", "third"]) await put(store, "/block", value);
    const remembered = await readKey(store, "/block");
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
    const guess = store.recall(wanted) ?? { wanted, answers: [[]] };
    const proven = await store.commitIfUnchanged(guess, [{ kind: "put", key: "/written", value: "x" }]);
    await Promise.all([store.close(), others.close()]);
    await cluster.stop();

    expect(theirs?.revision).toBe(remembered?.revision ?? "");
    expect(proven).toMatchObject({ ok: false, snapshot: { answers: [[theirs]] } });
  });
});
