/**
 * The product as the network of a real node, installed as an operator does it:
 *
 *   control plane host                 node host
 *   etcd  <──────────────┬──────────── vendor, portmap, bandwidth in /opt/cni/bin, conflist in /etc/cni/net.d,
 *   kube-apiserver <─────┘             optionally the node agent
 *
 * The datastore is the cluster's own etcd or its API, so what ends one of them ends both.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BANDWIDTH_ENTRY } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import type { Host } from "./host.ts";
import { type HostDaemon, startHostDaemon } from "./host-daemon.ts";
import type { ApiServer } from "./kube-apiserver.ts";
import { type KubeCluster, kubeClusterProblem, openKubeCluster } from "./kube-cluster.ts";
import { FAMILIES, type Families, poolsOf, type TestPool } from "./kube-families.ts";
import type { KubeNode } from "./kube-node.ts";
import { anyUpstreamPlugins, BIN_DIRECTORY, installNetwork, type NetworkUnderTest } from "./network-under-test.ts";
import { pollUntil } from "./poll.ts";
import { recordedBy } from "./product-network.ts";

export interface ProductNetworkPlan {
  readonly datastore: "etcd" | "kubernetes";
  readonly families: Families;
  /** Encapsulation of the pools; absent: none. */
  readonly tunnels?: "VXLAN";
  /** Whether pods wait for the rules of the cluster's NetworkPolicies, which the node agent enforces; on etcd the plugin records what those select by. */
  readonly policy?: "k8s";
  /** Where addresses come from: the pools, which is the default, or the range that the cluster has assigned to the node. */
  readonly addresses?: "of pools" | "of the node";
}

export interface ProductClusterPlan extends ProductNetworkPlan {
  readonly calls: "by themselves" | "by the node agent";
}

export interface ProductControlPlane extends AsyncDisposable {
  readonly server: ApiServer;
  /** The host of the control plane. */
  readonly host: Host;
  /** The ranges of the addresses of pods. */
  readonly podRanges: readonly string[];
  /**
   * Adds a node with the network of this name. `images`: archives of images that its pods use; `install`: instead of the
   * usual installation of the network.
   */
  addNode(name: string, images?: readonly string[], install?: typeof installNetwork): Promise<KubeNode>;
  /** The network of the node of this name. */
  networkOf(name: string): Promise<NetworkUnderTest>;
  /** Runs the admin tool on a node, as the administrator of the cluster. */
  adminOn(node: KubeNode, args: readonly string[], stdin?: string): Promise<string>;
}

export interface ProductCluster extends AsyncDisposable {
  readonly controlPlane: ProductControlPlane;
  readonly server: ApiServer;
  /** The host of the control plane. */
  readonly host: Host;
  readonly node: KubeNode;
  /** Adds another node with the same network. */
  addNode(name: string): Promise<KubeNode>;
  readonly network: NetworkUnderTest;
  /** The node agent, if it serves the calls. */
  readonly agent?: HostDaemon;
  /** Starts the agent after a reboot, if it serves the calls, as the host's init would. */
  startAgent(): Promise<void>;
  /** Runs the admin tool on the node, as the administrator of the cluster. */
  admin(...args: readonly string[]): Promise<string>;
}

/** Why there is none here; undefined if there is. */
export function productClusterProblem(): string | undefined {
  return kubeClusterProblem();
}

export function titleOf({ datastore, families, calls }: ProductClusterPlan): string {
  return `${families}, datastore ${datastore}, calls done ${calls}`;
}

const KUBECONFIG = `/etc/cni/net.d/${identity.product}-kubeconfig`;
export const NODE_NAME = "node-1";

