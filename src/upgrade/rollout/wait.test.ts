import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { type RolloutSite, waitForNodes } from "./wait.ts";

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind.
type Any = any;

const LONG_AGO = "2020-01-01T00:00:00Z";
const OWNED = { ownerReferences: [{ uid: "agents" }] };

const readyNode = (name: string, labels = {}) => ({
  metadata: { name, labels },
  status: { conditions: [{ type: "Ready", status: "True" }] },
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
}

/** On etcd; the clock moves only by waits. */
function siteOf(cluster: Cluster): RolloutSite {
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
    },
    signal: new AbortController().signal,
    options: { stallSeconds: 60 },
    facts: { datastore: "etcd" },
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

    expect(await waitForNodes(site, "/agents")).toBeUndefined();
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
