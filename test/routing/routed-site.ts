/** The four hosts of a routed network as nodes: one datastore on the router, the built node agent and pods on each of them. */
import { identity } from "../../src/identity.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import type { Finished, Host } from "../support/host.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Place, servePlace } from "./reachability.ts";
import { resource } from "./resource.ts";
import { type NetworkNode, type NodeName, openRoutedNetwork, type RoutedNetwork } from "./routed-network.ts";
import { POD_NAMESPACE, type PodMetadata, type RouterDatastore } from "./router-datastore.ts";

export interface RoutedPod extends Place {
  readonly podName: string;
  readonly node: NetworkNode;
  readonly containerId: string;
}

export interface RoutedSite<Datastore extends RouterDatastore = RouterDatastore> extends AsyncDisposable {
  readonly network: RoutedNetwork;
  readonly datastore: Datastore;
  /** The nodes themselves, as senders. */
  readonly nodes: readonly Place[];
  /** The agent that runs on the node now. */
  agent(node: NodeName): Agent;
  /** Starts one where none runs. */
  startAgent(node: NodeName): Agent;
  /** Runs `vendorctl` on the router; it must succeed. */
  admin(words: string, stdin?: string): Promise<string>;
  /** Creates the resources, or replaces them. */
  apply(...resources: readonly object[]): Promise<void>;
  /** Runs ADD; the pod listens on port 80. `name`: `node-1/a`. */
  addPod(name: `${NodeName}/${string}`, plan?: RoutedPodPlan): Promise<RoutedPod>;
  /** Runs DEL, and deletes the pod. */
  removePod(pod: RoutedPod): Promise<void>;
}

export interface RoutedPodPlan {
  /** Of a pod that may have been on another node. */
  readonly podName?: string;
  /** Where pods are objects of the orchestrator's API. */
  readonly metadata?: PodMetadata;
}

export const POOLS = { ipv4: "10.50.0.0/16", ipv6: "fd50::/112" } as const;

export interface RoutedSitePlan<Datastore extends RouterDatastore> {
  readonly startDatastore: (router: Host) => Promise<Datastore>;
  /** Prefix lengths of blocks, IPv4 and IPv6: small blocks change often. */
  readonly blockSizes?: readonly [number, number];
  /** The nodes on which an agent runs; all by default. */
  readonly agents?: readonly NodeName[];
}

