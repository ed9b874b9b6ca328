/** Tests of a cluster with two nodes: pods "a" on the first, "b" and "c" on the second, each with its name as the label `app`. */
import { expect } from "bun:test";
import { policyManifest, serviceManifest, sourceSeenAt, untilConnects, untilPings } from "../support/across-nodes.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import type { Host } from "../support/host.ts";
import type { ApiServer } from "../support/kube-apiserver.ts";
import { addressesOf } from "../support/kube-pods.ts";
import type { testNeeding } from "../support/needs.ts";
import { NAMESPACE, type Pods } from "../support/pods-in-namespace.ts";
import type { ProductNode } from "../support/product-nodes.ts";

export interface TwoNodes {
  readonly server: ApiServer;
  /** The host of the control plane: a machine outside the pod network. */
  readonly outside: Host;
  readonly first: Pick<ProductNode, "node">;
  readonly second: Pick<ProductNode, "node">;
  readonly pods: Pods;
}

const NODE_PORT = 30080;
const NODES = { a: "node-1", b: "node-2", c: "node-2" };

export async function startPodsOfTwoNodes(pods: Pods): Promise<void> {
  const plans = Object.entries(NODES).map(([name, nodeName]) => ({ name, labels: { app: name }, spec: { nodeName } }));
  await pods.create(...plans);
  await Promise.all(plans.map(({ name }) => pods.ready(name)));
}

/** Waits until each replies to the pings of the other, in each family. */
export async function untilReachEachOther(pods: Pods, one: string, other: string): Promise<void> {
  await untilPings(pods, one, await addressesIn(pods, other));
  await untilPings(pods, other, await addressesIn(pods, one));
}

export async function addressesIn(pods: Pods, name: string): Promise<readonly string[]> {
  return addressesOf(await pods.get(name));
}

/** `nodes`: the cluster, when the tests run. */
export function acrossNodesTests(test: ReturnType<typeof testNeeding>, nodes: () => TwoNodes): void {
  test("pods of different nodes reach each other by their own addresses", async () => {
    const { pods } = nodes();
    await untilReachEachOther(pods, "a", "b");
    const own = await addressesIn(pods, "a");
    for (const [index, address] of (await addressesIn(pods, "b")).entries()) {
      expect(await sourceSeenAt(pods, "a", address)).toBe(own[index] ?? "");
    }
  });

  test("a Service leads to the pod of the other node, by its own address and by a port of each node", async () => {
    const { server, pods, first, second, outside } = nodes();
    await server.apply(serviceManifest({ name: "b", app: "b", nodePort: NODE_PORT }));
    const { spec } = await server.get<Service>("service", "b", `--namespace=${NAMESPACE}`);
    for (const from of ["a", "c"]) await untilConnects(pods, { from, to: spec.clusterIPs }, "open");
    for (const address of [...first.node.addresses, ...second.node.addresses]) {
      expect(await fetchFromHost(outside, address, NODE_PORT, "/hostname")).toBe("b");
    }
    const [through = ""] = first.node.addresses;
    expect(await fetchFromHost(second.node.host, through, NODE_PORT, "/hostname")).toBe("b");
  });

  test("a NetworkPolicy closes a pod to those of the other node, and opens it to one of them by its label", async () => {
    const { server, pods } = nodes();
    const to = await addressesIn(pods, "a");
    await untilConnects(pods, { from: "b", to }, "open");
    await server.apply(policyManifest("a", []));
    await untilConnects(pods, { from: "b", to }, "closed");
    // Its probes come from its own host.
    await pods.ready("a");
    await server.apply(policyManifest("a", [{ from: [{ podSelector: { matchLabels: { app: "b" } } }] }]));
    await untilConnects(pods, { from: "b", to }, "open");
    await untilConnects(pods, { from: "c", to }, "closed");
    await server.kubectl(["delete", "networkpolicy.networking.k8s.io", "a", `--namespace=${NAMESPACE}`]);
    await untilConnects(pods, { from: "c", to }, "open");
  });
}

interface Service {
  readonly spec: { readonly clusterIPs: readonly string[] };
}
