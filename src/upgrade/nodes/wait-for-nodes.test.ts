import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { type RolloutSite, waitForNodes } from "./wait-for-nodes.ts";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
type Any = any;

const LONG_AGO = "2020-01-01T00:00:00Z";
const OWNED = { ownerReferences: [{ uid: "agents" }] };

const readyNode = (name: string, labels = {}) => ({
  metadata: { name, labels },
  status: { conditions: [{ type: "Ready", status: "True" }] },
});

const deadNode = (name: string, lastTransitionTime = LONG_AGO) => ({
  ...readyNode(name),
  status: { conditions: [{ type: "Ready", status: "Unknown", reason: "NodeStatusUnknown", lastTransitionTime }] },
});

/** On the node of the same name. */
function pod(name: string, revision: string, isReady: boolean) {
  const labels = { "controller-revision-hash": revision };
  const status = (container: string, ready: boolean) => ({
    name: container,
    ready,
    state: { running: { startedAt: LONG_AGO } },
  });
  return {
    metadata: { name, namespace: "kube-system", uid: name, labels, ...OWNED },
    spec: { nodeName: name, containers: [{ name: identity.nodeAgent }, { name: "other" }] },
    status: { phase: "Running", containerStatuses: [status(identity.nodeAgent, true), status("other", isReady)] },
  };
}

function daemonSet(podSpec: object = {}) {
  return {
    metadata: { name: identity.nodeAgent, namespace: "kube-system", uid: "agents", generation: 1 },
    spec: { selector: { matchLabels: { a: "b" } }, template: { spec: podSpec } },
    status: { observedGeneration: 1 },
  };
}

interface Cluster {
  readonly daemonSet: object;
  readonly nodes: readonly object[];
  readonly pods: readonly object[];
  readonly onRemove?: (name: string) => void;
  readonly onWait?: () => void;
}

/** On etcd; the clock moves only by waits. */
function siteOf(cluster: Cluster, more: Partial<RolloutSite> = {}): RolloutSite {
  let time = Date.parse("2026-01-01T00:00:00Z");
  const revision = { metadata: { name: "agents-new", ...OWNED }, revision: 2 };
  const objects = {
    read: async () => cluster.daemonSet,
    list: async (path: string) =>
      path.endsWith("/pods") ? cluster.pods : path.endsWith("/nodes") ? cluster.nodes : [revision],
    remove: async (path: string) => cluster.onRemove?.(path.replace(/^.*\//, "")),
  };
  return {
    objects: objects as unknown as ClusterObjects,
    progress: () => {},
    now: () => new Date(time),
    wait: async (milliseconds) => {
      time += milliseconds;
      cluster.onWait?.();
    },
    signal: new AbortController().signal,
    options: { stallSeconds: 60 },
    facts: { datastore: "etcd", storage: "etcd" },
    ...more,
  };
}

describe("waitForNodes()", () => {
  test("does not wait for nodes that the DaemonSet's affinity excludes", async () => {
    const expression = { key: "type", operator: "NotIn", values: ["virtual-kubelet"] };
    const affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [expression] }] },
      },
    };
    const nodes = [readyNode("one"), readyNode("virtual", { type: "virtual-kubelet" })];
    const site = siteOf({ daemonSet: daemonSet({ affinity }), nodes, pods: [pod("one", "new", true)] });

    expect(await waitForNodes(site, "/agents")).toEqual([]);
  });

  test("deletes no pod while another one is ending", async () => {
    const pods: Any[] = [pod("a", "new", false), ...["b", "c", "d"].map((name) => pod(name, "old", false))];
    const nodes = pods.map(({ metadata }) => readyNode(metadata.name));
    const removed: string[] = [];
    const onRemove = (name: string) => {
      removed.push(name);
      pods.find(({ metadata }) => metadata.name === name).metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    };

    await expect(waitForNodes(siteOf({ daemonSet: daemonSet(), nodes, pods, onRemove }), "/agents")).rejects.toThrow(
      /pod b does not end/,
    );
    expect(removed).toEqual(["b"]);
  });
});

