/**
 * A cluster from nothing: an API server with a controller manager and a scheduler, and nodes on which there is no network
 * yet, as an administrator finds them before the product is installed:
 *
 *   control plane host                 node-1                                       node-2
 *   etcd, API server, scheduler,       kubelet, containerd, kube-proxy,             the same
 *   controller manager                 `loopback` in /opt/cni/bin, the product's image
 */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "./host.ts";
import type { HostDaemon } from "./host-daemon.ts";
import type { ApiServer, ApiServerPlan } from "./kube-apiserver.ts";
import { kubeClusterProblem, openKubeCluster } from "./kube-cluster.ts";
import type { KubeNode, KubeNodePlan } from "./kube-node.ts";
import { startKubeProxy } from "./kube-proxy.ts";
import { anyUpstreamPlugins, BIN_DIRECTORY } from "./network-under-test.ts";
import { type NodeState, nodeState } from "./node-state.ts";
import { pollUntil } from "./poll.ts";
import { type ProductImage, productImage, productImageProblem } from "./product-image.ts";

export interface BareNode extends KubeNode {
  /** What there was before the product was installed. */
  readonly before: NodeState;
  readonly proxy: HostDaemon;
}

export interface BareControlPlane extends AsyncDisposable {
  readonly server: ApiServer;
  /** The host of the control plane: a machine outside the pod network. */
  readonly host: Host;
  readonly image: ProductImage;
  /** Adds a node, which is not Ready before there is a network. `images`: besides the product's. */
  addNode(name: string, more?: Pick<KubeNodePlan, "images" | "kubelet">): Promise<BareNode>;
}

export interface BareCluster extends BareControlPlane {
  readonly nodes: readonly BareNode[];
}

/** The addresses of pods in this cluster; each node has a part of them, for IPAM that uses it. */
export const POD_RANGES = ["10.244.0.0/16", "fd00:244::/56"] as const;

/** Why there is none here; undefined if there is. */
export function bareClusterProblem(): string | undefined {
  return kubeClusterProblem() ?? productImageProblem();
}

interface BarePlan extends Pick<ApiServerPlan, "apiServerFlags"> {
  /** IPv4: of its nodes, Services and pods; IPv6 may be added later. */
  readonly families?: "dual stack" | "IPv4";
}

/** With node-1 and node-2. */
export async function openBareCluster(plan: BarePlan = {}): Promise<BareCluster> {
  await using undo = new AsyncDisposableStack();
  const controlPlane = undo.use(await openBareControlPlane(plan));
  const nodes = [await controlPlane.addNode("node-1"), await controlPlane.addNode("node-2")];
  const all = undo.move();
  return { ...controlPlane, nodes, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

export async function openBareControlPlane({
  families = "dual stack",
  ...more
}: BarePlan = {}): Promise<BareControlPlane> {
  const image = await productImage();
  const podRanges = families === "IPv4" ? POD_RANGES.slice(0, 1) : POD_RANGES;
  const controllerManagerFlags = ["--allocate-node-cidrs=true", `--cluster-cidr=${podRanges.join(",")}`];
  const cluster = await openKubeCluster({
    controllerManagerFlags,
    ...(families === "IPv4" ? { families: ["ipv4"] } : {}),
    ...more,
  });
  const { server, host } = cluster;
  return {
    server,
    host,
    image,
    async addNode(name, { images = [], ...more } = {}) {
      const node = await cluster.addNode({ name, images: [image.archive, ...images], ...more });
      await installLoopback(node.host);
      const proxy = startKubeProxy(node.host, server, { node: name, podRanges });
      await pollUntil(() => hasProxyRules(node.host), `kube-proxy on ${name}`, 30_000);
      return { ...node, proxy, before: await nodeState(node.host) };
    },
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

/** The CRI calls it for every pod; it comes with the packages of the runtime, not with a network. */
async function installLoopback(host: Host): Promise<void> {
  copyFileSync(join(await anyUpstreamPlugins(), "loopback"), host.view(join(BIN_DIRECTORY, "loopback")));
}

/** The node reaches the API server at the address of its Service. */
async function hasProxyRules(host: Host): Promise<boolean> {
  const rules = await host.must(["nft", "list", "ruleset"]);
  return rules.includes("10.96.0.1") && rules.includes("table ip6 kube-proxy");
}
