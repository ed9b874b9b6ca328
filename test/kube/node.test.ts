/** A real kubelet with containerd runs pods on upstream's plugins: validates the cluster that other tests use. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type KubeCluster, kubeClusterProblem, openKubeCluster } from "../support/kube-cluster.ts";
import { type KubeNode, MANIFESTS } from "../support/kube-node.ts";
import {
  deletePod,
  type Pod,
  podManifest,
  readPod,
  untilPodReady as waitForPod,
  workloadManifest,
} from "../support/kube-pods.ts";
import { testNeeding } from "../support/needs.ts";
import { installNetwork, type NetworkUnderTest, upstreamNetwork } from "../support/network-under-test.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { expectTraces, tracesOf } from "../support/traces.ts";

const network = await upstreamNetwork();
const onlyIpv6: NetworkUnderTest = {
  ...network,
  conflist: (cniVersion) => {
    const ipam = { type: "host-local", ranges: [[{ subnet: "fd77::/64" }]], routes: [{ dst: "::/0" }] };
    return { cniVersion, name: network.name, plugins: [{ type: "ptp", ipam }] };
  },
};
const problem = kubeClusterProblem() ?? network.missing;
const testNode = testNeeding(problem);
/** What nodes with the product's network show every day: see pods.test.ts. */
const testLong = proofSize({ everyDay: () => {}, soak: testNode });

const NAMESPACE = "pods";
const podOf = (name: string) => podManifest({ name, namespace: NAMESPACE });

describe("a node with upstream's plugins", () => {
  let cluster: KubeCluster;
  let node: KubeNode;
  beforeAll(async () => {
    if (problem !== undefined) return;
    cluster = await openKubeCluster();
    node = await cluster.addNode({ name: "node-1", install: (host) => installNetwork(host, network) });
    await cluster.server.createNamespace(NAMESPACE);
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  testNode("runs a pod with addresses of the network, and leaves nothing of it", async () => {
    const before = await tracesOf(node.host, network);

    await cluster.server.apply(podOf("one"));
    const { status } = await untilPodReady("one");
    for (const [index, prefix] of network.addressPrefixes.entries()) {
      expect(status.podIPs?.[index]?.ip).toStartWith(prefix);
    }
    expect(await cluster.server.kubectl(["exec", "one", "--namespace=pods", "--", "ip", "-o", "address"])).toContain(
      `${status.podIP}/`,
    );

    await deletePod(cluster.server, NAMESPACE, "one");
    await expectTraces(node.host, network, before);
  });

  testLong("keeps a pod running while kubelet and containerd are killed and started again", async () => {
    await cluster.server.apply(podOf("kept"));
    const before = await untilPodReady("kept");

    await node.restartContainerd();
    await node.restartKubelet();
    await cluster.server.apply(podOf("later"));
    await untilPodReady("later");

    const after = await readPod(cluster.server, NAMESPACE, "kept");
    expect(after.status.containerStatuses).toEqual(before.status.containerStatuses);
    expect(after.status.podIP).toBe(before.status.podIP);
    await cluster.server.kubectl(["delete", "pods", "--all", "--namespace=pods", "--timeout=60s"]);
  });

  testLong("loses its sandboxes by a reboot, starts the pod in a new one, and gives the old address back", async () => {
    const empty = await tracesOf(node.host, network);
    await cluster.server.apply(podOf("again"));
    await untilPodReady("again");

    await node.reboot();
    const hasRestarted = async () => {
      const { status } = await readPod(cluster.server, NAMESPACE, "again");
      return status.containerStatuses?.every(({ restartCount, ready }) => restartCount > 0 && ready) ?? false;
    };
    await pollUntil(hasRestarted, "the pod to start again", 60_000);

    await deletePod(cluster.server, NAMESPACE, "again");
    await expectTraces(node.host, network, empty);
  });

  testLong("runs a static pod", async () => {
    node.host.writeFile(`${MANIFESTS}/static.json`, podOf("static"));
    const { metadata } = await untilPodReady("static-node-1");

    expect(Object.keys(metadata.annotations ?? {})).toContain("kubernetes.io/config.mirror");
  });

  const untilPodReady = (name: string) => waitForPod(cluster.server, NAMESPACE, name);
});

describe("a node of an IPv6 cluster", () => {
  testLong("runs a pod with an IPv6 address only, scaled by a Deployment", async () => {
    await using cluster = await openKubeCluster({ families: ["ipv6"] });
    await cluster.addNode({ name: "node-6", install: (host) => installNetwork(host, onlyIpv6) });
    await cluster.server.createNamespace(NAMESPACE);

    await cluster.server.apply(workloadManifest("Deployment", { name: "many", namespace: NAMESPACE, replicas: 2 }));
    await cluster.server.kubectl(["rollout", "status", "deployment/many", `--namespace=${NAMESPACE}`, "--timeout=60s"]);

    const { items } = await cluster.server.get<{ items: readonly Pod[] }>("pods", `--namespace=${NAMESPACE}`);
    expect(items.map(({ status }) => status.podIPs?.map(({ ip }) => ip.slice(0, 6)))).toEqual([["fd77::"], ["fd77::"]]);
  });
});
