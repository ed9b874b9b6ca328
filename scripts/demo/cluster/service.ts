/** A Service leads to a pod of the other node, by kube-proxy. */
import { serviceManifest, untilConnects } from "../../../test/support/across-nodes.ts";
import { fetchFromHost } from "../../../test/support/connectivity.ts";
import { NAMESPACE } from "../../../test/support/pods-in-namespace.ts";
import type { ClusterEnvironment } from "../../cluster/environment.ts";
import type { StepResult } from "../output.ts";

const SERVER = "web";
const CLIENT = "shop";
const NODE_PORT = 30080;

export async function reachService({ cluster, nodes: [node], pods }: ClusterEnvironment): Promise<StepResult> {
  if (node === undefined) throw new Error("The cluster has no node");
  await cluster.server.apply(serviceManifest({ name: SERVER, app: SERVER, nodePort: NODE_PORT }));
  const { spec } = await cluster.server.get<Service>("service", SERVER, `--namespace=${NAMESPACE}`);
  await untilConnects(pods, { from: CLIENT, to: spec.clusterIPs }, "open");
  for (const address of node.addresses) {
    const name = await fetchFromHost(cluster.host, address, NODE_PORT, "/hostname");
    if (name !== SERVER) throw new Error(`Port ${NODE_PORT} of ${address} leads to "${name}", not to "${SERVER}"`);
  }
  const [ipv4, ipv6] = spec.clusterIPs;
  return {
    summary: `"${CLIENT}" reaches "${SERVER}" at ${ipv4} and ${ipv6}, and port ${NODE_PORT} of ${node.name} leads to it`,
  };
}

interface Service {
  readonly spec: { readonly clusterIPs: readonly string[] };
}
