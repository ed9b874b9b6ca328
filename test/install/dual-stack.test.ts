/**
 * docs/dual-stack.md is true: its commands are run in their order on a real cluster of two nodes that has IPv4 alone, while
 * pods talk to each other. The test does what is not the network's: addresses of nodes, options of Kubernetes.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { dirname, join } from "node:path";
import { identity } from "../../src/identity.ts";
import { policyManifest, untilConnects, untilPings } from "../support/across-nodes.ts";
import { bareClusterProblem, openBareCluster, POD_RANGES } from "../support/bare-cluster.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { kubeProgram } from "../support/kube-apiserver.ts";
import { addressesOf, type Pod } from "../support/kube-pods.ts";
import { startKubeProxy } from "../support/kube-proxy.ts";
import { type LongPings, startLongPings } from "../support/long-pings.ts";
import { manifestText } from "../support/manifest-text.ts";
import { testNeeding } from "../support/needs.ts";
import { installationOn, installOperator, untilInstalled } from "../support/operator-install.ts";
import { NAMESPACE } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { type InstalledCluster, installedCluster } from "./installed-tests.ts";
import { type LongConnection, startLongConnection } from "./long-connection.ts";

const problem = bareClusterProblem();
const testCluster = testNeeding(problem);
setDefaultTimeout(240_000);

/** Its pods on every way take longer than the rest; policies and Services of both families are tried here too. */
const leftOut = proofSize<{ readonly without?: RegExp }>({
  everyDay: { without: /^vendorctl connectivity test$/gm },
  soak: {},
});
const page = openDocsPage("dual-stack.md", leftOut);
const SERVICES = ["10.96.0.0/16", "fd00:96::/112"] as const;
/** The outer header of IPv6 is so much longer. */
const MORE_HEADER = 20;
const POOL = "default-ipv6-ippool";
/** Of a pod that does not exist yet. */
const CHOSEN = ["10.244.200.7", "fd00:244:0:20::7"] as const;

