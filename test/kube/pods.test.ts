/** The product is the network of a real node: what a kubelet and containerd do to it, from the first pod to a reboot. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { rmSync } from "node:fs";
import type { JsonObject } from "../../src/cni/json.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import type { Host } from "../support/host.ts";
import { poolsOf } from "../support/kube-families.ts";
import { addressesOf, POD_PORT, type Pod } from "../support/kube-pods.ts";
import {
  type ProductCluster,
  type ProductClusterPlan,
  productClusterProblem,
  titleOf,
} from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { NAMESPACE, type Pods } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { type ProductNode, startProductNode } from "../support/product-nodes.ts";
import { openProductPods, type ProductPods } from "../support/product-pods.ts";
import { proofSize } from "../support/proof-size.ts";
import { startRuntime } from "../support/runtime-driver.ts";
import { acrossNodesTests, startPodsOfTwoNodes } from "./across-nodes-tests.ts";
import { expectAddresses } from "./annotated-pods.ts";
import { annotationTests } from "./annotation-tests.ts";
import { expectNoVolumes, volumePodSpec, volumeTests } from "./volume-tests.ts";

const SERVED = "by the node agent";
const ALONE = "by themselves";

/** What is done to the node, besides two pods. */
type Part = "30 pods" | "annotations" | "volumes" | "restarts" | "lost sandboxes" | "two nodes";
const ALL_PARTS: readonly Part[] = ["30 pods", "annotations", "restarts", "lost sandboxes"];

interface Row {
  readonly plan: ProductClusterPlan;
  readonly parts: readonly Part[];
}

const ROWS = proofSize<readonly Row[]>({
  everyDay: [
    { plan: { datastore: "etcd", families: "IPv4", calls: SERVED }, parts: ["volumes", "30 pods", "restarts"] },
    {
      plan: { datastore: "kubernetes", families: "dual stack", calls: ALONE, tunnels: "VXLAN" },
      parts: ["annotations", "two nodes"],
    },
    { plan: { datastore: "etcd", families: "IPv6 only", calls: ALONE }, parts: [] },
  ],
  soak: (["etcd", "kubernetes"] as const).flatMap((datastore) =>
    (["IPv4", "dual stack", "IPv6 only"] as const).flatMap((families) =>
      ([SERVED, ALONE] as const).map(
        (calls): Row => ({
          plan: { datastore, families, calls },
          parts: calls === SERVED ? ["volumes", ...ALL_PARTS] : ALL_PARTS,
        }),
      ),
    ),
  ),
});
const REPLICAS = 30;

setDefaultTimeout(proofSize({ everyDay: 120_000, soak: 400_000 }));

const problem = productClusterProblem();

