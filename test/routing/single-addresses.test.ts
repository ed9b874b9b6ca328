/**
 * Single addresses that the built node agents announce with BIRD, with the orchestrator's API as the datastore: of Services
 * with `externalTrafficPolicy: Local`, without IPAM, and floating ones. A router of somebody else learns them.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { hasEtcd } from "../support/etcd.ts";
import { type Host, hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { birdRoutes } from "./bird-routes.ts";
import { FOREIGN_AS, type ForeignRouter, PASSWORD, startForeignRouter } from "./foreign-router.ts";
import { setMode } from "./modes.ts";
import { resource } from "./resource.ts";
import { gatewaysOf, type NetworkNode } from "./routed-network.ts";
import { openRoutedSite, type RoutedSite } from "./routed-site.ts";
import { POD_NAMESPACE, type RouterApi, startRouterApi, startRouterEtcd } from "./router-datastore.ts";

const needs = [hostProblem(), apiServerProblem(), hasEtcd ? undefined : "needs etcd", program("nft"), program("bird")];
const PASSWORD_FILE = "/etc/bgp-password";
const NODES = ["node-1", "node-2"] as const;
const NETWORKS = ["198.18.0.0/24", "2001:db8:18::/64"] as const;
const FEATURES = { ip_addrs_no_ipam: true, floating_ips: true };

/** With etcd as the datastore, the API has nothing but the cluster itself. */
async function startEtcdBesideApi(router: Host): Promise<RouterApi> {
  const [etcd, api] = [await startRouterEtcd(router), await startRouterApi(router, ["etcd"])];
  const { kubectl, config } = api;
  return {
    ...etcd,
    ...{ kubectl, config: { ...etcd.config, kubernetes: config["kubernetes"] } },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

describe.each([
  ["the orchestrator's API", startRouterApi, undefined],
  ["etcd", startEtcdBesideApi, proofSize({ everyDay: "only in `make soak`", soak: undefined })],
] as const)("single addresses by BGP, datastore %s", (datastore, startDatastore, unneeded) => {
  const problem = [...needs, unneeded].find((need) => need !== undefined);
  const test = testNeeding(problem);
  let site: RoutedSite<RouterApi>;
  let router: ForeignRouter;
  let one: NetworkNode;
  let two: NetworkNode;
  beforeAll(async () => {
    if (problem !== undefined) return;
    site = await openRoutedSite({
      agents: NODES,
      startDatastore: async (host) => {
        const api = await startDatastore(host);
        return { ...api, config: { ...api.config, feature_control: FEATURES } };
      },
    });
    [one, two] = [site.network.node("node-1"), site.network.node("node-2")];
    for (const { host } of site.network.nodes) host.writeFile(PASSWORD_FILE, `${PASSWORD}\n`);
    router = await startForeignRouter(site.network);
    await setMode(site, { vxlan: "Never", bgp: "Enabled" });
    const peer = { asNumber: FOREIGN_AS, password: { file: PASSWORD_FILE } };
    await site.apply(
      resource("BGPConfiguration", "default", {
        serviceExternalIPs: NETWORKS.map((cidr) => ({ cidr })),
        serviceLoadBalancerIPs: [{ cidr: "198.18.1.7/32" }],
      }),
      ...gatewaysOf(one.subnet).map((peerIP, index) => resource("BGPPeer", `router-${index}`, { ...peer, peerIP })),
    );
    for (const network of NETWORKS) await from(network, ["node_1", "node_2"]);
  }, 120_000);
  afterAll(() => site?.[Symbol.asyncDispose]());

  /** The nodes from which the router has learned the network. */
  const learnedFrom = async (network: string): Promise<readonly string[]> => {
    const text = await router.ask(`show route ${network}`).catch(() => "");
    return Array.from(text.matchAll(/\[(\w+)_[46] /g), ([, name = ""]) => name).sort();
  };
  const from = async (network: string, nodes: readonly string[]) => {
    let seen: readonly string[] = [];
    const isSo = async () => {
      seen = await learnedFrom(network);
      return Bun.deepEquals(seen, nodes);
    };
    await pollUntil(isSo, `${network} from ${nodes}`, 30_000).catch(() =>
      expect([network, seen]).toEqual([network, nodes]),
    );
  };
  const apply = (object: object) => site.datastore.kubectl(["apply", "--filename=-"], JSON.stringify(object));
  const meta = (name: string, labels = {}) => ({ name, namespace: POD_NAMESPACE, labels });

  const service = (name: string, spec: object) =>
    apply({ apiVersion: "v1", kind: "Service", metadata: meta(name), spec: { ports: [{ port: 80 }], ...spec } });
  const slice = (addressType: "IPv4" | "IPv6", endpoints: readonly (readonly [node: string, isReady: boolean])[]) =>
    apply({
      ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType, ports: [{ port: 80 }] },
      metadata: meta(`web-${addressType.toLowerCase()}`, { "kubernetes.io/service-name": "web" }),
      endpoints: endpoints.map(([nodeName, ready], index) => ({
        addresses: [addressType === "IPv4" ? `10.50.0.${index + 5}` : `fd50::${index + 5}`],
        ...{ nodeName, conditions: { ready, serving: ready, terminating: false } },
      })),
    });

  test("a Service with externalTrafficPolicy: Local: from exactly the nodes with a ready endpoint", async () => {
    const singles = ["198.18.0.7/32", "198.18.1.7/32", "2001:db8:18::7/128"] as const;
    await service("any", { type: "NodePort", externalIPs: ["198.18.0.8"] });
    await from("198.18.1.7/32", ["node_1", "node_2"]);
    await service("web", {
      ...{ type: "LoadBalancer", externalTrafficPolicy: "Local", externalIPs: ["198.18.0.7", "2001:db8:18::7"] },
    });
    const ingress = JSON.stringify({ status: { loadBalancer: { ingress: [{ ip: "198.18.1.7" }] } } });
    const status = ["patch", "service", "web", `--namespace=${POD_NAMESPACE}`, "--subresource=status", "--type=merge"];
    await site.datastore.kubectl([...status, `--patch=${ingress}`]);
    // Nobody has an endpoint: the network that is just its address is withdrawn, the others stay.
    await from("198.18.1.7/32", []);

    await slice("IPv4", [["node-1", true]]);
    await slice("IPv6", [["node-2", true]]);
    await from(singles[0], ["node_1"]);
    await from(singles[1], ["node_1"]);
    await from(singles[2], ["node_2"]);
    // The other node knows the route, but does not pass it on as its own.
    await pollUntil(async () => (await birdRoutes(two.host)).includes("198.18.0.7 "), "the route of the mesh");
    await from(singles[0], ["node_1"]);

    await slice("IPv4", [
      ["node-1", true],
      ["node-2", true],
    ]);
    await from(singles[0], ["node_1", "node_2"]);
    await slice("IPv4", [
      ["node-1", false],
      ["node-2", true],
    ]);
    await from(singles[0], ["node_2"]);
    await slice("IPv4", [["node-1", false]]);
    await from(singles[0], []);
    expect(await learnedFrom(NETWORKS[0])).toEqual(["node_1", "node_2"]);
    expect(await learnedFrom("198.18.0.8/32")).toEqual([]);

    await slice("IPv4", [["node-1", true]]);
    await from(singles[0], ["node_1"]);
    await service("web", { type: "LoadBalancer", externalTrafficPolicy: "Cluster", externalIPs: ["198.18.0.7"] });
    for (const single of [singles[0], singles[2]]) await from(single, []);
  }, 120_000);

  // Pods of the API are needed.
  if (datastore === "etcd") return;

  test("addresses without IPAM in an IPIP pool, and floating ones in any pool, as a router and the other node learn them", async () => {
    const mode = (spec: object) => site.admin(`patch ippool ipv4 -p ${JSON.stringify({ spec })}`);
    await mode({ vxlanMode: "Never", ipipMode: "CrossSubnet" });
    // With it, the nodes have sessions with each other.
    await site.apply(resource("IPPool", "plain", { cidr: "10.60.0.0/16" }));
    const annotations = {
      [`${identity.annotationPrefix}ipAddrsNoIpam`]: '["10.50.99.9"]',
      [`${identity.annotationPrefix}floatingIPs`]: '["10.50.99.10"]',
    };
    const spec = { nodeName: "node-1", containers: [{ name: "main", image: "none" }] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { ...meta("node-1-single"), annotations }, spec };
    await site.datastore.kubectl(["create", "--filename=-"], JSON.stringify(pod));
    await site.addPod("node-1/single");
    const reported = JSON.stringify({ status: { podIP: "10.50.99.9", podIPs: [{ ip: "10.50.99.9" }] } });
    const status = ["patch", "pod", "node-1-single", `--namespace=${POD_NAMESPACE}`, "--subresource=status"];
    await site.datastore.kubectl([...status, "--type=merge", `--patch=${reported}`]);

    await from("10.50.99.9/32", ["node_1"]);
    await from("10.50.99.10/32", ["node_1"]);
    const routeOf = async () => two.host.must(["ip", "route", "show", "10.50.99.9"]);
    await pollUntil(async () => (await routeOf()).includes(`via ${one.addresses[0]} dev eth0 proto 86`), "the route");
    await two.host.must(["ping", "-c1", "-W2", "10.50.99.9"]);
    // The other node knows the route, but would send packets back to the router.
    const control = `/run/${identity.product}/bird/bird.ctl`;
    const known = () => two.host.must(["birdc", "-s", control, "show", "route", "10.50.99.10/32"]);
    await pollUntil(async () => (await known()).includes("Mesh_"), "the route of the mesh");
    for (const address of ["10.50.99.9/32", "10.50.99.10/32"]) await from(address, ["node_1"]);
    for (const address of ["10.50.99.9", "10.50.99.10"])
      await site.network.router.must(["ping", "-c1", "-W2", address]);

    await mode({ vxlanMode: "Always", ipipMode: "Never" });
    await from("10.50.99.9/32", []);
    await from("10.50.99.10/32", ["node_1"]);
    await pollUntil(async () => !(await routeOf()).includes("10.50.99.9"), "the end of the route");
  }, 120_000);
});
