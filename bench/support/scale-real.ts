/**
 * Twenty real agents with real pods on one machine: each node is a private host with its own namespaces, all are on one bridge,
 * and one real etcd is the datastore. Runs on the private host that has the bridge.
 *
 *   this host: etcd, bridge 172.31.255.254 ── port0 ── node-0 172.16.0.1: agent, pods
 *                                         └── port1 ── node-1 172.16.0.2 …
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nodeAddress, nodeName } from "../../sim/scale/cluster-records.ts";
import type { RealAgents, RealPhase } from "../../sim/scale/measured.ts";
import { POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { API_VERSION, identity } from "../../src/identity.ts";
import { type NetlinkSocket, openNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { findTable, listElements, listSets } from "../../src/linux/nftables/read.ts";
import { findLink } from "../../src/linux/rtnetlink/link.ts";
import { listRoutes } from "../../src/linux/rtnetlink/route.ts";
import { ENDPOINT as ENDPOINT_KIND } from "../../src/model/kinds.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import { etcdCommand } from "../../test/support/etcd-on-host.ts";
import { type Host, openHost } from "../../test/support/host.ts";
import { insideNetns } from "../../test/support/namespace-sockets.ts";
import { processMemory } from "./process-memory.ts";
import { treeCpuMilliseconds, treeMemory } from "./process-tree.ts";
import { openScaleEtcd, type ScaleEtcd } from "./scale-etcd.ts";
import { until } from "./scale-node.ts";

interface RealNode {
  readonly host: Host;
  readonly sockets: { readonly netfilter: NetlinkSocket; readonly route: NetlinkSocket };
  agent: number;
}

export interface RealPlan {
  readonly folder: string;
  readonly nodes: number;
  readonly podsPerNode: number;
  readonly rounds: number;
  readonly idleSeconds: number;
}

const BRIDGE = "vt-bridge";
const ETCD_ADDRESS = "172.31.255.254";
const ENDPOINT = `http://${ETCD_ADDRESS}:2379`;
const NAMESPACE = "scale";
const DATASTORE = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: ENDPOINT };

export async function measureRealAgents(plan: RealPlan): Promise<RealAgents> {
  await using undo = new AsyncDisposableStack();
  run(
    `ip link add ${BRIDGE} type bridge`,
    `ip address add ${ETCD_ADDRESS}/12 dev ${BRIDGE}`,
    `ip link set ${BRIDGE} up`,
  );
  const etcd = await startEtcd();
  prepareDatastore(plan);
  const nodes: RealNode[] = [];
  for (let index = 0; index < plan.nodes; index++) {
    const host = undo.use(await openHost());
    nodes.push(await makeNode(host, index));
  }
  const agents = () => nodes.reduce((sum, { agent }) => sum + (agent === 0 ? 0 : treeCpuMilliseconds(agent)), 0);
  const phase = async (work: () => Promise<void>): Promise<RealPhase> => {
    const counters = await etcd.counters();
    const before = { agents: agents(), etcd: treeCpuMilliseconds(etcd.pid), at: performance.now() };
    await work();
    const wallMilliseconds = performance.now() - before.at;
    const after = await etcd.counters();
    return {
      wallMilliseconds,
      agentMilliseconds: agents() - before.agents,
      etcdMilliseconds: treeCpuMilliseconds(etcd.pid) - before.etcd,
      requests: after.requests - counters.requests,
      sentBytes: after.sentBytes - counters.sentBytes,
      puts: after.puts - counters.puts,
    };
  };
  const all = plan.nodes * plan.podsPerNode;

  const first = await phase(async () => {
    for (const node of nodes) node.agent = startAgentOn(node.host, plan.folder);
    await until(() => nodes.every((node) => hasTable(node) && routesOf(node) >= plan.nodes - 1));
  });
  console.log("real agents: first convergence", first);
  const pods = await phase(async () => {
    await Promise.all(nodes.map(({ host }, index) => addPods(host, index, plan)));
    await until(() => nodes.every((node) => membersOf(node) === all));
  });
  console.log("real agents: pods", pods);
  const changes: RealPhase[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    changes.push(
      await phase(async () => {
        await etcd.write([farPod(round)]);
        await until(() => nodes.every((node) => membersOf(node) === all + round + 1), 0.5);
      }),
    );
    await Bun.sleep(100);
  }
  const idle = await phase(() => Bun.sleep(plan.idleSeconds * 1_000));
  console.log("real agents: idle", idle);
  const memory = nodes.map(({ agent }) => treeMemory(agent));
  const mainProcesses = nodes.map(({ agent }) => processMemory(onlyChildOf(agent)).residentBytes);
  const mean = (of: (each: (typeof memory)[number]) => number) =>
    memory.reduce((sum, each) => sum + of(each), 0) / memory.length;
  return {
    ...{ nodes: plan.nodes, podsPerNode: plan.podsPerNode, first, pods, changes, idle },
    mainResidentBytes: mainProcesses.reduce((sum, bytes) => sum + bytes, 0) / mainProcesses.length,
    residentBytesPerAgent: mean(({ residentBytes }) => residentBytes),
    proportionalBytesPerAgent: mean(({ proportionalBytes }) => proportionalBytes),
  };
}

async function startEtcd(): Promise<ScaleEtcd> {
  const log = Bun.file("/run/vt/etcd.log");
  const child = Bun.spawn([...etcdCommand("/run/vt/etcd", ENDPOINT)], {
    stdin: "ignore",
    stdout: log,
    stderr: log,
  });
  const isUp = () =>
    fetch(`${ENDPOINT}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isUp())) await Bun.sleep(100);
  return openScaleEtcd(ENDPOINT, child.pid);
}

/** A pool with tunnels, and a policy that selects all pods and allows all of them. */
function prepareDatastore({ folder }: RealPlan): void {
  const admin = join(folder, identity.adminTool);
  const rule = { action: "Allow", source: { selector: "all()" } };
  const resources = [
    { kind: "IPPool", metadata: { name: "pods" }, spec: { cidr: "10.0.0.0/8", vxlanMode: "Always" } },
    { kind: "NodeAgentConfiguration", metadata: { name: "default" }, spec: { bgp: "Disabled" } },
    {
      kind: "NetworkPolicy",
      metadata: { name: "all", namespace: NAMESPACE },
      spec: { selector: "all()", types: ["Ingress"], ingress: [rule] },
    },
  ];
  const text = resources.map((each) => JSON.stringify({ apiVersion: API_VERSION, ...each })).join("\n---\n");
  spawn([admin, "datastore", "init"], { environment: DATASTORE });
  spawn([admin, "apply", "-f", "-"], { environment: DATASTORE, stdin: text });
}