describe.each(ROWS.map((row) => ({ title: titleOf(row.plan), row })))("a real node ($title)", ({ row }) => {
  const { plan, parts } = row;
  const testCluster = testNeeding(problem);
  const testPart = (part: Part) => (parts.includes(part) ? testCluster : () => {});
  const withVolume = parts.includes("volumes") ? { spec: volumePodSpec({}) } : {};
  let cluster: ProductCluster;
  let pods: Pods;
  let opened: ProductPods;
  beforeAll(async () => {
    if (problem !== undefined) return;
    opened = await openProductPods(plan);
    ({ cluster, pods } = opened);
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  testCluster("runs pods with addresses of the pools, probes, host ports and connections between them", async () => {
    await pods.create({ name: "one", hostPort: 8081 }, { name: "two" });
    const [one, two] = await Promise.all([pods.ready("one"), pods.ready("two")]);

    for (const pod of [one, two]) {
      const usual = poolsOf(plan.families, "usual").map(({ name }) => name);
      expectAddresses(pod, plan.families, usual);
    }
    const inside = await pods.exec("one", "ip", "-o", "address", "show", "dev", "eth0");
    for (const address of addressesOf(one)) expect(inside).toContain(` ${address}/`);
    for (const address of addressesOf(two)) {
      await pods.exec("one", "/agnhost", "connect", `${bracketed(address)}:${POD_PORT}`, "--timeout=3s");
    }
    for (const address of cluster.node.addresses) {
      expect(await fetchFromHost(cluster.host, address, 8081, "/hostname")).toBe("one");
    }
    await expectNothingLeft();
  });

  testPart("30 pods")(`scales a Deployment from 1 to ${REPLICAS} pods and to none`, async () => {
    await pods.createWorkload("Deployment", { name: "wide", replicas: 1 });
    await pods.scale("Deployment", "wide", REPLICAS);
    const all = (await pods.list("wide")).flatMap(addressesOf);
    expect(new Set(all).size).toBe(REPLICAS * poolsOf(plan.families, "usual").length);
    await pods.scale("Deployment", "wide", 0);
    await expectNothingLeft();
  });

  if (parts.includes("volumes")) volumeTests(() => opened);

  if (parts.includes("annotations")) annotationTests(plan, () => opened);

  testPart("restarts")(
    "keeps the pods while kubelet, containerd and node agent are killed and started again",
    async () => {
      await pods.create({ name: "kept", ...withVolume });
      const before = await pods.ready("kept");

      await cluster.node.kubelet.kill();
      await cluster.node.restartContainerd();
      await cluster.agent?.kill();
      cluster.node.kubelet.start();
      await pods.create({ name: "later" });
      await pods.ready("later");
      await cluster.startAgent();

      const after = await pods.get("kept");
      expect(identityOf(after)).toEqual(identityOf(before));
      await expectNothingLeft();
      if (parts.includes("volumes")) await expectNoVolumes(cluster.node);
    },
  );

  testPart("restarts")("gives a pod that replaces a force-deleted one of the same name its own address", async () => {
    await pods.create({ name: "forced", spec: { terminationGracePeriodSeconds: 5 } });
    const before = await pods.ready("forced");
    await cluster.server.kubectl(["delete", "pod", "forced", "--force", `--namespace=${NAMESPACE}`]);
    await pods.create({ name: "forced" });
    const after = await pods.ready("forced");

    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    await opened.untilOnlyRecorded(["forced"]);
    await expectNothingLeft();
  });

  testPart("restarts")("starts all pods again after a reboot, and the lost sandboxes keep no address", async () => {
    const names = ["a", "b", "c"];
    await pods.create(...names.map((name) => ({ name, ...(name === "a" ? withVolume : {}) })));
    await Promise.all(names.map(pods.ready));

    await cluster.node.reboot();
    await cluster.startAgent();
    await untilRestarted();
    await opened.untilOnlyRecorded(names);
    await expectNothingLeft();
    if (parts.includes("volumes")) await expectNoVolumes(cluster.node);
  });

  testPart("lost sandboxes")("releases the addresses of sandboxes that the runtime has lost too", async () => {
    const names = ["d", "e"];
    await pods.create(...names.map((name) => ({ name })));
    await Promise.all(names.map(pods.ready));

    await untilBeforeBoot();
    await cluster.node.kubelet.kill();
    await loseSandboxes(cluster.node.host);
    await cluster.node.reboot();
    await untilRestarted();
    // The agent searches for leaks when it starts; without one the runtime's GC does.
    if (cluster.agent) await cluster.startAgent();
    else await collectGarbage(cluster);
    await opened.untilOnlyRecorded(names);
    await expectNothingLeft();
  });

  if (parts.includes("two nodes")) {
    // The last part of its row: the agents that it starts go on.
    describe("and another one", () => {
      let first: ProductNode;
      let second: ProductNode;
      beforeAll(async () => {
        if (problem !== undefined) return;
        const added = await cluster.addNode("node-2");
        first = await startProductNode(cluster.controlPlane, cluster.node);
        second = await startProductNode(cluster.controlPlane, added);
        await startPodsOfTwoNodes(pods);
      });
      acrossNodesTests(testCluster, () => ({ server: cluster.server, outside: cluster.host, first, second, pods }));
    });
  }

  const untilRestarted = async () => {
    const haveRestarted = async () =>
      (await pods.list()).every(({ status }) =>
        status.containerStatuses?.every(({ restartCount, ready }) => restartCount > 0 && ready),
      );
    await pollUntil(haveRestarted, "the pods to start again", 100_000);
  };
  const expectNothingLeft = async () => {
    await pods.removeAll();
    await opened.expectNothingLeft();
  };
});

/** The time of a boot is rounded: only what was assigned 5 seconds before counts as assigned before it. */
async function untilBeforeBoot(): Promise<void> {
  const end = performance.now() + 6_000;
  await pollUntil(() => performance.now() > end, "the addresses to be old enough");
}

/** Calls GC as a runtime does, with all sandboxes that exist. */
async function collectGarbage({ node, network }: ProductCluster): Promise<void> {
  const sandboxes = 'labels."io.cri-containerd.kind"==sandbox';
  const ids = await node.host.must(["ctr", "--namespace=k8s.io", "containers", "list", "--quiet", sandboxes]);
  const runtime = startRuntime({
    conflist: network.conflist("1.1.0") as JsonObject,
    pluginDirectory: BIN_DIRECTORY,
    run: node.host.run,
  });
  const valid = ids.split("\n").filter(Boolean);
  await runtime.gc(valid.map((containerId) => ({ containerId, netns: "" })));
}

/** As if the runtime's disk had lost them: nobody will ever call DEL for them. */
async function loseSandboxes(host: Host): Promise<void> {
  const ctr = ["ctr", "--namespace=k8s.io"];
  const ids = (await host.must([...ctr, "containers", "list", "--quiet"])).split("\n").filter(Boolean);
  for (const id of ids) await host.run([...ctr, "tasks", "delete", "--force", id]);
  await host.must([...ctr, "containers", "delete", ...ids]);
  rmSync(host.view("/var/lib/cni/results"), { recursive: true });
}

function identityOf({ metadata, status }: Pod): object {
  return { uid: metadata.uid, addresses: status.podIPs, containers: status.containerStatuses };
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