describe("a cluster with IPv4 that gets IPv6", () => {
  let installed: InstalledCluster;
  let before: ReadonlyMap<string, Pod>;
  let pings: LongPings;
  let connection: LongConnection;
  beforeAll(async () => {
    if (problem !== undefined) return;
    installed = installedCluster(await openBareCluster({ families: "IPv4" }));
    const { server, pods } = installed;
    await installOperator(server);
    await server.apply(JSON.stringify(ipv4Installation()));
    await untilInstalled(server);
    await server.createNamespace(NAMESPACE);
    await pods.create(
      { name: "client", labels: { app: "client" }, spec: { nodeName: "node-1" } },
      { name: "stranger", spec: { nodeName: "node-1" } },
    );
    await pods.createWorkload("StatefulSet", { name: "db", replicas: 1, spec: { nodeName: "node-2" } });
    await pods.createWorkload("Deployment", { name: "web", replicas: 2, spec: { nodeName: "node-2" } });
    await server.apply(policyManifest("web", [{ from: [{ podSelector: { matchLabels: { app: "client" } } }] }]));
    await server.apply(service("web"));
    await pods.allReady(5);
  });
  afterAll(() => installed?.[Symbol.asyncDispose]());

  const ipv4Installation = () => {
    const installation = installationOn(installed.server, "kubernetes");
    const network = { ipPools: [{ cidr: POD_RANGES[0], encapsulation: "VXLAN" }] };
    return { ...installation, spec: { ...installation.spec, [`${identity.product}Network`]: network } };
  };
  const type = (title: string) => page.type(title, { ...placeIn(installed), replacing: { NAMESPACE } });
  const onNode = (...command: readonly string[]) => runOnNode(installed, command);
  const mtuOf = async (name: string) => Number(await installed.pods.exec(name, "cat", "/sys/class/net/eth0/mtu"));
  const addresses = async (name: string) => addressesOf(await installed.pods.get(name));
  const firstOf = async (workload: string) => {
    const running = (await installed.pods.list(workload)).filter(({ metadata }) => !metadata.deletionTimestamp);
    return running[0] ?? expect.unreachable(`no pod of ${workload}`);
  };

  testCluster("runs pods that talk to each other, with IPv4 addresses alone", async () => {
    const { pods } = installed;
    before = new Map((await pods.list()).map((pod) => [pod.metadata.name, pod]));
    for (const pod of before.values()) expect(addressesOf(pod)).toHaveLength(1);
    const [db = ""] = await addresses("db-0");
    await untilPings(pods, "client", [db]);
    pings = await startLongPings(pods, "client", db);
    connection = await startLongConnection(pods, { from: "client", to: "db-0", address: db });
  });

  testCluster("finds the IPv6 addresses of nodes as soon as they have them", async () => {
    await giveNodesIpv6(installed);
    const printed = await type("What must be true first");
    expect(printed).toMatch(/^node-2 +10\.199\.0\.12\/24 +fd00:199::12\/64$/m);
    expect(printed).not.toContain("accept_ra");
    await type("Policies before the first IPv6 packet");
  });

  testCluster("goes on while the parts of Kubernetes get a second family", async () => {
    const { server, nodes } = installed;
    await server.setServiceCidrs(SERVICES);
    for (const [index, node] of nodes.entries()) await node.restartKubelet([...node.addresses, ipv6OfNode(index)]);
    const addressesOfNodes = () =>
      server.kubectl(["get", "nodes", "--output=jsonpath={.items[*].status.addresses[*].address}"]);
    const areReported = async () => {
      const reported = await addressesOfNodes();
      return nodes.every((_, index) => reported.includes(ipv6OfNode(index)));
    };
    await pollUntil(areReported, "the IPv6 addresses that the kubelets report");
    for (const node of nodes) {
      await node.proxy.stop();
      startKubeProxy(node.host, server, { node: node.name, podRanges: POD_RANGES });
    }
  });

  testCluster("adds the pool, and finds that everything works", async () => {
    expect(await type("Add the pool")).toContain("condition met");
    expect(await type("Check it")).toContain("Everything is well");
  });

  testCluster("gives new pods an address of each family, closed by policy from their first packet on", async () => {
    const { server, pods } = installed;
    await pods.create({ name: "stranger-6", spec: { nodeName: "node-1" } });
    expect(addressesOf(await pods.ready("stranger-6"))[1]).toStartWith("fd00:244:");
    expect(await mtuOf("stranger-6")).toBe((await mtuOf("stranger")) - MORE_HEADER);
    const attempts = await Promise.all(CHOSEN.map((address) => startLongPings(pods, "stranger-6", address)));
    const annotations = { [`cni.${identity.apiGroup}/ipAddrs`]: JSON.stringify(CHOSEN) };
    const spec = { nodeName: "node-2" };
    await server.apply(policyManifest("closed", []));
    await pods.create({ name: "closed", labels: { app: "closed" }, annotations, spec });
    expect(addressesOf(await pods.ready("closed"))).toEqual([...CHOSEN]);
    for (const each of attempts) await each.more(50);
    for (const each of attempts) {
      const { sent, lost } = await each.stop();
      expect(lost).toHaveLength(sent - 1);
    }
    // So it was the policy.
    await server.kubectl(["delete", "networkpolicy", "closed", `--namespace=${NAMESPACE}`]);
    await untilPings(pods, "stranger-6", CHOSEN);
  });

  testCluster("creates pods again: both families across nodes, by policy, and by a Service", async () => {
    const { server, pods } = installed;
    await type("Create the pods again");
    expect(await type("Give Services an IPv6 address")).toContain("service/web patched");
    const to = addressesOf(await firstOf("web"));
    expect(to).toHaveLength(2);
    await pods.create({ name: "client-6", labels: { app: "client" }, spec: { nodeName: "node-1" } });
    await pods.ready("client-6");
    await untilConnects(pods, { from: "client-6", to }, "open");
    await untilConnects(pods, { from: "stranger-6", to }, "closed");
    const { spec } = await server.get<{ spec: { clusterIPs: readonly string[] } }>(
      "service",
      "web",
      `--namespace=${NAMESPACE}`,
    );
    expect(spec.clusterIPs).toHaveLength(2);
    await untilConnects(pods, { from: "client-6", to: spec.clusterIPs }, "open");
    await untilConnects(pods, { from: "stranger-6", to: spec.clusterIPs }, "closed");
    // The pods of before reach the new ones, and are reached by them.
    await untilConnects(pods, { from: "client", to: to.slice(0, 1) }, "open");
    await untilConnects(pods, { from: "client-6", to: await addresses("db-0") }, "open");
  });

  testCluster("goes back", async () => {
    const { pods } = installed;
    expect(await type("Go back")).toContain("condition met");
    await expect(onNode(identity.adminTool, "delete", "ippool", POOL)).rejects.toThrow("in use");
    for (const name of ["client-6", "stranger-6", "closed"]) await pods.remove(name);
    await type("Create the pods again");
    expect(addressesOf(await firstOf("web"))).toHaveLength(1);
    const haveFormerEnded = async () => (await pods.list("web")).length === 2;
    await pollUntil(haveFormerEnded, "the former pods to end", 60_000);
    await type("Delete the pool");
    const isClean = async () => (await type("See that nothing is left")).includes("no problems");
    await pollUntil(isClean, "the addresses of the tunnels to be given back");
    for (const { host } of installed.nodes) {
      const hasNoTunnel = async () => !(await host.must(["ip", "-6", "route"])).includes("vxlan-v6");
      await pollUntil(hasNoTunnel, "the routes of IPv6 to be gone");
    }
  });

  testCluster("has not lost a packet of the pods of before, which are the same", async () => {
    const { lost } = await pings.stop();
    expect(lost).toEqual([]);
    await connection.expectWhole();
    for (const name of ["client", "stranger", "db-0"]) {
      const { metadata, status } = await installed.pods.get(name);
      expect(metadata.uid).toBe(before.get(name)?.metadata.uid ?? "");
      expect(status.podIPs).toEqual(before.get(name)?.status.podIPs ?? []);
      expect(status.containerStatuses?.[0]?.restartCount).toBe(0);
    }
  });
});

