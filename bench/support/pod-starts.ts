/**
 * From the creation of a pod to Ready, on real nodes of one cluster: kubelet and
 * containerd with the product, with and without its node agent, and with upstream's
 * ptp + host-local, in turns.
 *
 * The time to Ready includes the kubelet's and the API server's own work. The second
 * table is the kubelet's figure of the sandbox alone; the network is a part of it.
 */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import { startHostDaemon } from "../../test/support/host-daemon.ts";
import { type KubeCluster, kubeClusterProblem, openKubeCluster } from "../../test/support/kube-cluster.ts";
import { PAUSE_IMAGE } from "../../test/support/kube-images.ts";
import type { KubeNode } from "../../test/support/kube-node.ts";
import {
  BIN_DIRECTORY,
  installNetwork,
  type NetworkUnderTest,
  upstreamNetwork,
} from "../../test/support/network-under-test.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { type Candidate, runComparison } from "./comparison.ts";
import { ownConfig, prepareOwnResources } from "./kube-candidates.ts";
import { type PodWatch, watchPods } from "./pod-watch.ts";
import { buildProduct } from "./programs.ts";
import { report } from "./report.ts";
import { sandboxTable, sandboxTimes } from "./sandbox-times.ts";

type Families = "IPv4" | "dual stack";

interface MeasuredNode {
  readonly name: string;
  readonly node: KubeNode;
  conflist(families: Families): object;
}

const ADDRESSES: Readonly<Record<Families, number>> = { IPv4: 1, "dual stack": 2 };
const NAMESPACE = "bench";
const ROUNDS = 20;

export async function comparePodStarts(): Promise<void> {
  const upstream = await upstreamNetwork();
  const problem = kubeClusterProblem() ?? upstream.missing;
  if (problem !== undefined) {
    console.log(`skipped: ${problem}`);
    return;
  }
  const folder = await buildProduct();
  // Pods name their node and need no service account: nobody else takes part.
  await using cluster = await openKubeCluster({ with: [] });
  await prepareOwnResources({ ...cluster, folder }, { four: "10.98.0.0/16", six: "fd98::/112" });
  const nodes = [
    await addUpstreamNode(cluster, upstream),
    await addOwnNode(cluster, { upstream, folder, name: "alone", title: identity.product }),
    await addOwnNode(cluster, { upstream, folder, name: "served", title: `${identity.product}, node agent` }),
  ];
  await startAgent(nodes[2]?.node);
  await cluster.server.createNamespace(NAMESPACE);
  await using watch = await watchPods(cluster, NAMESPACE);
  const results = [];
  const tables = [];
  for (const families of ["IPv4", "dual stack"] as const) {
    for (const { node, conflist } of nodes) node.host.writeFile(CONFIG, JSON.stringify(conflist(families)));
    const before = await sandboxTimes(cluster.server, nodes);
    const candidates = nodes.map((measured) => podCandidate({ cluster, watch, families }, measured));
    const baseline = candidates[0]?.name ?? "";
    const title = `creation of a pod to Ready, ${families}`;
    results.push(await runComparison({ title, candidates, baseline, rounds: ROUNDS, warmUpRounds: 2 }));
    tables.push(sandboxTable(families, before, await sandboxTimes(cluster.server, nodes)));
  }
  await report("kube-pods", results);
  console.log(tables.join("\n"));
}

function podCandidate(
  { cluster, watch, families }: { cluster: KubeCluster; watch: PodWatch; families: Families },
  { name, node }: MeasuredNode,
): Candidate {
  const podOf = (round: number) => `${node.name}-${round + 1_000}`;
  return {
    name,
    async run({ round }) {
      await watch.create(podManifest(podOf(round), node.name));
      await watch.until(podOf(round), "Ready");
    },
    async after({ round }) {
      const addresses = watch.addresses(podOf(round));
      // The runtime notices a new config after a moment: in the warm-up.
      if (round >= 0 && addresses.length !== ADDRESSES[families]) {
        throw new Error(`Cannot measure "${name}", ${families}: the pod has ${addresses.join(" and ")}`);
      }
      await cluster.server.kubectl(["delete", "pod", podOf(round), `--namespace=${NAMESPACE}`, "--wait=false"]);
      await watch.until(podOf(round), "gone");
    },
  };
}

/** Without a probe: it is Ready when its container runs. */
function podManifest(name: string, node: string): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: NAMESPACE },
    spec: {
      nodeName: node,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "main", image: PAUSE_IMAGE, imagePullPolicy: "Never" }],
    },
  };
}

const NETWORK = "bench";
const CONFIG = `/etc/cni/net.d/10-${NETWORK}.conflist`;
const CNI_VERSION = "1.0.0";

async function addUpstreamNode(cluster: KubeCluster, upstream: NetworkUnderTest): Promise<MeasuredNode> {
  const subnets = { IPv4: ["10.97.0.0/16"], "dual stack": ["10.97.0.0/16", "fd97::/64"] };
  const conflist = (families: Families) => {
    const ranges = subnets[families].map((subnet) => [{ subnet }]);
    const routes = [{ dst: "0.0.0.0/0" }, { dst: "::/0" }].slice(0, ranges.length);
    return conflistOf({ type: "ptp", ipam: { type: "host-local", ranges, routes } });
  };
  const network = { ...upstream, name: NETWORK, conflist: () => conflist("IPv4") };
  const node = await cluster.addNode({ name: "upstream", install: (host) => installNetwork(host, network) });
  return { name: "ptp + host-local 1.9.1", node, conflist };
}

async function addOwnNode(
  cluster: KubeCluster,
  plan: { upstream: NetworkUnderTest; folder: string; name: string; title: string },
): Promise<MeasuredNode> {
  const { upstream, folder, name, title } = plan;
  const { config } = await ownConfig(cluster.server, name);
  const conflist = (families: Families) => {
    const ipam = { type: identity.ipamType, assign_ipv6: String(families === "dual stack") };
    return conflistOf({ ...config, log_level: "ERROR", ipam });
  };
  const network = {
    ...upstream,
    name: NETWORK,
    // Upstream's for `loopback`, which the CRI calls for every pod.
    pluginDirectories: [folder, ...upstream.pluginDirectories],
    conflist: () => conflist("IPv4"),
  };
  const node = await cluster.addNode({ name, install: (host) => installNetwork(host, network) });
  return { name: title, node, conflist };
}

function conflistOf(plugin: object): object {
  return { cniVersion: CNI_VERSION, name: NETWORK, plugins: [plugin] };
}

async function startAgent(node: KubeNode | undefined): Promise<void> {
  if (node === undefined) return;
  const variables = Object.entries(NODE_ENVIRONMENT).map((variable) => variable.join("="));
  const command = ["env", ...variables, join(BIN_DIRECTORY, identity.nodeAgent)];
  const agent = startHostDaemon(node.host, "agent", command);
  await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the node agent to serve");
}
