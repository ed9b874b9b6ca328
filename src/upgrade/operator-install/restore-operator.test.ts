import { describe, expect, test } from "bun:test";
import { imitateCluster } from "../../../test/support/imitated-cluster.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { upgradeSite } from "../../../test/support/upgrade-site.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { identity } from "../../identity.ts";
import { clusterObjects } from "../../kube/objects.ts";
import type { Storage } from "../engine/facts.ts";
import { OBJECTS_BACKUP } from "../engine/restore-objects.ts";
import { FORMER_INFORMATION } from "../former-storage/lock.ts";
import { OPERATOR_DEPLOYMENT } from "./former-operator.ts";
import { restoreOperator } from "./restore-operator.ts";

const { systemNamespace: namespace, nodeAgent, operator, console: ownConsole } = identity;
const PATHS = {
  daemonSet: `/apis/apps/v1/namespaces/${namespace}/daemonsets/${nodeAgent}`,
  pod: `/api/v1/namespaces/${namespace}/pods/agent-1`,
  node: "/api/v1/nodes/one",
};
const [FORMER, PRESENT] = ["agent:v3.26.1", "agent:v3.29.0"];

const daemonSet = (image: string) => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: nodeAgent, namespace, uid: "1" },
  spec: {
    selector: { matchLabels: { app: "agent" } },
    template: { spec: { containers: [{ name: nodeAgent, image }] } },
  },
});
const pod = (image: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "agent-1", namespace, labels: { app: "agent" }, ownerReferences: [{ uid: "1" }] },
  spec: { nodeName: "one", containers: [{ name: nodeAgent, image }] },
  status: { phase: "Running", containerStatuses: [{ name: nodeAgent, ready: true }] },
});
const NODE = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "one" },
  status: { conditions: [{ type: "Ready", status: "True" }] },
};
const DEPLOYMENT = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: operator, namespace: operator },
  spec: {},
};
const CHANGES = [{ action: "delete", what: "", path: OPERATOR_DEPLOYMENT }] as const;

/** `later`: what the cluster has after each wait. */
async function siteOf(storage: Storage, later: readonly Readonly<Record<string, object>>[] = []) {
  const objects = { [PATHS.daemonSet]: daemonSet(PRESENT), [PATHS.pod]: pod(PRESENT), [PATHS.node]: NODE };
  const cluster = imitateCluster({ objects });
  const waits = [...later];
  const site = upgradeSite({
    objects: clusterObjects(cluster.client),
    facts: { storage },
    store: openMemory(),
    onWait: () => {
      for (const [path, object] of Object.entries(waits.shift() ?? {})) cluster.objects.set(path, object as never);
    },
  });
  await site.backups.save(OBJECTS_BACKUP, JSON.stringify({ [OPERATOR_DEPLOYMENT]: DEPLOYMENT }));
  return { cluster, work: () => restoreOperator(site, CHANGES), waits };
}

describe("restoreOperator()", () => {
  test("waits until the former operator has replaced the agents of this release", async () => {
    const { work, waits, cluster } = await siteOf("former", [
      {},
      { [PATHS.daemonSet]: daemonSet(FORMER) },
      { [PATHS.pod]: pod(FORMER) },
    ]);
    await work();

    expect(waits).toEqual([]);
    expect(cluster.objects.has(OPERATOR_DEPLOYMENT)).toBe(true);
  });

  test("stops with an explanation if the former operator does not", async () => {
    const { work } = await siteOf("former");

    const { kind, message, details } = await rejectionOf(work);
    expect(kind).toBe("not-ready");
    expect(message).toContain(`DaemonSet ${nodeAgent} still has the image "${PRESENT}"`);
    expect(details).toMatch(/logs deployment.*run upgrade rollback again/);
  });

  test("says what to do if the pods of the operator do not end, because their machine is off", async () => {
    const { work, cluster } = await siteOf("former");
    cluster.objects.set(OPERATOR_DEPLOYMENT, DEPLOYMENT as never);
    // Its deletion waits for that of its pods.
    cluster.objects.delete = () => false;

    const { message, details } = await rejectionOf(work);
    expect(message).toContain("the pods of the operator do not end");
    expect(details).toMatch(/machine of such a pod is off, delete its Node, and run upgrade rollback again/);
  });

  test("locks a storage again that somebody unlocks meanwhile", async () => {
    const information = (datastoreReady: boolean) => ({ metadata: { name: "default" }, spec: { datastoreReady } });
    const { work, cluster } = await siteOf("former", [
      { [FORMER_INFORMATION]: information(true) },
      { [PATHS.daemonSet]: daemonSet(FORMER) },
      { [PATHS.pod]: pod(FORMER) },
    ]);
    await work();

    expect(cluster.objects.get(FORMER_INFORMATION)).toMatchObject({ spec: { datastoreReady: false } });
  });

  test("does not wait if both releases use the same storage", async () => {
    const { work, waits } = await siteOf("current", [{}]);
    await work();

    expect(waits).toHaveLength(1);
  });

  test("removes the console, which the former operator does not know", async () => {
    const { work, cluster } = await siteOf("current", [{}]);
    const paths = [
      `/apis/apps/v1/namespaces/${namespace}/deployments/${ownConsole}`,
      `/api/v1/namespaces/${namespace}/services/${ownConsole}`,
    ];
    for (const path of paths) cluster.objects.set(path, { metadata: { name: ownConsole } } as never);
    await work();

    expect(paths.filter((path) => cluster.objects.has(path))).toEqual([]);
  });

  test("names a node that is down, and what to do with it, rather than the former operator", async () => {
    const down = {
      ...NODE,
      status: { conditions: [{ type: "Ready", status: "Unknown", reason: "NodeStatusUnknown" }] },
    };
    const { work } = await siteOf("former", [{ [PATHS.daemonSet]: daemonSet(FORMER), [PATHS.node]: down }]);
    const failure = await rejectionOf(work);

    expect(failure.message).toContain("Node one: the Node is not ready (NodeStatusUnknown)");
    expect(failure.message).not.toContain("operator");
    expect(failure.details).toMatch(/delete the Node if it does not come back, and run upgrade rollback again/);
    expect(failure.details).not.toContain("logs");
  });
});
