import { afterEach, describe, expect, test } from "bun:test";
import { addressedNodeChange, seed } from "../../test/support/ipam.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { storeAround } from "../../test/support/wrapped-store.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { openMemory } from "../datastore/memory/memory.ts";
import { OtherCluster, recordCluster } from "../ipam/confirm-cluster.ts";
import { respectingLock } from "../ipam/respecting-lock.ts";
import { clusterInformation } from "../model/cluster-information.ts";
import { resourceKey } from "../model/keys.ts";
import { ClusterGate } from "./cluster-gate.ts";

const KEY = resourceKey("clusterinformations", { name: "default" });
let stop = new AbortController();
afterEach(() => {
  stop.abort();
  stop = new AbortController();
});

interface Plan {
  readonly recorded?: string;
  /** Of the nodes of the cluster. */
  readonly address?: string;
  readonly readClusterUid?: () => Promise<string>;
  /** The datastore as the gate reaches it. */
  readonly around?: (store: Datastore) => Datastore;
}

/** A datastore with the node of the first list, and a cluster with those of the second. */
async function gateBetween(
  records: readonly string[],
  nodes: readonly string[],
  { recorded, address = "10.1.0.1", readClusterUid = async () => "this", around = (store) => store }: Plan = {},
) {
  const [store, orchestrator] = [openMemory(), openMemory()];
  const spec = recorded === undefined ? {} : { kubeSystemUID: recorded };
  const value = clusterInformation.write(clusterInformation.make({ name: "default" }, spec));
  await seed(store, { kind: "put", key: KEY, value }, ...records.map((name) => addressedNodeChange(name, "10.1.0.1")));
  await seed(orchestrator, ...nodes.map((name) => addressedNodeChange(name, address)));
  const logged: string[] = [];
  const gate = new ClusterGate({
    sides: { store: around(store), orchestrator, hasNodeRecords: true, readClusterUid },
    leadership: { isLeading: () => true, whenLeading: async () => {} },
    // Each comparison follows the last one at once.
    wait: () => new Promise((resolve) => setImmediate(resolve)),
    log: (message) => void logged.push(message),
  });
  const ending = new AbortController();
  const ended = gate.run(ending.signal);
  const uid = async () => {
    const entry = (await store.read([{ kind: "key", key: KEY }])).answers[0]?.[0];
    return clusterInformation.read(entry?.value ?? "", KEY).spec.kubeSystemUID;
  };
  const end = async () => {
    ending.abort();
    await ended;
  };
  return { gate, store, logged, uid, end };
}

describe("the gate of the controllers", () => {
  test("opens for the cluster with the nodes of the datastore, and records it", async () => {
    const { gate, uid, end } = await gateBetween(["n1"], ["n1"]);
    await gate.whenLeading(stop.signal);

    expect([gate.isLeading(), gate.mismatch, await uid()]).toEqual([true, undefined, "this"]);
    await end();
  });

  test("knows whether the datastore is locked, as of its last look", async () => {
    const { gate, store, end } = await gateBetween(["n1"], ["n1"], { recorded: "this" });
    await gate.whenLeading(stop.signal);
    expect(gate.isDatastoreLocked).toBe(false);
    const lock = async (datastoreReady: boolean) => {
      const value = clusterInformation.write(
        clusterInformation.make({ name: "default" }, { kubeSystemUID: "this", datastoreReady }),
      );
      await seed(store, { kind: "put", key: KEY, value });
    };
    await lock(false);
    await pollUntil(() => gate.isDatastoreLocked, "the lock");
    await lock(true);
    await pollUntil(() => !gate.isDatastoreLocked, "its end");
    await end();
  });

  test("stays closed for another cluster, says so once, and opens when an administrator confirms the move", async () => {
    const { gate, store, logged, end } = await gateBetween(["n1"], ["n1"], { recorded: "another" });
    await pollUntil(() => gate.mismatch !== undefined, "the mismatch");
    expect(gate.isLeading()).toBe(false);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain('it is that of cluster "another"');
    expect(logged[0]).toContain("datastore adopt-cluster");

    await recordCluster(store, "this");
    await gate.whenLeading(stop.signal);
    expect([gate.isLeading(), gate.mismatch]).toEqual([true, undefined]);
    await end();
  });

  test("stays closed for a cluster with nodes of the same names and other addresses, until an agent registers its own", async () => {
    const { gate, store, logged, uid, end } = await gateBetween(["n1"], ["n1"], { address: "10.2.0.1" });
    await pollUntil(() => gate.mismatch !== undefined, "the mismatch");
    expect([gate.isLeading(), await uid(), logged.length]).toEqual([false, undefined, 1]);
    expect(logged[0]).toContain("datastore adopt-cluster");

    await seed(store, addressedNodeChange("n1", "10.2.0.1"));
    await gate.whenLeading(stop.signal);
    await pollUntil(async () => (await uid()) === "this", "the record");
    await end();
  });

  test("says why it was never opened, until it is", async () => {
    let isAllowed = false;
    const readClusterUid = async () => {
      if (isAllowed) return "this";
      throw new Error("namespaces is forbidden");
    };
    const { gate, logged, end } = await gateBetween(["n1"], ["n1"], { readClusterUid });
    expect(gate.unconfirmed).toContain("not compared");
    await pollUntil(() => gate.unconfirmed?.includes("forbidden") ?? false, "the reason");
    expect([gate.isLeading(), gate.mismatch, logged.length]).toEqual([false, undefined, 1]);

    isAllowed = true;
    await gate.whenLeading(stop.signal);
    expect(gate.unconfirmed).toBeUndefined();
    await end();
  });

  test("opens if the nodes coincide and only the recording is refused, says so once, and records it later", async () => {
    let isAllowed = false;
    const around = (store: Datastore) =>
      storeAround(store, {
        commit: (changes) => {
          if (isAllowed) return store.commit(changes);
          throw new Error("clusterinformations is forbidden");
        },
      });
    const { gate, logged, uid, end } = await gateBetween(["n1"], ["n1"], { around });
    await gate.whenLeading(stop.signal);
    await new Promise((resolve) => setImmediate(resolve));
    expect([gate.unconfirmed, await uid()]).toEqual([undefined, undefined]);
    expect(logged).toEqual([expect.stringContaining("clusterinformations is forbidden")]);

    isAllowed = true;
    await pollUntil(async () => (await uid()) === "this", "the record");
    expect(logged).toHaveLength(1);
    await end();
  });

  test("leaves no listener behind, however often it is asked", async () => {
    const { gate, end } = await gateBetween(["n1"], ["n1"]);
    let listeners = 0;
    const { signal } = stop;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners += 1;
      add(...given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...given);
    };
    await gate.whenLeading(signal);
    for (let call = 0; call < 10_000; call += 1) await gate.whenLeading(signal);

    expect(listeners).toBe(0);
    await end();
  });

  test("refuses a commit to a datastore that has become another cluster's since", async () => {
    const { gate, store, end } = await gateBetween(["n1"], ["n1"]);
    await gate.whenLeading(stop.signal);
    await end();
    const guarded = respectingLock(store, (entry) => gate.requireSame(entry));
    const change = [{ kind: "put", key: resourceKey("nodes", { name: "n2" }), value: "{}" }] as const;
    expect((await guarded.commit(change)).ok).toBe(true);

    await recordCluster(store, "another");
    expect(await rejectionOf(() => guarded.commit(change))).toBeInstanceOf(OtherCluster);
  });
});