export async function openProductControlPlane(plan: ProductNetworkPlan): Promise<ProductControlPlane> {
  await using undo = new AsyncDisposableStack();
  const podRanges = podRangesOf(plan);
  const cluster: KubeCluster = undo.use(
    await openKubeCluster({
      families: FAMILIES[plan.families].families,
      controllerManagerFlags: plan.addresses === "of the node" ? nodeRangeFlags(podRanges) : [],
    }),
  );
  const { server, host } = cluster;
  const store = await prepareStore(server, plan.datastore);
  const networkOf = (name: string) => productNetworkOf(plan, store, name);
  const all = undo.move();
  return {
    server,
    host,
    podRanges,
    networkOf,
    async addNode(name, images = [], install = installNetwork) {
      const network = await networkOf(name);
      return cluster.addNode({ name, images, install: (nodeHost) => install(nodeHost, network) });
    },
    adminOn: (node, args, stdin) => runAdmin(node.host, store.environment, args, stdin),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export async function openProductCluster(plan: ProductClusterPlan): Promise<ProductCluster> {
  await using undo = new AsyncDisposableStack();
  const controlPlane = undo.use(await openProductControlPlane(plan));
  const { server, host, networkOf, adminOn } = controlPlane;
  const addNode = async (name: string): Promise<KubeNode> => {
    const added = await controlPlane.addNode(name);
    // Every agent does this for its own node.
    if (plan.calls === "by themselves") await adminOn(added, ["node", "register"]);
    return added;
  };
  const node = await addNode(NODE_NAME);
  const agent = plan.calls === "by the node agent" ? await startAgentOn(node) : undefined;
  const network = await networkOf(NODE_NAME);
  const all = undo.move();
  return {
    controlPlane,
    server,
    host,
    node,
    addNode,
    network,
    ...(agent ? { agent } : {}),
    async startAgent() {
      agent?.start();
      if (agent) await untilAgentServes(agent);
    },
    admin: (...args) => adminOn(node, args),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Starts the node agent, as the host's init would: it reads the installed network config, and has no other rights. */
export async function startAgentOn({ host }: KubeNode): Promise<HostDaemon> {
  const agent = startHostDaemon(host, "agent", [join(BIN_DIRECTORY, identity.nodeAgent)]);
  await untilAgentServes(agent);
  return agent;
}

function podRangesOf({ families, addresses = "of pools" }: ProductNetworkPlan): readonly string[] {
  return addresses === "of pools"
    ? poolsOf(families, "usual").map(({ cidr }) => cidr)
    : FAMILIES[families].families.flatMap((family) => (family === undefined ? [] : [NODE_RANGES[family]]));
}

const NODE_RANGES = { ipv4: "10.244.0.0/16", ipv6: "fd00:244::/56" };

function nodeRangeFlags(ranges: readonly string[]): readonly string[] {
  return ["--allocate-node-cidrs=true", `--cluster-cidr=${ranges.join(",")}`];
}

interface Store {
  /** The fields of the network config that select it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The same for the admin tool, as the administrator of the cluster. */
  readonly environment: Readonly<Record<string, string>>;
  /** The kubeconfig of the plugin, under its own role. */
  readonly kubeconfig: string;
}

async function prepareStore(server: ApiServer, datastore: ProductNetworkPlan["datastore"]): Promise<Store> {
  if (datastore === "kubernetes") await server.kubectl(["apply", `--filename=${deployed("crds")}`]);
  await server.kubectl(["apply", `--filename=${deployed(`rbac/${identity.product}-${datastore}.yaml`)}`]);
  if (datastore === "kubernetes") {
    await server.kubectl(["apply", `--filename=${deployed(`rbac/${identity.product}-node-kubernetes.yaml`)}`]);
  }
  const account = await server.serviceAccount({ name: identity.product });
  const kubeconfig = readFileSync(account.kubeconfig, "utf8");
  if (datastore === "etcd") {
    const endpoint = server.etcdEndpoint;
    return { config: { etcd_endpoints: endpoint }, environment: { ETCD_ENDPOINTS: endpoint }, kubeconfig };
  }
  await server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);
  return {
    config: { datastore_type: datastore },
    environment: { DATASTORE_TYPE: datastore, KUBECONFIG: server.adminKubeconfig },
    kubeconfig,
  };
}

function deployed(name: string): string {
  return join(import.meta.dir, "../../deploy", name);
}

async function productNetworkOf(plan: ProductNetworkPlan, store: Store, nodename: string): Promise<NetworkUnderTest> {
  const name = "pods";
  const main = {
    type: identity.product,
    nodename,
    log_level: "INFO",
    log_file_path: "/var/log/vendor/cni/cni.log",
    ...store.config,
    kubernetes: { kubeconfig: KUBECONFIG },
    feature_control: { ip_addrs_no_ipam: true, floating_ips: true, allowed_source_prefixes: true },
    ipam: ipamOf(plan),
    ...(plan.policy === undefined ? {} : { policy: { type: plan.policy } }),
  };
  const portmap = { type: "portmap", capabilities: { portMappings: true }, snat: true };
  const plugins = [main, portmap, BANDWIDTH_ENTRY];
  const admin = (host: Host, args: readonly string[], stdin?: string) => runAdmin(host, store.environment, args, stdin);
  return {
    title: `${plan.families}, datastore ${plan.datastore}`,
    name,
    addressPrefixes: poolsOf(plan.families, "usual").map(({ prefix }) => prefix),
    versions: ["1.0.0"],
    collectsGarbage: true,
    // Upstream's for `loopback`, which the CRI calls for every pod.
    pluginDirectories: [join(import.meta.dir, "../../dist/bin"), await anyUpstreamPlugins()],
    conflist: (cniVersion) => ({ cniVersion, name, plugins }),
    async prepare(host) {
      host.writeFile(KUBECONFIG, store.kubeconfig);
      await admin(host, ["datastore", "init"]);
      await admin(
        host,
        ["apply", "-f", "-"],
        poolsOf(plan.families, "all")
          .map((pool) => poolText(pool, plan))
          .join("\n---\n"),
      );
    },
    kept: (host) => recordedBy((...args) => admin(host, args)),
  };
}

function ipamOf({ families, addresses = "of pools" }: ProductNetworkPlan): object {
  if (addresses === "of pools") return { type: identity.ipamType, ...FAMILIES[families].ipam };
  const subnets = { ipv4: "usePodCidr", ipv6: "usePodCidrIPv6" };
  const ranges = FAMILIES[families].families.flatMap((family) =>
    family === undefined ? [] : [[{ subnet: subnets[family] }]],
  );
  return { type: "host-local", ranges };
}

function poolText({ name, cidr, onlyIfAsked }: TestPool, { tunnels }: ProductNetworkPlan): string {
  const spec = {
    cidr,
    natOutgoing: true,
    ...(tunnels === "VXLAN" ? { vxlanMode: "Always" } : {}),
    ...(onlyIfAsked ? { nodeSelector: "!all()" } : {}),
  };
  return JSON.stringify({ apiVersion: `${identity.apiGroup}/v3`, kind: "IPPool", metadata: { name }, spec });
}

function runAdmin(
  host: Host,
  environment: Readonly<Record<string, string>>,
  args: readonly string[],
  stdin?: string,
): Promise<string> {
  const command = [join(BIN_DIRECTORY, identity.adminTool), ...args];
  return host.must(command, { environment, ...(stdin === undefined ? {} : { stdin }) });
}

async function untilAgentServes(agent: HostDaemon): Promise<void> {
  await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the node agent to serve");
}
