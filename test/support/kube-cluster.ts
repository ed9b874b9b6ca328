/**
 * A cluster on private hosts:
 *
 *   control plane host                              node host
 *   etcd, API server, controller manager,           kubelet, containerd, pods
 *   scheduler
 *   bridge 10.199.0.1/24, fd00:199::1/64 ── port1 ── eth0 10.199.0.11, fd00:199::11
 *                                        └─ port2 ── eth0 10.199.0.12, fd00:199::12 …
 *
 * The control plane has no kube-proxy: its packets to Services go to the first node, so that the API server reaches aggregated APIs.
 *
 * The machine's own network is not touched: a test talks to the cluster with
 * `server.kubectl`, or with programs inside a host.
 */
import { type Host, openHost } from "./host.ts";
import { type ApiServer, type ApiServerPlan, apiServerProblem, startApiServer } from "./kube-apiserver.ts";
import { type KubeNode, type KubeNodePlan, kubeNodeProblem, startKubeNode } from "./kube-node.ts";

export interface KubeCluster extends AsyncDisposable {
  readonly server: ApiServer;
  /** The host of the control plane. */
  readonly host: Host;
  /** Adds a node and waits until it is Ready. */
  addNode(plan: KubeNodePlan): Promise<KubeNode>;
}

type Family = "ipv4" | "ipv6";

interface ClusterPlan extends Omit<ApiServerPlan, "place" | "serviceCidrs"> {
  /** Of its nodes and services; the first is the one of the API server. Default: both, IPv4 first. */
  readonly families?: readonly [Family, Family?];
}

interface Network {
  readonly controlPlane: string;
  readonly prefixLength: number;
  /** The address of the node with this number. */
  node(number: number): string;
  readonly services: string;
}

const NETWORKS: Readonly<Record<Family, Network>> = {
  ipv4: {
    controlPlane: "10.199.0.1",
    prefixLength: 24,
    node: (number) => `10.199.0.${10 + number}`,
    services: "10.96.0.0/16",
  },
  ipv6: {
    controlPlane: "fd00:199::1",
    prefixLength: 64,
    node: (number) => `fd00:199::${10 + number}`,
    services: "fd00:96::/112",
  },
};

/** Why there is no cluster here; undefined if there is. */
export function kubeClusterProblem(): string | undefined {
  return apiServerProblem() ?? kubeNodeProblem();
}

export async function openKubeCluster(plan: ClusterPlan = {}): Promise<KubeCluster> {
  await using undo = new AsyncDisposableStack();
  const { families = ["ipv4", "ipv6"], ...more } = plan;
  const networks = families.flatMap((family) => (family === undefined ? [] : [NETWORKS[family]]));
  const host = undo.use(await openHost());
  await host.must(["ip", "link", "add", "bridge", "type", "bridge"]);
  for (const { controlPlane, prefixLength } of networks) await addAddress(host, "bridge", controlPlane, prefixLength);
  await host.must(["ip", "link", "set", "bridge", "up"]);
  const server = await startApiServer({
    with: ["controller-manager", "scheduler"],
    ...more,
    serviceCidrs: networks.map(({ services }) => services),
    place: { netns: host.netns, address: networks[0]?.controlPlane ?? "" },
  });
  undo.defer(server.stop);

  const all = undo.move();
  let nodes = 0;
  return {
    server,
    host,
    async addNode(nodePlan) {
      nodes += 1;
      const number = nodes;
      const connect = (nodeHost: Host) => connectNode(host, nodeHost, number, networks);
      const addresses = networks.map(({ node }) => node(number));
      return all.use(await startKubeNode(server, nodePlan, { addresses, connect }));
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function connectNode(
  controlPlane: Host,
  node: Host,
  number: number,
  networks: readonly Network[],
): Promise<void> {
  const port = `port${number}`;
  connectHosts({ host: controlPlane, port }, node);
  await controlPlane.must(["ip", "link", "set", port, "master", "bridge", "up"]);
  await node.must(["ip", "link", "set", "eth0", "up"]);
  for (const network of networks) {
    await addAddress(node, "eth0", network.node(number), network.prefixLength);
    await node.must(["ip", "route", "add", "default", "via", network.controlPlane]);
    if (number === 1) await controlPlane.must(["ip", "route", "add", network.services, "via", network.node(number)]);
  }
}

/** `nodad`: usable at once. */
async function addAddress(host: Host, link: string, address: string, prefixLength: number): Promise<void> {
  await host.must(["ip", "address", "add", `${address}/${prefixLength}`, "dev", link, "nodad"]);
}

/** A cable from a port of the first host to eth0 of the second. */
function connectHosts(from: { readonly host: Host; readonly port: string }, to: Host): void {
  const pid = /^\/proc\/(\d+)\//.exec(to.netns)?.[1] ?? "";
  const cable = ["link", "add", from.port, "type", "veth", "peer", "name", "eth0", "netns", pid];
  // Not in the process namespace of the host: there the other one has no number.
  const { exitCode, stderr } = Bun.spawnSync(["nsenter", `--net=${from.host.netns}`, "--", "ip", ...cable]);
  if (exitCode !== 0) throw new Error(`ip ${cable.join(" ")}: ${stderr}`);
}