export async function openRoutedSite<Datastore extends RouterDatastore>({
  startDatastore,
  blockSizes = [26, 122],
  agents: withAgent,
}: RoutedSitePlan<Datastore>): Promise<RoutedSite<Datastore>> {
  await using undo = new AsyncDisposableStack();
  const network = undo.use(await openRoutedNetwork());
  const datastore = undo.use(await startDatastore(network.router));
  const agents = new Map<NodeName, Agent>();
  const servers = new Map<RoutedPod, Disposable>();
  undo.defer(() => servers.forEach((server) => void server[Symbol.dispose]()));
  let containers = 0;

  const startAgent: RoutedSite["startAgent"] = (name) => {
    const agent = launchAgent(network.node(name).host);
    agents.set(name, agent);
    return agent;
  };
  const call = async (command: "ADD" | "DEL", pod: PodCall): Promise<Finished> => {
    const { node, containerId, inner, name } = pod;
    const environment = {
      ...{ CNI_COMMAND: command, CNI_CONTAINERID: containerId, CNI_NETNS: inner, CNI_IFNAME: "eth0" },
      CNI_ARGS: `K8S_POD_NAMESPACE=${POD_NAMESPACE};K8S_POD_NAME=${pod.podName}`,
      CNI_PATH: "/opt/cni/bin",
    };
    const stdin = JSON.stringify(configOf(node.name, datastore));
    const finished = await node.host.run([builtProgram()], { stdin, environment });
    if (finished.code !== 0) throw new Error(`${command} of ${name}: ${finished.stdout}${finished.stderr}`);
    return finished;
  };

  const admin: RoutedSite["admin"] = (words, stdin) =>
    network.router.must([builtProgram(identity.adminTool), ...words.split(" ")], {
      environment: datastore.environment,
      ...(stdin === undefined ? {} : { stdin }),
    });
  const apply: RoutedSite["apply"] = async (...resources) =>
    void (await admin("apply -f -", resources.map((each) => JSON.stringify(each)).join("\n---\n")));

  await admin("datastore init");
  await apply(
    ...Object.entries(POOLS).map(([name, cidr], index) =>
      resource("IPPool", name, { cidr, vxlanMode: "Always", blockSize: blockSizes[index] }),
    ),
  );
  for (const { name, host, subnet } of network.nodes) {
    const labels = { subnet, node: name };
    if (datastore.addNode === undefined) await apply(resource("Node", name, {}, { labels }));
    await prepareNode({ name, host, labels }, datastore);
    if (withAgent?.includes(name) ?? true) startAgent(name);
  }
  const all = undo.move();
  return {
    network,
    datastore,
    nodes: network.nodes.map(({ name, host, addresses }) => ({
      ...{ name, host, addresses },
      ...{ inner: "/proc/1/ns/net", netns: host.netns },
    })),
    agent(name) {
      const agent = agents.get(name);
      if (agent === undefined) throw new Error(`no agent on ${name}`);
      return agent;
    },
    startAgent,
    admin,
    apply,
    async addPod(name, { podName: ownName = podName(name), metadata } = {}) {
      containers += 1;
      const container = `container ${containers}`;
      const [nodeName, own = ""] = name.split("/") as [NodeName, string];
      const node = network.node(nodeName);
      const inner = `/run/netns/vt-${own}`;
      await datastore.addPod?.(ownName, nodeName, metadata);
      await node.host.must(["sh", "-ec", `ip netns add vt-${own}; ip -n vt-${own} link set lo up`]);
      const containerId = new Bun.CryptoHasher("sha256").update(`${node.host.name} ${container}`).digest("hex");
      const place = { node, containerId, inner, name, podName: ownName };
      const { stdout } = await call("ADD", place);
      const { ips } = JSON.parse(stdout) as { readonly ips: readonly { readonly address: string }[] };
      const [ipv4 = "", ipv6 = ""] = ips.map(({ address }) => address.split("/")[0] ?? "");
      const { host } = node;
      const pod: RoutedPod = { ...place, host, netns: host.view(inner), addresses: [ipv4, ipv6] };
      servers.set(pod, servePlace(pod));
      return pod;
    },
    async removePod(pod) {
      servers.get(pod)?.[Symbol.dispose]();
      servers.delete(pod);
      await call("DEL", pod);
      await datastore.removePod?.(pod.podName);
      await pod.host.must(["ip", "netns", "delete", pod.inner.replace("/run/netns/", "")]);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The network config, and the record of a node that the datastore gets from elsewhere. */
async function prepareNode(
  { name, host, labels }: Pick<NetworkNode, "name" | "host"> & { readonly labels: Readonly<Record<string, string>> },
  datastore: RouterDatastore,
): Promise<void> {
  await datastore.addNode?.(name, labels);
  const { name: networkName, cniVersion, ...plugin } = configOf(name, datastore);
  const list = { name: networkName, cniVersion, plugins: [plugin] };
  host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify(list));
  if (datastore.addNode !== undefined) {
    await host.must([builtProgram(identity.adminTool), "node", "register"], { environment: datastore.environment });
  }
}

function podName(name: string): string {
  return name.replace("/", "-");
}

type PodCall = Pick<RoutedPod, "node" | "containerId" | "inner" | "name" | "podName">;

function configOf(node: NodeName, { config }: RouterDatastore) {
  return {
    ...{ cniVersion: "1.1.0", name: "net", type: identity.product, nodename: node, ...config },
    ipam: { type: identity.ipamType, assign_ipv6: "true" },
  };
}
