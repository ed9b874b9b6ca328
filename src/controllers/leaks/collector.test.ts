/**
 * Random histories of a cluster: pods and nodes come and go, calls of the plugin are lost, two collectors see old states,
 * crash between writes and start again, hosts search for leaks of their own. They never free an address in use, and free
 * every leaked one.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { seed } from "../../../test/support/ipam.ts";
import { GRACE, LeakingCluster, NODES } from "../../../test/support/leaking-cluster.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { readAllRecords } from "../../ipam/all-records.ts";
import { DatastoreLocked } from "../../ipam/cluster.ts";
import { findProblems } from "../../ipam/invariants.ts";
import { readNodeRecords } from "../../ipam/leaks/node-records.ts";
import { releaseLeaks } from "../../ipam/leaks/release.ts";
import { REST_MILLISECONDS } from "../../ipam/rest.ts";
import { clusterInformation } from "../../model/cluster-information.ts";
import { writeHandle } from "../../model/ipam-handle.ts";
import { ALL_BORROWED_PREFIX, handleKey, resourceKey } from "../../model/keys.ts";
import { NODE } from "../../model/kinds.ts";
import { kubeControllersConfiguration } from "../../model/kube-controllers-configuration.ts";
import { CONFIGURATION_KEY } from "../configuration.ts";
import { REMOVALS_ALLOWED_UNTIL } from "../removals.ts";

type Step = readonly [text: string, run: (cluster: LeakingCluster) => Promise<void> | void];

const pod = fc.constantFrom("a", "b");
const node = fc.constantFrom(...NODES);
const withDel = fc.boolean();
const which = fc.constantFrom(0, 1);
const crash = fc.option(fc.record({ at: fc.integer({ min: 1, max: 6 }), isWritten: fc.boolean() }), {
  freq: 2,
  nil: undefined,
});

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(pod, node).map(([name, at]): Step => [`create ${name} on ${at}`, (c) => c.create(name, at)]),
  },
  { weight: 4, arbitrary: pod.map((name): Step => [`add ${name}`, (c) => c.add(name)]) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(pod, fc.constantFrom(1, 2))
      .map(([name, count]): Step => [`report ${count} of ${name}`, (c) => c.report(name, count)]),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(pod, withDel)
      .map(([name, del]): Step => [`remove ${name}, DEL ${del}`, (c) => c.remove(name, del)]),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(pod, withDel).map(([name, del]): Step => [`end ${name}, DEL ${del}`, (c) => c.end(name, del)]),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(pod, node).map(([name, at]): Step => [`move ${name} to ${at}`, (c) => c.move(name, at)]),
  },
  { weight: 1, arbitrary: pod.map((name): Step => [`evict ${name}`, (c) => c.evict(name)]) },
  { weight: 2, arbitrary: pod.map((name): Step => [`forget ${name}`, (c) => c.forget(name)]) },
  { weight: 1, arbitrary: fc.constant<Step>(["stop what is forgotten", (c) => c.stopForgotten()]) },
  { weight: 2, arbitrary: node.map((at): Step => [`search of host ${at}`, (c) => c.searchHost(at)]) },
  { weight: 1, arbitrary: node.map((at): Step => [`lose ${at}`, (c) => c.loseNode(at)]) },
  { weight: 1, arbitrary: node.map((at): Step => [`return ${at}`, (c) => c.returnNode(at)]) },
  { weight: 4, arbitrary: which.map((index): Step => [`${index} catches up`, (c) => c.collectors[index]?.catchUp()]) },
  {
    weight: 5,
    arbitrary: fc
      .tuple(which, crash)
      .map(([index, at]): Step => [`${index} looks${at ? ", and crashes" : ""}`, (c) => c.collectors[index]?.look(at)]),
  },
  // Its copy stays as it is for some looks.
  { weight: 4, arbitrary: which.map((index): Step => [`${index} looks again and again`, (c) => lookOften(c, index)]) },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom(1, 4, 7, 8, 16)
      .map((minutes): Step => [`${minutes} minutes`, (c) => c.pass(minutes * 60_000)]),
  },
);

async function lookOften(cluster: LeakingCluster, index: number): Promise<void> {
  for (const minutes of [0, 8, 7]) {
    if (minutes > 0) cluster.pass(minutes * 60_000);
    await cluster.collectors[index]?.look();
  }
}

/** One pod `a` on node n1 with a sandbox, whose addresses are reported. */
async function clusterWithPod() {
  const cluster = await LeakingCluster.open();
  const [first] = cluster.collectors;
  if (first === undefined) throw new Error("there is no collector");
  cluster.create("a", "n1");
  await cluster.add("a");
  cluster.report("a");
  return { cluster, collector: first };
}