describe("the advice of a rolling update that stalls", () => {
  const stalled = (command?: "upgrade rollback") => {
    const site = siteOf({ daemonSet: daemonSet(), nodes: [readyNode("a")], pods: [] });
    return rejectionOf(() => waitForNodes(site, "/agents", command === undefined ? {} : { command }));
  };

  test("names the command that waits: an upgrade that goes back cannot be applied", async () => {
    const [forward, back] = [await stalled(), await stalled("upgrade rollback")];

    expect(forward.details).toMatch(/upgrade apply again; or go back with upgrade rollback/);
    expect(back.details).toContain("upgrade rollback again");
    expect(back.details).not.toContain("upgrade apply");
  });
});

test("a rolling update that stalls names twenty nodes, and how many more there are", async () => {
  const nodes = Array.from({ length: 30 }, (_, index) => readyNode(`n${index}`));
  const { message } = await rejectionOf(() => waitForNodes(siteOf({ daemonSet: daemonSet(), nodes, pods: [] }), "/a"));

  expect([message.match(/Node n/g)?.length, message.endsWith("and 10 more")]).toEqual([20, true]);
});

describe("waitForNodes() while the datastore is locked", () => {
  const lockedSite = (cluster: Cluster, progress: (line: string) => void = () => {}): RolloutSite => {
    const site = siteOf(cluster, { progress, options: { stallSeconds: 600, maxUnavailable: "20%", nodeSeconds: 120 } });
    return { ...site, facts: { ...site.facts, datastore: "kubernetes", storage: "former" } };
  };

  /**
   * Nodes named `n1`, `n2` ... of which the orchestrator updates one at a time, in 4 s; on those in `stuck` no pod ends or
   * starts, and the orchestrator waits for them. `down`: not ready.
   */
  function updatedCluster(count: number, stuck: readonly string[] = [], down: readonly string[] = []) {
    const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
    const pods: Any[] = names.map((name) => pod(name, "old", true));
    const nodes: Any[] = names.map((name) => (down.includes(name) ? deadNode(name) : readyNode(name)));
    const removed: string[] = [];
    let most = 0;
    const remove = (name: string) => {
      const found = pods.find(({ metadata }) => metadata.name === name);
      found.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
      found.due = 2;
    };
    const onWait = () => {
      const isBusy = ({ metadata, due }: Any) => metadata.deletionTimestamp !== undefined || due > 0;
      most = Math.max(most, pods.filter(isBusy).length);
      for (const [index, each] of pods.entries()) {
        if (!isBusy(each) || stuck.includes(each.metadata.name)) continue;
        each.due -= 1;
        if (each.due <= 0) pods[index] = pod(each.metadata.name, "new", true);
      }
      const next = pods.find(({ metadata }) => metadata.labels["controller-revision-hash"] === "old");
      if (!pods.some(isBusy) && next !== undefined) remove(next.metadata.name);
    };
    const onRemove = (name: string) => {
      removed.push(name);
      remove(name);
    };
    const lines: string[] = [];
    const cluster = { daemonSet: daemonSet(), nodes, pods, onRemove, onWait };
    const site = lockedSite(cluster, (line) => lines.push(line));
    return { site, pods, removed, lines, mostAtOnce: () => most };
  }

  test("goes on without a node before the update would stop, whatever the limit of the stall is", async () => {
    const { site } = updatedCluster(20, ["n2"]);
    const options = { stallSeconds: 60, maxUnavailable: "20%" };

    const left = await waitForNodes({ ...site, options }, "/agents", { mayLeaveNodes: true });
    expect(left.map(({ node }) => node)).toEqual(["n2"]);
  });

  test("updates the first node alone, then as many at once as the limit says", async () => {
    const { site, removed, mostAtOnce } = updatedCluster(20);
    const began = site.now().getTime();

    expect(await waitForNodes(site, "/agents")).toEqual([]);
    expect(mostAtOnce()).toBe(4);
    expect(removed).not.toContain("n1");
    // Twenty nodes one after the other take 100 s.
    expect(site.now().getTime() - began).toBeLessThan(50_000);
  });

  test("leaves the pace to the orchestrator if nothing is locked and no limit is given", async () => {
    const { site, removed, mostAtOnce } = updatedCluster(5);
    const unlocked = { ...site, facts: { ...site.facts, storage: "current" as const }, options: { stallSeconds: 600 } };

    expect(await waitForNodes(unlocked, "/agents")).toEqual([]);
    expect([removed, mostAtOnce()]).toEqual([[], 1]);
  });

  test("goes on without a node that does not come back, although the orchestrator waits for it", async () => {
    const { site, lines, pods } = updatedCluster(6, ["n2"]);
    const began = site.now().getTime();
    const left = await waitForNodes(site, "/agents", { mayLeaveNodes: true });

    expect(left.map(({ node }) => node)).toEqual(["n2"]);
    expect(pods.filter(({ metadata }) => metadata.labels["controller-revision-hash"] === "new")).toHaveLength(5);
    expect(site.now().getTime() - began).toBeLessThan(200_000);
    expect(lines).toContainEqual(expect.stringMatching(/^Node n2: pod n2 does not end\. .*goes on without it/));
  });

  test("tries another node first if the one that the orchestrator has chosen does not come back", async () => {
    const { site, removed } = updatedCluster(6, ["n1"]);

    expect((await waitForNodes(site, "/agents", { mayLeaveNodes: true })).map(({ node }) => node)).toEqual(["n1"]);
    expect(removed).toEqual(["n2", "n3", "n4", "n5", "n6"]);
  });

  test("does not wait for nodes that have joined since the lock: they never had a former agent", async () => {
    const pods: Any[] = Array.from({ length: 20 }, (_, index) => pod(`n${index}`, index === 0 ? "new" : "old", true));
    const nodes: Any[] = pods.map(({ metadata }) => readyNode(metadata.name));
    const onRemove = (name: string) => {
      pods[pods.findIndex(({ metadata }) => metadata.name === name)] = pod(name, "new", true);
    };
    const join = (name: string) => {
      nodes.push(readyNode(name));
      pods.push(pod(name, "new", false));
    };
    const site = lockedSite({
      daemonSet: daemonSet(),
      nodes,
      pods,
      onRemove,
      onWait: () => join(`late${pods.length}`),
    });
    const formerNodes = new Set(nodes.map(({ metadata }) => metadata.name));
    // More than may be updated at once.
    for (const name of ["j1", "j2", "j3", "j4", "j5", "j6"]) join(name);
    const began = site.now().getTime();
    const left = await waitForNodes(site, "/agents", { mayLeaveNodes: true, formerNodes });

    expect(left.map(({ node }) => node)).toEqual(expect.arrayContaining(["j1", "j6", "late26"]));
    expect(pods.filter(({ metadata }) => metadata.labels["controller-revision-hash"] === "old")).toEqual([]);
    expect(site.now().getTime() - began).toBeLessThan(60_000);
  });

  test.each([
    ["of which it is not known whether they have joined since the lock", undefined],
    ["if none is left of those of the lock", new Set(["p1", "p2", "p3"])],
  ])("waits for nodes %s: that all agents crash stops it", async (_, formerNodes) => {
    const pods = ["x1", "x2", "x3", "x4"].map((name) => pod(name, "new", false));
    const nodes = pods.map(({ metadata }) => readyNode(metadata.name));
    const site = lockedSite({ daemonSet: daemonSet(), nodes, pods });

    await expect(waitForNodes(site, "/agents", { mayLeaveNodes: true, formerNodes })).rejects.toThrow(
      /no progress for 600 s: Node x1/,
    );
  });

  test("waits for a node that has joined since the lock if it has a former agent", async () => {
    const { site, pods } = updatedCluster(6, ["n6"]);
    const formerNodes = new Set(["n1", "n2", "n3", "n4", "n5"]);

    const began = site.now().getTime();
    const left = await waitForNodes(site, "/agents", { mayLeaveNodes: true, formerNodes });
    expect(left.map(({ node }) => node)).toEqual(["n6"]);
    expect(site.now().getTime() - began).toBeGreaterThan(120_000);
    expect(pods).toHaveLength(6);
  });

  test.each([
    ["two machines", ["n9", "n10"]],
    ["the machines that the orchestrator chooses first", ["n1", "n2"]],
    ["half of the machines", ["n2", "n4", "n6", "n8", "n10"]],
  ])("goes on without %s that are dead with their former pods, however few may be updated at once", async (_, dead) => {
    const { site } = updatedCluster(10, dead, dead);
    const options = { ...site.options, maxUnavailable: 1 };
    const left = await waitForNodes({ ...site, options }, "/agents", { mayLeaveNodes: true });

    expect(left.map(({ node }) => node).toSorted()).toEqual(dead.toSorted());
  });

  test("does not go on without more dead machines than updated ones: the release may have cut them off", async () => {
    const { site } = updatedCluster(5, ["n2", "n4", "n5"], ["n2", "n4", "n5"]);

    await expect(waitForNodes(site, "/agents", { mayLeaveNodes: true })).rejects.toThrow(/no progress.*Node n2: /);
  });

  test("stops at the limit if machines go down when their pods are deleted: the update does it", async () => {
    const names = Array.from({ length: 40 }, (_, index) => `n${index}`);
    const nodes: Any[] = names.map((name) => readyNode(name));
    const pods: Any[] = names.map((name, index) => pod(name, index === 0 ? "new" : "old", true));
    let dead = 0;
    const onRemove = (name: string) => {
      const index = names.indexOf(name);
      if (index % 2 === 0) {
        pods[index] = pod(name, "new", true);
        return;
      }
      // Not noticed for a while, as the orchestrator's own controller does.
      const at = new Date(site.now().getTime() + 40_000).toISOString();
      pods[index].metadata.deletionTimestamp = new Date(site.now().getTime() + 30_000).toISOString();
      pods[index].metadata.deletionGracePeriodSeconds = 30;
      nodes[index] = deadNode(name, at);
      dead += 1;
    };
    const site = lockedSite({ daemonSet: daemonSet(), nodes, pods, onRemove });

    await expect(waitForNodes(site, "/agents", { mayLeaveNodes: true })).rejects.toThrow(/no progress/);
    expect(dead).toBeLessThanOrEqual(2 * 8);
  });

  test("does not go on without a node unless it may", async () => {
    const { site } = updatedCluster(6, ["n2"]);

    await expect(waitForNodes(site, "/agents")).rejects.toThrow(/no progress for 600 s: Node n2: pod n2 does not end/);
  });

  test.each<[string, (looks: number, cluster: { readonly pods: Any[]; readonly nodes: Any[] }) => void]>([
    [
      "an agent that comes and goes",
      (looks, { pods }) => {
        pods[0] = pod("n1", "new", looks % 20 < 10);
      },
    ],
    [
      "new nodes",
      (looks, { pods, nodes }) => {
        if (looks % 100 !== 0) return;
        nodes.push(readyNode(`new${looks}`));
        pods.push(pod(`new${looks}`, "new", true));
      },
    ],
  ])("stops although %s change something all the time: that is not the update's progress", async (_, change) => {
    const pods: Any[] = [pod("n1", "new", true), pod("n2", "new", true), pod("n3", "new", false)];
    const nodes: Any[] = pods.map(({ metadata }) => readyNode(metadata.name));
    let looks = 0;
    const onWait = () => {
      looks += 1;
      if (looks > 2_000) throw new Error("it waits for ever");
      change(looks, { pods, nodes });
    };
    const site = lockedSite({ daemonSet: daemonSet(), nodes, pods, onWait });

    await expect(waitForNodes(site, "/agents")).rejects.toThrow(/no progress for 600 s: .*Node n3/);
  });

  test("goes on as long as nodes are updated or deleted, however seldom", async () => {
    const pods: Any[] = ["n1", "n2", "n3", "n4"].map((name) => pod(name, "new", name === "n1"));
    const nodes: Any[] = pods.map(({ metadata }) => readyNode(metadata.name));
    const events = [
      () => (pods[1] = pod("n2", "new", true)),
      () => [pods.splice(2, 1), nodes.splice(2, 1)],
      () => (pods[2] = pod("n4", "new", true)),
    ];
    let looks = 0;
    const onWait = () => {
      looks += 1;
      if (looks % 290 === 0) events.shift()?.();
    };

    expect(await waitForNodes(lockedSite({ daemonSet: daemonSet(), nodes, pods, onWait }), "/agents")).toEqual([]);
  });

  test.each([
    ["more nodes than may be missing", 20, ["n3", "n4", "n5", "n6", "n7"]],
    ["the only node", 1, ["n1"]],
    ["all nodes", 2, ["n1", "n2"]],
  ])("does not go on without %s: the release may be to blame", async (_, count, stuck) => {
    const { site, removed } = updatedCluster(count, stuck);

    await expect(waitForNodes(site, "/agents", { mayLeaveNodes: true })).rejects.toThrow(/has made no progress/);
    expect(removed.length).toBeLessThan(count);
  });
});