const testManifest = testNeeding(problem, proofSize({ everyDay: "only in `make soak`", soak: undefined }));

describe("a cluster with IPv4 that a manifest has installed", () => {
  let installed: InstalledCluster;
  beforeAll(async () => {
    if ((problem ?? leftOut.without) !== undefined) return;
    installed = installedCluster(await openBareCluster({ families: "IPv4" }));
    const { host } = placeIn(installed);
    host.writeFile(join(host.directory, "my-network.yaml"), ipv4Manifest());
    await runOnNode(installed, ["kubectl", "apply", "--server-side", "-f", join(host.directory, "my-network.yaml")]);
    await Promise.all(installed.nodes.map((node) => node.untilReady()));
    await installed.server.createNamespace(NAMESPACE);
    await installed.pods.create(
      { name: "a", spec: { nodeName: "node-1" } },
      { name: "b", spec: { nodeName: "node-2" } },
    );
    await installed.pods.allReady(2);
    await giveNodesIpv6(installed);
  });
  afterAll(() => installed?.[Symbol.asyncDispose]());

  testManifest("gives new pods an address of each family, and loses no packet of others", async () => {
    const { pods } = installed;
    const [former = "", ...more] = addressesOf(await pods.get("b"));
    expect(more).toEqual([]);
    await untilPings(pods, "a", [former]);
    const pings = await startLongPings(pods, "a", former);
    const printed = await page.type("Without the operator", placeIn(installed));
    expect(printed).toContain("successfully rolled out");

    await pods.create({ name: "c", spec: { nodeName: "node-1" } }, { name: "d", spec: { nodeName: "node-2" } });
    await pods.ready("c");
    const addresses = addressesOf(await pods.ready("d"));
    expect(addresses[1]).toStartWith("fd00:244:");
    await untilPings(pods, "c", addresses);
    await untilPings(pods, "c", [former]);
    expect((await pings.stop()).lost).toEqual([]);
    expect(addressesOf(await pods.get("b"))).toEqual([former]);
    expect(page.untried()).toEqual([]);
  });
});

/** A node, whose root is the administrator too. */
function placeIn({ nodes, server, ...controlPlane }: InstalledCluster) {
  const { host } = nodes[0] ?? controlPlane;
  const own = [dirname(kubeProgram("kubectl")), join(import.meta.dir, "../../dist/bin")];
  const path = [...own, "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
  return { host, environment: { KUBECONFIG: server.adminKubeconfig, PATH: path, HOME: host.directory } };
}

function runOnNode(installed: InstalledCluster, command: readonly string[]): Promise<string> {
  const { host, environment } = placeIn(installed);
  return host.must(["bash", "-ec", 'exec "$@"', "on-node", ...command], { environment });
}

/** Returns when the agents have recorded them. */
async function giveNodesIpv6(installed: InstalledCluster): Promise<void> {
  const { nodes } = installed;
  for (const [index, { host }] of nodes.entries()) {
    await host.must(["ip", "address", "add", `${ipv6OfNode(index)}/64`, "dev", "eth0", "nodad"]);
  }
  const areRecorded = async () => {
    const records = await runOnNode(installed, [identity.adminTool, "get", "nodes", "-o", "yaml"]);
    return nodes.every((_, index) => records.includes(`ipv6Address: ${ipv6OfNode(index)}/64`));
  };
  await pollUntil(areRecorded, "the IPv6 addresses of the nodes");
}

function ipv6OfNode(index: number): string {
  return `fd00:199::1${index + 1}`;
}

function ipv4Manifest(): string {
  const pools = [{ cidr: POD_RANGES[0], vxlanMode: "Always", natOutgoing: true }];
  return manifestText(`${identity.product}.yaml`).replace(
    /(default_pools: )\|\n( {4}.*\n)+/,
    (_, key: string) => `${key}'${JSON.stringify(pools)}'\n`,
  );
}

function service(app: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: app, namespace: NAMESPACE },
    spec: { selector: { app }, ports: [{ port: 80 }] },
  });
}
