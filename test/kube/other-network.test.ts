/**
 * Real nodes on which the product enforces policy and routes nothing: upstream's ptp connects the pods, or the product
 * does with the ranges of the Nodes. The test itself is the network between the nodes: it sets the static routes.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
import type { Host } from "../support/host.ts";
import type { HostDaemon } from "../support/host-daemon.ts";
import type { KubeNode } from "../support/kube-node.ts";
import {
  openProductControlPlane,
  type ProductControlPlane,
  type ProductNetworkPlan,
  productClusterProblem,
  startAgentOn,
} from "../support/kube-product.ts";
import { startKubeProxy } from "../support/kube-proxy.ts";
import { testNeeding } from "../support/needs.ts";
import { installNetwork, type NetworkUnderTest, upstreamPlugins } from "../support/network-under-test.ts";
import { NAMESPACE, type Pods, podsOn } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { type ProductNode, startProductControllers } from "../support/product-nodes.ts";
import { proofSize } from "../support/proof-size.ts";
import { acrossNodesTests, startPodsOfTwoNodes } from "./across-nodes-tests.ts";

const upstream = await upstreamPlugins();
const problem =
  productClusterProblem() ??
  ("missing" in upstream ? upstream.missing : undefined) ??
  proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testNodes = testNeeding(problem);
setDefaultTimeout(180_000);

const PTP_RANGES: Readonly<Record<string, readonly string[]>> = {
  "node-1": ["10.77.1.0/24", "fd77:0:0:1::/64"],
  "node-2": ["10.77.2.0/24", "fd77:0:0:2::/64"],
};

interface Site {
  readonly cluster: ProductControlPlane;
  readonly controllers: HostDaemon;
  readonly first: ProductNode;
  readonly second: ProductNode;
  readonly pods: Pods;
  /** The routes, links and tables of each node before an agent ran. */
  readonly untouched: readonly string[];
}

interface SitePlan extends ProductNetworkPlan {
  readonly settings: object;
  /** Instead of the product's network. */
  readonly install?: (host: Host, network: NetworkUnderTest, node: string) => Promise<void>;
  readonly podRanges?: readonly string[];
  readonly rangesOf: (cluster: ProductControlPlane, node: string) => Promise<readonly string[]>;
}

async function openSite({ settings, install, podRanges, rangesOf, ...plan }: SitePlan): Promise<Site> {
  const cluster = await openProductControlPlane(plan);
  const { server } = cluster;
  if (plan.datastore === "etcd") await allowToFollowPods(cluster);
  const controllers = await startProductControllers(cluster, plan.datastore);
  const nodes: KubeNode[] = [];
  for (const name of ["node-1", "node-2"]) {
    nodes.push(await cluster.addNode(name, [], install && ((host, network) => install(host, network, name))));
  }
  for (const node of nodes) {
    for (const other of nodes.filter((each) => each !== node)) {
      for (const range of await rangesOf(cluster, other.name)) await addRoute(node, range, other);
    }
  }
  const resource = { apiVersion: API_VERSION, kind: "NodeAgentConfiguration", metadata: { name: "default" } };
  const [first, second] = await Promise.all(
    nodes.map(async (node) => {
      await cluster.adminOn(node, ["apply", "-f", "-"], JSON.stringify({ ...resource, spec: settings }));
      const untouched = await networkOf(node.host);
      const proxy = startKubeProxy(node.host, server, { node: node.name, podRanges: podRanges ?? cluster.podRanges });
      const agent = await startAgentOn(node);
      return { untouched, product: { node, agent, proxy, reboot: () => node.reboot() } };
    }),
  );
  if (first === undefined || second === undefined) throw new Error("no nodes");
  await server.createNamespace(NAMESPACE);
  const pods = podsOn(server);
  await startPodsOfTwoNodes(pods);
  const untouched = [first.untouched, second.untouched];
  return { cluster, controllers, first: first.product, second: second.product, pods, untouched };
}

/** The deployed role of an agent in a pod allows it; here the agent has the role of the plugin. */
async function allowToFollowPods({ server }: ProductControlPlane): Promise<void> {
  await server.kubectl(["create", "clusterrole", "follow-pods", "--verb=list,watch", "--resource=pods"]);
  const account = `--serviceaccount=kube-system:${identity.product}`;
  await server.kubectl(["create", "clusterrolebinding", "follow-pods", "--clusterrole=follow-pods", account]);
}

async function addRoute(node: KubeNode, range: string, other: KubeNode): Promise<void> {
  const gateway = other.addresses.find((address) => address.includes(":") === range.includes(":"));
  await node.host.must(["ip", "route", "add", range, "via", gateway ?? ""]);
}