/** Looks as often as the running collector does, for the grace period. */
async function waitForGrace({ cluster, collector }: Awaited<ReturnType<typeof clusterWithPod>>): Promise<void> {
  for (let look = 0; look < 2; look += 1) {
    await collector.catchUp();
    await collector.look();
    cluster.pass(GRACE / 2);
  }
  await collector.catchUp();
}

/** Until another node may have the addresses that were released. */
async function letRest({ cluster, collector }: Awaited<ReturnType<typeof clusterWithPod>>): Promise<void> {
  cluster.pass(REST_MILLISECONDS);
  await collector.catchUp();
  await collector.look();
}

describe("the leak collection", () => {
  test("judges again by the live state before it releases anything", async () => {
    const site = await clusterWithPod();
    const { cluster, collector } = site;
    cluster.pods.set("a", { node: "n1", addresses: ["10.9.9.9"] });
    const [sandbox] = cluster.sandboxes;
    // The copy of the collector shows an older sandbox of the pod.
    for (let look = 0; look < 3; look += 1) {
      if (look === 0) await collector.catchUp();
      if (look === 2) cluster.pods.set("a", { node: "n1", addresses: sandbox?.addresses ?? [] });
      await collector.look();
      cluster.now += GRACE / 2;
    }

    expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());
  });

  test("keeps the addresses of containers that run on a node that exists, however long their pod is gone", async () => {
    const site = await clusterWithPod();
    const { cluster, collector } = site;
    cluster.create("evicted", "n2");
    await cluster.add("evicted");
    cluster.forget("a");
    cluster.pods.set("evicted", { node: "n2", addresses: [], isEvicted: true });
    for (let grace = 1; grace <= 3; grace += 1) await waitForGrace(site);
    await collector.look();

    expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());
    const overdue = new Map([
      ["n1", 2],
      ["n2", 2],
    ]);
    expect(collector.state).toMatchObject({ releasedAddresses: 0, candidates: 2, overdue });
  });

  test.each<[string, (cluster: LeakingCluster) => Promise<void> | void]>([
    ["whose pod was deleted without a DEL", (cluster) => cluster.remove("a", false)],
    ["of a pod that was evicted, and has ended", (cluster) => cluster.evict("a")],
    ["of a pod that is on another node now", (cluster) => cluster.move("a", "n2")],
    ["of the former sandbox of a pod", (cluster) => cluster.add("a")],
    [
      "of a pod deleted by force, once its node is back",
      (cluster) => {
        cluster.forget("a");
        cluster.stopForgotten();
      },
    ],
  ])("leaves to the host the addresses %s", async (_, lose) => {
    const site = await clusterWithPod();
    const { cluster, collector } = site;
    const before = await cluster.recorded();
    await lose(cluster);
    await waitForGrace(site);
    await collector.look();
    expect(before.isSubsetOf(await cluster.recorded())).toBe(true);

    await cluster.searchHost("n1");
    expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());
    await collector.catchUp();
    await collector.look();
    expect(collector.state).toMatchObject({ candidates: 0, overdue: new Map() });
  });

  test("releases addresses and claims of a node that is gone at once, and deletes its blocks when the addresses have rested", async () => {
    const { cluster, collector } = await clusterWithPod();
    await cluster.loseNode("n1");
    for (let look = 0; look < 2; look += 1) {
      await collector.catchUp();
      await collector.look();
    }
    expect((await cluster.recorded()).size).toBe(0);
    const resting = await readAllRecords(cluster.store);
    expect(resting.blocks.map(({ affinity }) => affinity)).toEqual([undefined, undefined]);
    expect([resting.affinities, findProblems(resting)]).toEqual([[], []]);
    await letRest({ cluster, collector });

    const world = await readAllRecords(cluster.store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
  });

  test.each(["all changes", "one object"] as const)(
    "forgets from which blocks a node borrowed that is gone, and had none of its own (%s)",
    async (atomicity) => {
      const cluster = await LeakingCluster.open(atomicity);
      const [collector] = cluster.collectors;
      const borrowings = () => readAllEntries(cluster.store, ALL_BORROWED_PREFIX);
      // All blocks are of the first node then.
      for (let pod = 0; pod < 13; pod += 1) {
        cluster.create(`pod-${pod}`, "n1");
        await cluster.add(`pod-${pod}`);
      }
      cluster.create("borrows", "n2");
      await cluster.add("borrows");
      expect(await borrowings()).toHaveLength(2);

      await cluster.loseNode("n2");
      for (let look = 0; look < 2; look += 1) {
        await collector?.catchUp();
        await collector?.look();
      }
      expect(await borrowings()).toEqual([]);
      expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());
      expect(findProblems(await readAllRecords(cluster.store))).toEqual([]);
    },
  );

  describe("holds the release of most addresses at once", () => {
    async function clusterWithoutMostAddresses() {
      const cluster = await LeakingCluster.open();
      const [collector] = cluster.collectors;
      if (collector === undefined) throw new Error("there is no collector");
      for (let pod = 0; pod < 12; pod += 1) {
        cluster.create(`pod-${pod}`, "n1");
        await cluster.add(`pod-${pod}`);
      }
      await cluster.loseNode("n1");
      const look = async () => {
        await collector.catchUp();
        await collector.look();
      };
      return { cluster, collector, look };
    }

    test("until three looks have agreed, minutes apart", async () => {
      const { cluster, collector, look } = await clusterWithoutMostAddresses();
      for (const minutes of [0, 1, 4, 4]) {
        cluster.pass(minutes * 60_000);
        await look();
        // With the node itself.
        expect([(await cluster.recorded()).size, collector.state.heldRemovals]).toEqual([24, 24 + 1]);
      }
      expect(collector.logged).toEqual([
        expect.stringContaining("24 of 24 addresses are not removed yet"),
        expect.stringContaining(
          "1 of 1 nodes with claims or endpoints, and with them 24 of 24 addresses, are not removed",
        ),
      ]);

      cluster.pass(60_000);
      await look();
      expect([(await cluster.recorded()).size, collector.state.heldRemovals]).toEqual([0, 0]);
    });

    test("from the moment that the orchestrator has no node any more, not only once our record is gone", async () => {
      const { cluster, collector, look } = await clusterWithoutMostAddresses();
      const key = resourceKey("nodes", { name: "n1" });
      const referring = NODE.codec.make({ name: "n1" }, { orchRefs: [{ nodeName: "n1", orchestrator: "k8s" }] });
      await seed(cluster.store, { kind: "put", key, value: NODE.codec.write(referring) });
      for (const minutes of [0, 5]) {
        cluster.pass(minutes * 60_000);
        await look();
        expect(collector.state.heldRemovals).toBe(24 + 1);
      }
      cluster.pass(5 * 60_000);
      await look();
      expect([(await cluster.recorded()).size, collector.state.heldRemovals]).toEqual([24, 0]);

      await cluster.loseNode("n1");
      await look();
      expect((await cluster.recorded()).size).toBe(0);
    });

    test("again, if one of them had disappeared in between", async () => {
      const { cluster, look } = await clusterWithoutMostAddresses();
      await look();
      await cluster.returnNode("n1");
      await look();
      await cluster.loseNode("n1");
      for (let looks = 0; looks < 2; looks += 1) {
        cluster.pass(5 * 60_000);
        await look();
      }
      expect((await cluster.recorded()).size).toBe(24);
    });

    test("unless an administrator allows it for a time", async () => {
      const { cluster, look } = await clusterWithoutMostAddresses();
      const allow = (time: string) => {
        const annotations = { [REMOVALS_ALLOWED_UNTIL]: time };
        const configuration = kubeControllersConfiguration.make({ name: "default", annotations }, {});
        const value = kubeControllersConfiguration.write(configuration);
        return seed(cluster.store, { kind: "put", key: CONFIGURATION_KEY, value });
      };
      await allow(new Date(cluster.date.getTime() - 1).toISOString());
      await look();
      expect((await cluster.recorded()).size).toBe(24);

      await allow(new Date(cluster.date.getTime() + 60_000).toISOString());
      await look();
      expect((await cluster.recorded()).size).toBe(0);
    });
  });

  test("changes nothing while the datastore is locked, and goes on afterwards", async () => {
    const { cluster, collector } = await clusterWithPod();
    const lock = (datastoreReady: boolean) => {
      const key = resourceKey("clusterinformations", { name: "default" });
      const information = clusterInformation.make({ name: "default" }, { datastoreReady });
      return seed(cluster.store, { kind: "put", key, value: clusterInformation.write(information) });
    };
    await lock(false);
    const before = await readAllRecords(cluster.store);
    await cluster.loseNode("n1");
    for (let look = 0; look < 2; look += 1) {
      await collector.catchUp();
      expect(await rejectionOf(() => collector.look())).toBeInstanceOf(DatastoreLocked);
    }
    expect(await readAllRecords(cluster.store)).toEqual(before);

    await lock(true);
    await collector.catchUp();
    await collector.look();
    expect((await readAllRecords(cluster.store)).handles).toEqual([]);
  });

  test("keeps the tunnel address of a node as long as the node exists, and then releases it with its claims", async () => {
    const { cluster, collector } = await clusterWithPod();
    await cluster.remove("a", true);
    await cluster.allocator.assign({
      ...{ handle: "vxlan-tunnel-addr-n1", node: "n1", attributes: { type: "vxlanTunnelAddress" } },
      ...{ intendedUse: "Tunnel", addressRequests: [{ kind: "automatic", family: 4 }] },
    });
    await waitForGrace({ cluster, collector });
    await collector.look();
    expect((await cluster.recorded()).size).toBe(1);

    await cluster.loseNode("n1");
    for (let look = 0; look < 2; look += 1) {
      await collector.catchUp();
      await collector.look();
    }
    await letRest({ cluster, collector });
    const world = await readAllRecords(cluster.store);
    expect([world.blocks, world.affinities, world.handles]).toEqual([[], [], []]);
    expect(collector.logged.join()).toContain("(VXLAN tunnel of node n1): node n1 is gone");
  });

  test("removes a handle that an ADD left which died before it had an address, with its machine", async () => {
    const cluster = await LeakingCluster.open("one object");
    const [collector] = cluster.collectors;
    if (collector === undefined) throw new Error("there is no collector");
    for (const name of ["a", "b"]) {
      cluster.create(name, name === "a" ? "n1" : "n2");
      await cluster.add(name);
      cluster.report(name);
    }
    const [block = ""] = (await readAllRecords(cluster.store)).blocks.map(({ cidr }) => formatPrefix(cidr));
    const leave = (handle: string, node: string) =>
      cluster.store.commit([
        {
          kind: "create",
          key: handleKey(handle),
          value: writeHandle({ blocks: { [block]: 1 }, deleted: false }),
          node,
        },
      ]);
    const handles = async () =>
      (await readAllRecords(cluster.store)).handles.map(({ handleId }) => handleId).toSorted();
    const before = await handles();
    expect(before).toHaveLength(2);
    await leave("net.former", "n0");
    await waitForGrace({ cluster, collector });
    expect(await handles()).toEqual([...before, "net.former"].toSorted());
    await collector.look();
    expect(await handles()).toEqual(before);

    await cluster.loseNode("n1");
    await collector.catchUp();
    await collector.look();
    await letRest({ cluster, collector });
    await leave("net.late", "n1");
    await waitForGrace({ cluster, collector });
    await collector.look();
    expect(await handles()).toEqual(before.filter((handle) => handle.endsWith("c2")));
    expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());

    // Written after the DEL: the request was on the way for long.
    const left = await handles();
    await leave("net.delayed", "n2");
    for (let grace = 1; grace <= 2; grace += 1) await waitForGrace({ cluster, collector });
    await collector.look();
    expect(await handles()).toEqual(left);
  });

  test("does nothing about a node that only its copy lacks", async () => {
    const { cluster, collector } = await clusterWithPod();
    const [kept] = cluster.pods.entries().toArray();
    await cluster.loseNode("n1");
    await collector.catchUp();
    // It came back before the collector looked.
    cluster.nodes.add("n1");
    if (kept) cluster.pods.set(...kept);
    await collector.look();

    expect((await cluster.recorded()).size).toBe(2);
    expect((await readAllRecords(cluster.store)).affinities).not.toEqual([]);
  });

  test("keeps an address that the same container gets again between judgement and release, and all others of it", async () => {
    const { cluster, collector } = await clusterWithPod();
    await cluster.loseNode("n1");
    await collector.catchUp();
    let isAgain = false;
    collector.beforeCommit = async () => {
      if (isAgain) return;
      isAgain = true;
      const [addressRequest] = cluster.requestOf("c1", "a", "n1").addressRequests;
      const request = {
        ...cluster.requestOf("c1", "a", "n1"),
        addressRequests: addressRequest === undefined ? [] : [addressRequest],
      };
      await cluster.allocator.assign({ ...request, renewsHeld: true });
    };
    await collector.look();

    expect([isAgain, (await cluster.recorded()).size]).toEqual([true, 2]);
    expect(collector.logged).toEqual([]);
  });

  test("releases nothing twice if the search of the host releases the same at the same time", async () => {
    const { cluster, collector } = await clusterWithPod();
    await cluster.loseNode("n1");
    await collector.catchUp();
    const { store, allocator } = cluster;
    let isReleased = false;
    collector.beforeCommit = async () => {
      if (isReleased) return;
      isReleased = true;
      const records = await readNodeRecords(store, "n1");
      const leaks = records.allocations.map((allocation) => ({ allocation, reason: "no link" }));
      await releaseLeaks(leaks, records, { store, allocator, forget: async () => {} });
      // Another pod has them by then.
      await cluster.returnNode("n1");
      cluster.create("b", "n1");
      await cluster.add("b");
    };
    await collector.look();

    expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());
    expect([isReleased, collector.state.releasedAddresses]).toEqual([true, 0]);
    expect(findProblems(await readAllRecords(store))).toEqual([]);
  });

  test("starts the grace period again after a pause, in which another one was the leader", async () => {
    const site = await clusterWithPod();
    const { cluster, collector } = site;
    cluster.pods.set("a", { node: "n1", addresses: ["10.9.9.9"] });
    await collector.catchUp();
    await collector.look();
    cluster.pass(60 * 60_000);
    // Its sandbox still runs.
    cluster.evict("a");
    await collector.catchUp();
    await collector.look();

    expect((await cluster.recorded()).size).toBe(2);
    expect(collector.state).toMatchObject({ candidates: 1, overdue: new Map() });
  });

  test("keeps an address that is unused for another reason than its copy shows: the pod was just evicted, and still runs", async () => {
    const site = await clusterWithPod();
    const { cluster, collector } = site;
    cluster.pods.set("a", { node: "n1", addresses: ["10.9.9.9"] });
    await collector.catchUp();
    for (let look = 0; look < 2; look += 1) {
      await collector.look();
      cluster.pass(GRACE / 2);
    }
    cluster.report("a");
    cluster.evict("a");
    await collector.look();

    expect((await cluster.recorded()).size).toBe(2);
  });

  test("keeps a surplus block that is used between judgement and release", async () => {
    const site = await clusterWithPod();
    const { cluster, collector } = site;
    // Six pods need two blocks of four addresses of each family.
    const pods = ["b", "c", "d", "e", "f"];
    for (const name of pods) {
      cluster.create(name, "n1");
      await cluster.add(name);
    }
    // Without a DEL, so that both blocks stay; then nothing is left in them.
    for (const name of ["a", ...pods]) await cluster.remove(name, false);
    await cluster.searchHost("n1");
    expect((await cluster.recorded()).size).toBe(0);
    await waitForGrace(site);
    let isUsed = false;
    collector.beforeCommit = async () => {
      if (isUsed) return;
      isUsed = true;
      for (const name of pods) {
        cluster.create(name, "n1");
        await cluster.add(name);
      }
    };
    await collector.look();

    expect([isUsed, collector.state.releasedBlocks]).toEqual([true, 0]);
    expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());
    expect(findProblems(await readAllRecords(cluster.store))).toEqual([]);
  });

  test("releases the others if a handle cannot be read", async () => {
    const { cluster, collector } = await clusterWithPod();
    cluster.create("b", "n1");
    await cluster.add("b");
    await cluster.store.commit([{ kind: "put", key: handleKey("net.c1"), value: "{" }]);
    await cluster.loseNode("n1");
    await collector.catchUp();
    await collector.look();

    expect((await cluster.recorded()).size).toBe(2);
    expect(collector.state.errors).toBe(1);
  });

  test(
    "never frees an address in use, and frees every leaked one, whatever happens",
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom("all changes" as const, "one object" as const),
          fc.array(steps, { minLength: 30, maxLength: 60, size: "max" }),
          async (atomicity, history) => {
            const cluster = await LeakingCluster.open(atomicity);
            for (const [, step] of history) await step(cluster);
            await cluster.settle();
            for (const name of NODES) await cluster.searchHost(name);
            for (let look = 0; look < 4; look += 1) {
              for (const collector of cluster.collectors) {
                await collector.catchUp();
                await collector.look();
              }
              cluster.pass(GRACE / 2);
            }
            expect([...(await cluster.recorded())].toSorted()).toEqual([...cluster.inUse].toSorted());
            const problems = findProblems(await readAllRecords(cluster.store));
            const isAllowed = atomicity === "one object" ? "unfinished" : undefined;
            expect(problems.filter(({ severity }) => severity !== isAllowed)).toEqual([]);
          },
        ),
        { numRuns: proofSize({ everyDay: 300, soak: 20_000 }) },
      );
    },
    proofSize({ everyDay: 120_000, soak: 3_600_000 }),
  );
});
