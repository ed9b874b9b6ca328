/** How kept addresses end: a collector on a cluster in memory, whose StatefulSets, pods and nodes come and go. */
import { describe, expect, test } from "bun:test";
import { GRACE, KEEP_SECONDS, LeakingCluster } from "../../../test/support/leaking-cluster.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { requireOk } from "../../kube/require-ok.ts";

/** StatefulSet red/db with `replicas` pods on n1, which use addresses of both families. */
async function clusterWith(replicas: number) {
  const cluster = await LeakingCluster.open();
  const [collector] = cluster.collectors;
  if (collector === undefined) throw new Error("there is no collector");
  const pods = Array.from({ length: replicas }, (_, ordinal) => `db-${ordinal}`);
  cluster.sets.set("red/db", { start: 0, replicas });
  for (const pod of pods) {
    cluster.create(pod, "n1");
    await cluster.addKept(pod);
    cluster.report(pod);
  }
  const look = async () => {
    await collector.catchUp();
    await collector.look();
  };
  return {
    ...{ cluster, collector, look },
    endAll: async () => {
      for (const pod of pods) await cluster.endKept(pod);
    },
    /** Looks as often as the running collector does. */
    lookFor: async (milliseconds: number) => {
      for (let passed = 0; passed <= milliseconds; passed += GRACE / 2) {
        await look();
        cluster.pass(GRACE / 2);
      }
    },
    waiting: async () => (await cluster.kept()).filter((text) => text.endsWith(" waits")).length,
  };
}

describe("an address that waits for a pod", () => {
  test("is freed once its StatefulSet has been gone for the grace period", async () => {
    const { cluster, collector, endAll, lookFor, waiting } = await clusterWith(1);
    const before = await cluster.kept();
    await endAll();
    cluster.sets.delete("red/db");
    await lookFor(GRACE / 2);
    expect(await waiting()).toBe(2);

    await lookFor(0);
    expect(await cluster.kept()).toEqual([]);
    expect(collector.state.freedKept).toBe(2);
    const freed = (address: string) =>
      `leaks: freed ${address} (kept for pod red/db-0): StatefulSet red/db does not exist`;
    expect(collector.logged).toEqual(before.map((text) => freed(text.slice(0, text.indexOf(" ")))));
    expect(findProblems(await readAllRecords(cluster.store))).toEqual([]);
  });

  test("is not freed if a StatefulSet of the same name is there again within the grace period", async () => {
    const { cluster, endAll, lookFor, waiting } = await clusterWith(1);
    await endAll();
    for (let again = 0; again < 3; again += 1) {
      cluster.sets.delete("red/db");
      await lookFor(GRACE / 2);
      cluster.sets.set("red/db", { start: 0, replicas: 1 });
      await lookFor(0);
    }

    expect(await waiting()).toBe(2);
  });

  test("is freed if its StatefulSet was made smaller; those of the others wait on", async () => {
    const { cluster, endAll, lookFor } = await clusterWith(3);
    const before = await cluster.kept();
    await endAll();
    cluster.sets.set("red/db", { start: 0, replicas: 1 });
    await lookFor(GRACE);

    const addressOf = (text = "") => text.slice(0, text.indexOf(" "));
    const own = before.filter((text) => text.endsWith(" c1")).map((text) => `${addressOf(text)} waits`);
    expect(await cluster.kept()).toEqual(own);
  });

  test("is freed when its keepFor is over, although its StatefulSet exists, but not while its pod starts", async () => {
    const { cluster, look, lookFor, endAll, waiting } = await clusterWith(2);
    await endAll();
    cluster.create("db-1", "n2");
    cluster.pass(KEEP_SECONDS * 1000 - 1000);
    await look();
    expect(await waiting()).toBe(4);
    cluster.pass(1000);
    await lookFor(GRACE);

    expect(await waiting()).toBe(2);
    await cluster.addKept("db-1");
    expect((await cluster.kept()).map((text) => text.slice(text.indexOf(" ") + 1))).toEqual(["c3", "c3"]);
  });

  test("is not freed while any pod of its virtual machine starts, also if the controllers have not heard of it", async () => {
    const { cluster, collector, lookFor, waiting } = await clusterWith(0);
    cluster.create("launcher-desktop-a", "n1");
    await cluster.addKept("launcher-desktop-a");
    await cluster.endKept("launcher-desktop-a");
    cluster.create("launcher-desktop-b", "n2");
    cluster.pass(KEEP_SECONDS * 1000);
    await lookFor(GRACE);
    expect(await waiting()).toBe(2);

    cluster.pods.delete("launcher-desktop-b");
    await collector.catchUp();
    cluster.create("launcher-desktop-c", "n2");
    await collector.look();
    expect(await waiting()).toBe(2);
    cluster.pods.delete("launcher-desktop-c");
    await lookFor(GRACE);
    expect(await cluster.kept()).toEqual([]);
  });

  test("is not freed if its pod takes it between the last question and the write", async () => {
    const { cluster, collector, look, lookFor, endAll } = await clusterWith(1);
    await endAll();
    cluster.pass(KEEP_SECONDS * 1000);
    await lookFor(GRACE / 2);
    collector.beforeCommit = async () => {
      collector.beforeCommit = async () => {};
      cluster.create("db-0", "n2");
      await cluster.addKept("db-0");
    };
    await look();
    await look();

    expect((await cluster.kept()).map((text) => text.slice(text.indexOf(" ") + 1))).toEqual(["c2", "c2"]);
  });

  test("is held if it is one of many", async () => {
    const { cluster, collector, lookFor, endAll, waiting } = await clusterWith(12);
    await endAll();
    cluster.sets.delete("red/db");
    await lookFor(GRACE);
    expect([await waiting(), collector.state.heldRemovals]).toEqual([24, 24]);
    expect(collector.logged).toEqual([
      expect.stringContaining("24 of 24 addresses that wait for a pod are not removed"),
    ]);

    await lookFor(GRACE);
    expect([await waiting(), collector.state.heldRemovals]).toEqual([0, 0]);
  });

  test("waits for its keepFor if StatefulSets may not be read, which is logged once", async () => {
    const { cluster, collector, lookFor, endAll, waiting } = await clusterWith(1);
    const reason = { kind: "Status", reason: "Forbidden", message: "statefulsets is forbidden" };
    const request = { method: "GET", path: "/apis/apps/v1/namespaces/red/statefulsets/db" } as const;
    try {
      requireOk({ status: 403, text: JSON.stringify(reason) } as never, request);
    } catch (failure) {
      cluster.refusal = failure as Error;
    }
    await endAll();
    cluster.sets.delete("red/db");
    await lookFor(3 * GRACE);
    expect(await waiting()).toBe(2);
    expect(collector.logged).toEqual([expect.stringContaining('resources: ["statefulsets"]')]);

    cluster.pass(KEEP_SECONDS * 1000);
    await lookFor(GRACE);
    expect(await waiting()).toBe(0);
  });
});

