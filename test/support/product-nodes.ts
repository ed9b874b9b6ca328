/**
 * Nodes of a cluster whose network is the product:
 *
 *   control plane host                 node-1                              node-2
 *   etcd, API server, scheduler,       kubelet, containerd, pods           the same
 *   controller manager,                kube-proxy
 *   vendor-controllers                 vendor-node
 *
 * Every program is a process of its own under its own role, as it is deployed.
 */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { type HostDaemon, startHostDaemon } from "./host-daemon.ts";
import type { KubeNode } from "./kube-node.ts";
import { type ProductControlPlane, type ProductNetworkPlan, startAgentOn } from "./kube-product.ts";
import { startKubeProxy } from "./kube-proxy.ts";
import { pollUntil } from "./poll.ts";

export interface ProductNode {
  readonly node: KubeNode;
  readonly agent: HostDaemon;
  readonly proxy: HostDaemon;
  /** A power loss; then everything that the node starts at boot is started again. */
  reboot(): Promise<void>;
}

const DEPLOYED = join(import.meta.dir, "../../deploy/rbac");
const CONTROLLERS = join(import.meta.dir, "../../dist/bin", identity.controllers);

/** Adds a node and starts everything that runs on it. */
export async function addProductNode(cluster: ProductControlPlane, name: string): Promise<ProductNode> {
  return startProductNode(cluster, await cluster.addNode(name));
}

/** Starts what runs on a node beside the kubelet. */
export async function startProductNode(
  { server, podRanges }: ProductControlPlane,
  node: KubeNode,
): Promise<ProductNode> {
  const proxy = startKubeProxy(node.host, server, { node: node.name, podRanges });
  const agent = await startAgentOn(node);
  return {
    node,
    agent,
    proxy,
    async reboot() {
      await Promise.all([agent.kill(), proxy.kill()]);
      await node.reboot();
      agent.start();
      proxy.start();
    },
  };
}

/** On the host of the control plane, under the role of the datastore. */
export async function startProductControllers(
  { server, host }: ProductControlPlane,
  datastore: ProductNetworkPlan["datastore"],
): Promise<HostDaemon> {
  await server.kubectl(["apply", `--filename=${DEPLOYED}/${identity.controllers}-${datastore}.yaml`]);
  const { kubeconfig } = await server.serviceAccount({ name: identity.controllers });
  const environment = {
    KUBECONFIG: kubeconfig,
    ...(datastore === "etcd"
      ? { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: server.etcdEndpoint }
      : { DATASTORE_TYPE: datastore }),
  };
  const variables = Object.entries(environment).map((pair) => pair.join("="));
  const controllers = startHostDaemon(host, "controllers", ["env", ...variables, CONTROLLERS]);
  const hasStarted = () => controllers.log().includes("created the configuration");
  await pollUntil(hasStarted, "the controllers to start").catch((error) => {
    throw new Error(`${error.message}:\n${controllers.log()}`, { cause: error });
  });
  return controllers;
}
