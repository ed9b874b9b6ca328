/**
 * Two real nodes whose network is the product, with the node agent on each and the controllers as processes of their own:
 * pods of different nodes reach each other, whatever happens to a node or an agent.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
import { pingFrom, untilConnects } from "../support/across-nodes.ts";
import type { HostDaemon } from "../support/host-daemon.ts";
import type { Audit } from "../support/kube-audit.ts";
import {
  openProductControlPlane,
  type ProductControlPlane,
  type ProductNetworkPlan,
  productClusterProblem,
} from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { buildNextRelease } from "../support/next-release.ts";
import { NAMESPACE, type Pods, podsOn } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { addProductNode, type ProductNode, startProductControllers } from "../support/product-nodes.ts";
import { proofSize } from "../support/proof-size.ts";
import { isForbidden } from "../support/role-use.ts";
import { acrossNodesTests, addressesIn, startPodsOfTwoNodes, untilReachEachOther } from "./across-nodes-tests.ts";

const problem = productClusterProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testNodes = testNeeding(problem);
setDefaultTimeout(180_000);

/** 6 seconds of pings, 10 ms apart: longer than both agents need to stop and start. */
const PINGS = 600;

const PLANS: readonly ProductNetworkPlan[] = [
  { datastore: "etcd", families: "dual stack", tunnels: "VXLAN", policy: "k8s" },
  { datastore: "kubernetes", families: "dual stack", tunnels: "VXLAN", policy: "k8s" },
];

