/** A real kubelet with containerd runs pods on upstream's plugins: validates the cluster that other tests use. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type KubeCluster, kubeClusterProblem, openKubeCluster } from "../support/kube-cluster.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";
import { type KubeNode, MANIFESTS } from "../support/kube-node.ts";
import { testNeeding } from "../support/needs.ts";
import { installNetwork, upstreamNetwork } from "../support/network-under-test.ts";
import { pollUntil } from "../support/poll.ts";
import { expectTraces, tracesOf } from "../support/traces.ts";

const network = await upstreamNetwork();
const problem = kubeClusterProblem() ?? network.missing;
const testNode = testNeeding(problem);

interface Pod {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly status: {
    readonly podIP: string;
    readonly podIPs: readonly { readonly ip: string }[];
    readonly containerStatuses: readonly { readonly restartCount: number; readonly ready: boolean }[];
  };
}

describe("a node with upstream's plugins", () => {
  let cluster: KubeCluster;
  let node: KubeNode;
  beforeAll(async () => {
    if (problem !== undefined) return;
    cluster = await openKubeCluster();
    node = await cluster.addNode({ name: "node-1", install: (host) => installNetwork(host, network) });
    await cluster.server.createNamespace("pods");
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  testNode("runs a pod with addresses of the network, and leaves nothing of it", async () => {
    const before = await tracesOf(node.host, network);

    await cluster.server.apply(podOf("one"));
    await untilPodReady("one");
    const { status } = await cluster.server.get<Pod>("pod", "one", "--namespace=pods");
    for (const [index, prefix] of network.addressPrefixes.entries()) {
      expect(status.podIPs[index]?.ip).toStartWith(prefix);
    }
    expect(await cluster.server.kubectl(["exec", "one", "--namespace=pods", "--", "ip", "-o", "address"])).toContain(
      `${status.podIP}/`,
    );

    await cluster.server.kubectl(["delete", "pod", "one", "--namespace=pods", "--timeout=60s"]);
    await expectTraces(node.host, network, before);
  });

  testNode("keeps a pod running while kubelet and containerd are killed and started again", async () => {
    await cluster.server.apply(podOf("kept"));
    await untilPodReady("kept");
    const before = await cluster.server.get<Pod>("pod", "kept", "--namespace=pods");

    await node.restartContainerd();
    await node.restartKubelet();
    await cluster.server.apply(podOf("later"));
    await untilPodReady("later");

    const after = await cluster.server.get<Pod>("pod", "kept", "--namespace=pods");
    expect(after.status.containerStatuses).toEqual(before.status.containerStatuses);
    expect(after.status.podIP).toBe(before.status.podIP);
    await cluster.server.kubectl(["delete", "pods", "--all", "--namespace=pods", "--timeout=60s"]);
  });

  testNode("loses its sandboxes by a reboot, starts the pod in a new one, and gives the old address back", async () => {
    const empty = await tracesOf(node.host, network);
    await cluster.server.apply(podOf("again"));
    await untilPodReady("again");

    await node.reboot();
    const hasRestarted = async () => {
      const { status } = await cluster.server.get<Pod>("pod", "again", "--namespace=pods");
      return status.containerStatuses.every(({ restartCount, ready }) => restartCount > 0 && ready);
    };
    await pollUntil(hasRestarted, "the pod to start again", 60_000);

    await cluster.server.kubectl(["delete", "pod", "again", "--namespace=pods", "--timeout=60s"]);
    await expectTraces(node.host, network, empty);
  });

  testNode("runs a static pod", async () => {
    node.host.writeFile(`${MANIFESTS}/static.json`, podOf("static"));
    await pollUntil(() => untilPodReady("static-node-1").then(() => true), "the static pod", 60_000);

    const { metadata } = await cluster.server.get<Pod>("pod", "static-node-1", "--namespace=pods");
    expect(Object.keys(metadata.annotations ?? {})).toContain("kubernetes.io/config.mirror");
  });

  const untilPodReady = (name: string) =>
    cluster.server.kubectl(["wait", "--for=condition=Ready", `pod/${name}`, "--namespace=pods", "--timeout=60s"]);
});

function podOf(name: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "pods" },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: "main",
          image: AGNHOST_IMAGE,
          imagePullPolicy: "Never",
          args: ["netexec", "--http-port=80"],
          readinessProbe: { httpGet: { path: "/", port: 80 }, periodSeconds: 1 },
        },
      ],
    },
  });
}
