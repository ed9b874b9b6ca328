/**
 * A cluster on private hosts:
 *
 *   control plane host                              node host
 *   etcd, API server, controller manager,           kubelet, containerd, pods
 *   scheduler
 *   bridge 10.199.0.1/24, fd00:199::1/64 ── port1 ── eth0 10.199.0.11, fd00:199::11
 *                                        └─ port2 ── eth0 10.199.0.12, fd00:199::12 …
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

const ADDRESS = "10.199.0.1";
const ADDRESS6 = "fd00:199::1";

/** Why there is no cluster here; undefined if there is. */
export function kubeClusterProblem(): string | undefined {
  return apiServerProblem() ?? kubeNodeProblem();
}

export async function openKubeCluster(plan: Omit<ApiServerPlan, "place"> = {}): Promise<KubeCluster> {
  await using undo = new AsyncDisposableStack();
  const host = undo.use(await openHost());
  await host.must(["ip", "link", "add", "bridge", "type", "bridge"]);
  await host.must(["ip", "address", "add", `${ADDRESS}/24`, "dev", "bridge"]);
  await host.must(["ip", "address", "add", `${ADDRESS6}/64`, "dev", "bridge", "nodad"]);
  await host.must(["ip", "link", "set", "bridge", "up"]);
  const place = { netns: host.netns, address: ADDRESS };
  const server = await startApiServer({ with: ["controller-manager", "scheduler"], ...plan, place });
  undo.defer(server.stop);

  const all = undo.move();
  let nodes = 0;
  return {
    server,
    host,
    async addNode(nodePlan) {
      nodes += 1;
      const addresses = [`10.199.0.${10 + nodes}`, `fd00:199::${10 + nodes}`] as const;
      const port = `port${nodes}`;
      const connect = async (nodeHost: Host) => {
        connectHosts({ host, port }, nodeHost);
        await host.must(["ip", "link", "set", port, "master", "bridge", "up"]);
        await nodeHost.must(["ip", "address", "add", `${addresses[0]}/24`, "dev", "eth0"]);
        await nodeHost.must(["ip", "address", "add", `${addresses[1]}/64`, "dev", "eth0", "nodad"]);
        await nodeHost.must(["ip", "link", "set", "eth0", "up"]);
        await nodeHost.must(["ip", "route", "add", "default", "via", ADDRESS]);
        await nodeHost.must(["ip", "route", "add", "default", "via", ADDRESS6]);
      };
      return all.use(await startKubeNode(server, nodePlan, { addresses, connect }));
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** A cable from a port of the first host to eth0 of the second. */
function connectHosts(from: { readonly host: Host; readonly port: string }, to: Host): void {
  const pid = /^\/proc\/(\d+)\//.exec(to.netns)?.[1] ?? "";
  const cable = ["link", "add", from.port, "type", "veth", "peer", "name", "eth0", "netns", pid];
  // Not in the process namespace of the host: there the other one has no number.
  const { exitCode, stderr } = Bun.spawnSync(["nsenter", `--net=${from.host.netns}`, "--", "ip", ...cable]);
  if (exitCode !== 0) throw new Error(`ip ${cable.join(" ")}: ${stderr}`);
}