describe.each(PLANS.map((plan) => ({ ...plan, plan })))("two nodes, datastore $datastore", ({ plan }) => {
  let cluster: ProductControlPlane;
  let controllers: HostDaemon;
  let first: ProductNode;
  let second: ProductNode;
  let pods: Pods;
  let audit: Audit;
  beforeAll(async () => {
    if (problem !== undefined) return;
    cluster = await openProductControlPlane(plan);
    audit = cluster.server.startAudit();
    controllers = await startProductControllers(cluster, plan.datastore);
    first = await addProductNode(cluster, "node-1");
    second = await addProductNode(cluster, "node-2");
    await cluster.server.createNamespace(NAMESPACE);
    pods = podsOn(cluster.server);
    await startPodsOfTwoNodes(pods);
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  acrossNodesTests(testNodes, () => ({ server: cluster.server, outside: cluster.host, first, second, pods }));

  testNodes("no packet is lost while the agents of both nodes are replaced by the next release", async () => {
    using next = buildNextRelease();
    const traffic = Promise.all((await addressesIn(pods, "b")).map((address) => pingFrom(pods, "a", address, PINGS)));
    for (const each of [first, second]) await replaceAgent(each, next.executable);
    for (const { sent, received } of await traffic) expect(received).toBe(sent);

    const recorded = () => cluster.adminOn(first.node, ["get", "nodes", "-o", "yaml"]);
    const areNew = async () => (await recorded()).split(`agent-version: ${next.version}`).length === 3;
    await pollUntil(areNew, "the version of both agents");
    await pods.create({ name: "later", spec: { nodeName: "node-2" } });
    await pods.ready("later");
    await untilReachEachOther(pods, "a", "later");
    await pods.remove("later");
    for (const each of [first, second]) await replaceAgent(each, BUILT);
  });

  testNodes("after a restart of a node its pods are reached again", async () => {
    await second.reboot();
    const haveRestarted = async () =>
      (await pods.list()).every(
        ({ metadata, status }) =>
          metadata.name === "a" ||
          status.containerStatuses?.every(({ restartCount, ready }) => restartCount > 0 && ready),
      );
    await pollUntil(haveRestarted, "the pods to start again", 100_000);
    await untilReachEachOther(pods, "a", "b");
    await untilConnects(pods, { from: "a", to: await addressesIn(pods, "b") }, "open");
  });

  testNodes("nothing that the agents and the controllers asked for was forbidden", () => {
    const users = [identity.product, identity.controllers].map((name) => `system:serviceaccount:kube-system:${name}`);
    const forbidden = users.flatMap((user) => audit.requests(user)).filter(isForbidden);
    expect(forbidden.map(({ verb, uri, user }) => `${user} ${verb} ${uri}`)).toEqual([]);
  });

  testNodes(
    "a node that is deleted leaves no route, neighbour or forwarding entry, and no address of its tunnels",
    async () => {
      const tunnels = await tunnelAddresses("node-2");
      expect(tunnels).toHaveLength(2);
      await second.agent.stop();
      await second.node.kubelet.kill();
      await cluster.server.kubectl(["delete", "node", "node-2"]);
      let left: readonly string[] = [];
      const isClean = async () => {
        left = await tracesOfOtherNode(first, second);
        return left.length === 0;
      };
      await pollUntil(isClean, "the traces of the node to be removed", 60_000).catch(() => expect(left).toEqual([]));
      const uses = () =>
        Promise.all(tunnels.map((ip) => cluster.adminOn(first.node, ["ipam", "show", `--ip=${ip}`, "-o", "json"])));
      const areFree = async () => (await uses()).every((text) => JSON.parse(text).state === "free");
      await pollUntil(areFree, "the addresses of its tunnels to be released", 120_000);
      expect(controllers.log()).not.toContain("[ERROR]");
    },
  );

  /** Of both families, from the record of the node. */
  const tunnelAddresses = async (node: string) => {
    const { spec } = JSON.parse(await cluster.adminOn(first.node, ["get", "node", node, "-o", "json"])) as NodeRecord;
    return [spec.ipv4VXLANTunnelAddr, spec.ipv6VXLANTunnelAddr].filter((address) => address !== undefined);
  };
});

interface NodeRecord {
  readonly spec: { readonly ipv4VXLANTunnelAddr?: string; readonly ipv6VXLANTunnelAddr?: string };
}

describe.each(["etcd", "kubernetes"] as const)(
  "pods with addresses of the range of their node, datastore %s",
  (datastore) => {
    let cluster: ProductControlPlane;
    let first: ProductNode;
    let pods: Pods;
    beforeAll(async () => {
      if (problem !== undefined) return;
      cluster = await openProductControlPlane({ datastore, families: "dual stack", addresses: "of the node" });
      first = await addProductNode(cluster, "node-1");
      await setBgp("Disabled");
      await addProductNode(cluster, "node-2");
      await cluster.server.createNamespace(NAMESPACE);
      pods = podsOn(cluster.server);
      await startPodsOfTwoNodes(pods);
    });
    afterAll(() => cluster?.[Symbol.asyncDispose]());

    const setBgp = (bgp: "Enabled" | "Disabled") => {
      const resource = { apiVersion: API_VERSION, kind: "NodeAgentConfiguration", metadata: { name: "default" } };
      return cluster.adminOn(first.node, ["apply", "-f", "-"], JSON.stringify({ ...resource, spec: { bgp } }));
    };
    /** The routes of the first node to the pod ranges of the second, as the kernel has them. */
    const routes = async () => {
      const lists = await Promise.all(["-4", "-6"].map((family) => first.node.host.must(["ip", family, "route"])));
      return lists
        .flatMap((text) => text.split("\n"))
        .filter((line) => line.includes(" via ") && /\/(24|64) /.test(line));
    };

    testNodes("reach each other by static routes if BGP is disabled", async () => {
      await untilReachEachOther(pods, "a", "b");
      const found = await routes();
      expect(found).toHaveLength(2);
      for (const route of found) expect(route).toContain(` proto ${ROUTE_PROTOCOL.own} `);
    });

    testNodes("reach each other by BGP if it is enabled", async () => {
      await setBgp("Enabled");
      const areByBird = async () => {
        const found = await routes();
        return found.length === 2 && found.every((route) => route.includes(" proto bird "));
      };
      await pollUntil(areByBird, "routes of BIRD");
      await untilReachEachOther(pods, "a", "b");
    });
  },
);

const BUILT = join(import.meta.dir, "../../dist/bin", identity.nodeAgent);

/** Stops the agent, replaces its executable, and starts it. */
async function replaceAgent({ node, agent }: ProductNode, executable: string): Promise<void> {
  await agent.stop();
  const link = node.host.view(join(BIN_DIRECTORY, identity.nodeAgent));
  symlinkSync(executable, `${link}.new`);
  renameSync(`${link}.new`, link);
  agent.start();
  await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the new agent to serve");
}

/** What the kernel of a node has because of the other one. */
async function tracesOfOtherNode({ node }: ProductNode, other: ProductNode): Promise<readonly string[]> {
  const commands = [
    ["ip", "-4", "route"],
    ["ip", "-6", "route"],
    ["ip", "neighbour", "show", "nud", "permanent"],
    ["bridge", "fdb", "show"],
  ];
  const printed = await Promise.all(commands.map((command) => node.host.must(command)));
  const lines = printed.flatMap((text) => text.split("\n"));
  const addresses = other.node.addresses;
  return lines.filter((line) => isOfTunnel(line) || addresses.some((address) => line.includes(address)));
}

function isOfTunnel(line: string): boolean {
  return line.includes("dev vxlan") && !line.includes(" proto kernel ");
}