/** Without those of pods, of link-local networks, which the kernel adds late, and of other programs. */
async function networkOf(host: Host): Promise<string> {
  const routes = (await Promise.all(["-4", "-6"].map((family) => host.must(["ip", family, "route"]))))
    .flatMap((text) => text.split("\n"))
    .filter((line) => !new RegExp(`veth|${identity.interfacePrefix}|fe80:`).test(line));
  const links = (await host.must(["ip", "-o", "link"])).split("\n").flatMap((line) => line.split(": ")[1] ?? []);
  const isOfPod = (name: string) => name.startsWith("veth") || name.startsWith(identity.interfacePrefix);
  const tables = (await host.must(["nft", "list", "tables"])).split("\n").filter((line) => isOwnTable(line));
  return [...routes, ...links.filter((name) => !isOfPod(name)), ...tables].join("\n");
}

/** Of the agent, except for policy; and the guard, which ADD of the product writes. */
function isOwnTable(line: string): boolean {
  const { natTable, floatingTable, tunnelTable } = identity;
  return [natTable, floatingTable, tunnelTable].some((table) => line.includes(table));
}

function withPtp(host: Host, network: NetworkUnderTest, node: string): Promise<void> {
  const name = "other";
  const ranges = (PTP_RANGES[node] ?? []).map((subnet) => [{ subnet }]);
  const ipam = { type: "host-local", ranges, routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }] };
  const own = JSON.stringify(network.conflist("1.0.0"));
  host.writeFile(`${identity.stateDirectory}/agent.conflist`, own);
  return installNetwork(host, {
    ...network,
    name,
    pluginDirectories: network.pluginDirectories.toReversed(),
    conflist: (cniVersion) => ({ cniVersion, name, plugins: [{ type: "ptp", ipam }] }),
  });
}

function policyTests(site: () => Site): void {
  acrossNodesTests(testNodes, () => ({ ...site(), server: site().cluster.server, outside: site().cluster.host }));

  testNodes("policy is enforced, and no route, tunnel or NAT of a node was touched", async () => {
    const { first, second, untouched } = site();
    for (const [index, { node, agent }] of [first, second].entries()) {
      expect(await networkOf(node.host)).toBe(untouched[index] ?? "");
      expect(agent.log()).toContain("Network policy: enforced");
      expect(agent.log()).not.toContain("has no policy");
    }
  });
}

describe.each(["kubernetes", "etcd"] as const)("upstream's ptp connects the pods, datastore %s", (datastore) => {
  let site: Site;
  beforeAll(async () => {
    if (problem !== undefined) return;
    site = await openSite({
      ...{ datastore, families: "dual stack", policy: "k8s", install: withPtp },
      settings: { routing: "Disabled", interfacePrefix: "veth" },
      podRanges: ["10.77.0.0/16", "fd77::/48"],
      rangesOf: async (_, node) => PTP_RANGES[node] ?? [],
    });
  });
  afterAll(() => site?.cluster[Symbol.asyncDispose]());

  policyTests(() => site);

  testNodes("a pod has an endpoint without an interface, and no longer than it exists", async () => {
    const { cluster, first, pods } = site;
    const endpoints = async () => {
      const text = await cluster.adminOn(first.node, ["get", "workloadendpoints", "--all-namespaces", "-o", "json"]);
      const { items } = JSON.parse(text) as { items: readonly { spec: { pod?: string; interfaceName?: string } }[] };
      return items.filter(({ spec }) => ["a", "b", "c"].includes(spec.pod ?? "")).map(({ spec }) => spec.interfaceName);
    };
    expect(await endpoints()).toEqual([undefined, undefined, undefined]);
    await pods.removeAll();
    await pollUntil(async () => (await endpoints()).length === 0, "the endpoints to go");
    expect(site.controllers.log()).not.toContain("[ERROR]");
  });
});

describe.each(["kubernetes", "etcd"] as const)(
  "the network routes the ranges of the Nodes, datastore %s",
  (datastore) => {
    let site: Site;
    beforeAll(async () => {
      if (problem !== undefined) return;
      site = await openSite({
        ...{ datastore, families: "dual stack", policy: "k8s", addresses: "of the node" },
        settings: { routing: "Disabled" },
        rangesOf: async ({ server }, node) => {
          const { spec } = await server.get<{ spec: { podCIDRs: readonly string[] } }>("node", node);
          return spec.podCIDRs;
        },
      });
    });
    afterAll(() => site?.cluster[Symbol.asyncDispose]());

    policyTests(() => site);

    testNodes("ADD has set the routes to pods of the own host, and nobody those to others", async () => {
      const { host } = site.first.node;
      const own = await host.must(["ip", "route", "show", "proto", String(ROUTE_PROTOCOL.own)]);
      const lines = own.split("\n").filter((line) => line !== "");
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain(`dev ${identity.interfacePrefix}`);
    });
  },
);
