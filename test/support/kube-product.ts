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

export interface ProductClusterPlan {
  readonly datastore: "etcd" | "kubernetes";
  readonly families: Families;
  readonly calls: "by themselves" | "by the node agent";
}

export interface ProductCluster extends AsyncDisposable {
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

export async function openProductCluster(plan: ProductClusterPlan): Promise<ProductCluster> {
  await using undo = new AsyncDisposableStack();
  const cluster: KubeCluster = undo.use(await openKubeCluster({ families: FAMILIES[plan.families].families }));
  const { server } = cluster;
  const store = await prepareStore(server, plan.datastore);
  const network = await networkOf(plan, store);
  const addNode = async (name: string): Promise<KubeNode> => {
    const ofNode = name === NODE_NAME ? network : await networkOf(plan, store, name);
    const added = await cluster.addNode({ name, install: (host) => installNetwork(host, ofNode) });
    await runAdmin(added.host, store.environment, ["node", "register"]);
    return added;
  };
  const node = await addNode(NODE_NAME);
  const startAgent = () => startHostDaemon(node.host, "agent", [join(BIN_DIRECTORY, identity.nodeAgent)]);
  const agent = plan.calls === "by the node agent" ? startAgent() : undefined;
  if (agent) await untilAgentServes(agent);
  const all = undo.move();
  return {
    server,
    host: cluster.host,
    node,
    addNode,
    network,
    ...(agent ? { agent } : {}),
    async startAgent() {
      agent?.start();
      if (agent) await untilAgentServes(agent);
    },
    admin: (...args) => runAdmin(node.host, store.environment, args),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

interface Store {
  /** The fields of the network config that select it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The same for the admin tool, as the administrator of the cluster. */
  readonly environment: Readonly<Record<string, string>>;
  /** The kubeconfig of the plugin, under its own role. */
  readonly kubeconfig: string;
}

async function prepareStore(server: ApiServer, datastore: ProductClusterPlan["datastore"]): Promise<Store> {
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

async function networkOf(plan: ProductClusterPlan, store: Store, nodename = NODE_NAME): Promise<NetworkUnderTest> {
  const name = "pods";
  const main = {
    type: identity.product,
    nodename,
    log_level: "INFO",
    log_file_path: "/var/log/vendor/cni/cni.log",
    ...store.config,
    kubernetes: { kubeconfig: KUBECONFIG },
    feature_control: { ip_addrs_no_ipam: true, floating_ips: true },
    ipam: { type: identity.ipamType, ...FAMILIES[plan.families].ipam },
  };
  const portmap = { type: "portmap", capabilities: { portMappings: true }, snat: true };
  const plugins = [main, portmap, { type: "bandwidth", capabilities: { bandwidth: true } }];
  const admin = (host: Host, args: readonly string[], stdin?: string) => runAdmin(host, store.environment, args, stdin);
  return {
    title: titleOf(plan),
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
      await admin(host, ["apply", "-f", "-"], poolsOf(plan.families, "all").map(poolText).join("\n---\n"));
    },
    kept: (host) => recordedBy((...args) => admin(host, args)),
  };
}

function poolText({ name, cidr, onlyIfAsked }: TestPool): string {
  const spec = { cidr, natOutgoing: true, ...(onlyIfAsked ? { nodeSelector: "!all()" } : {}) };
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