describe("an address that waits for a pod of another owner", () => {
  async function clusterOf(owner: string) {
    const cluster = await LeakingCluster.open();
    const [collector] = cluster.collectors;
    if (collector === undefined) throw new Error("there is no collector");
    cluster.create("one", "n1");
    await cluster.addKept("one", owner);
    await cluster.endKept("one");
    return {
      cluster,
      logged: collector.logged,
      lookFor: async (milliseconds: number) => {
        for (let passed = 0; passed <= milliseconds; passed += GRACE / 2) {
          await collector.catchUp();
          await collector.look();
          cluster.pass(GRACE / 2);
        }
      },
      count: async () => (await cluster.kept()).length,
    };
  }

  test("is freed once its virtual machine has been gone for the grace period, stopped or not", async () => {
    const { cluster, lookFor, count, logged } = await clusterOf("VirtualMachineInstance/desktop");
    cluster.machines.add("red/desktop");
    await lookFor(2 * GRACE);
    expect(await count()).toBe(2);
    cluster.machines.delete("red/desktop");
    await lookFor(GRACE);

    expect(await count()).toBe(0);
    expect(logged[0]).toContain("VirtualMachineInstance red/desktop does not exist");
  });

  test("is freed once its namespace has been gone for the grace period", async () => {
    const { cluster, lookFor, count, logged } = await clusterOf("Workflow/build");
    await lookFor(2 * GRACE);
    expect(await count()).toBe(2);
    cluster.namespaces.clear();
    await lookFor(GRACE);

    expect(await count()).toBe(0);
    expect(logged[0]).toContain("namespace red does not exist");
  });
});

describe("an address that a pod uses", () => {
  test("is not asked about: no request for StatefulSets while nothing waits", async () => {
    const { cluster, lookFor, endAll } = await clusterWith(1);
    await lookFor(2 * GRACE);
    expect(cluster.askedForSets).toBe(0);

    await endAll();
    await lookFor(0);
    expect(cluster.askedForSets).toBe(1);
  });

  test("stays in use on a node that exists, however long its pod, its StatefulSet and the kubelet are gone", async () => {
    const { cluster, lookFor } = await clusterWith(1);
    const before = await cluster.kept();
    cluster.forget("db-0");
    cluster.sets.delete("red/db");
    cluster.create("db-0", "n2");
    await lookFor(3 * KEEP_SECONDS * 1000);

    expect(await cluster.kept()).toEqual(before);
  });

  test.each([
    ["does not exist", undefined],
    ["starts on another one", "n2"],
    ["is not scheduled", ""],
  ])("waits when its node is gone and its pod %s", async (_, node) => {
    const { cluster, look, waiting } = await clusterWith(1);
    await cluster.loseNode("n1");
    if (node !== undefined) cluster.pods.set("db-0", { node, addresses: [] });
    await look();
    await look();
    expect(await waiting()).toBe(2);
    const before = await cluster.kept();

    cluster.pods.set("db-0", { node: "n2", addresses: [] });
    await cluster.addKept("db-0");
    expect(await cluster.kept()).toEqual(before.map((text) => text.replace("waits", "c2")));
  });

  test("stays in use if its node is gone and its pod is still the same", async () => {
    const { cluster, look } = await clusterWith(1);
    const before = await cluster.kept();
    const pod = cluster.pods.get("db-0");
    await cluster.loseNode("n1");
    if (pod !== undefined) cluster.pods.set("db-0", pod);
    await look();

    expect(await cluster.kept()).toEqual(before);
  });
});