async function makeNode(host: Host, index: number): Promise<RealNode> {
  const pid = /^\/proc\/(\d+)\//.exec(host.netns)?.[1] ?? "";
  run(`ip link add port${index} type veth peer name eth0 netns ${pid}`, `ip link set port${index} master ${BRIDGE} up`);
  const inside = [
    `ip address add ${nodeAddress(index)}/12 dev eth0`,
    "ip link set eth0 up",
    `ip route add default via ${ETCD_ADDRESS}`,
  ];
  await host.must(["sh", "-ec", inside.join("\n")]);
  const { name, cniVersion, ...plugin } = configOf(index);
  const list = { name, cniVersion, plugins: [{ ...plugin, policy: { type: "k8s" } }] };
  host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify(list));
  const sockets = insideNetns(host.netns, () => ({
    netfilter: openNetlinkSocket("netfilter"),
    route: openNetlinkSocket("route"),
  }));
  return { host, sockets, agent: 0 };
}

function configOf(index: number) {
  return {
    ...{ name: "net", cniVersion: "1.0.0", type: identity.product, nodename: nodeName(index), log_level: "ERROR" },
    ...{ datastore_type: "etcdv3", etcd_endpoints: ENDPOINT, ipam: { type: identity.ipamType } },
  };
}

/** Returns the process whose only child is the agent. */
function startAgentOn(host: Host, folder: string): number {
  const variables = Object.entries(NODE_ENVIRONMENT).map((pair) => pair.join("="));
  return host.start(["env", ...variables, join(folder, identity.nodeAgent)], "agent.log").pid;
}

function onlyChildOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());
}

/** One after another, as a kubelet of a busy node would at worst. */
async function addPods(host: Host, node: number, { folder, podsPerNode }: RealPlan): Promise<void> {
  for (let pod = 0; pod < podsPerNode; pod++) {
    await host.must(["ip", "netns", "add", `pod${pod}`]);
    const environment = {
      ...{ CNI_COMMAND: "ADD", CNI_NETNS: `/run/netns/pod${pod}`, CNI_IFNAME: "eth0", CNI_PATH: folder },
      CNI_CONTAINERID: new Bun.CryptoHasher("sha256").update(`${node} ${pod}`).digest("hex"),
      CNI_ARGS: `K8S_POD_NAMESPACE=${NAMESPACE};K8S_POD_NAME=pod-${node}-${pod}`,
    };
    await host.must([join(folder, identity.product)], { environment, stdin: JSON.stringify(configOf(node)) });
  }
}

/** On a node that has no agent. */
function farPod(round: number) {
  const name = `far-k8s-pod${round}-eth0`;
  const resource = {
    ...{ apiVersion: API_VERSION, kind: "WorkloadEndpoint" },
    metadata: { name, namespace: NAMESPACE, labels: { [`${identity.labelPrefix}namespace`]: NAMESPACE } },
    spec: {
      ...{ node: "far", orchestrator: "k8s", endpoint: "eth0", pod: `pod${round}`, containerID: `far-${round}` },
      ...{ ipNetworks: [`10.255.255.${round}/32`], interfaceName: `${identity.interfacePrefix}far${round}` },
    },
  };
  const value = ENDPOINT_KIND.codec.write(ENDPOINT_KIND.codec.readObject(resource, name));
  return { key: ENDPOINT_KIND.key({ name, namespace: NAMESPACE }), value };
}

function hasTable({ sockets }: RealNode): boolean {
  return findTable(sockets.netfilter, POLICY_TABLE) !== undefined;
}

/** By tunnels. */
function routesOf({ sockets }: RealNode): number {
  const uplink = findLink(sockets.route, "eth0")?.index;
  return listRoutes(sockets.route, 4).filter(({ gateway, linkIndex }) => gateway !== undefined && linkIndex !== uplink)
    .length;
}

/** Of its largest set: that of all pods. */
function membersOf({ sockets }: RealNode): number {
  const sizes = listSets(sockets.netfilter, POLICY_TABLE).map(
    ({ name }) => listElements(sockets.netfilter, POLICY_TABLE, name).length,
  );
  return Math.max(0, ...sizes);
}

function run(...lines: readonly string[]): void {
  for (const line of lines) spawn(line.split(" "));
}

function spawn(
  command: readonly string[],
  { environment = {}, stdin = "" }: { readonly environment?: Record<string, string>; readonly stdin?: string } = {},
): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...environment },
    stdin: new TextEncoder().encode(stdin),
  });
  if (exitCode !== 0) throw new Error(`"${command.join(" ")}" failed: ${stdout}${stderr}`);
}
