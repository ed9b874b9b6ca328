/** Each manifest that installs the product without the operator, on two real nodes from nothing, until it is removed. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { type BareCluster, bareClusterProblem, openBareCluster, POD_RANGES } from "../support/bare-cluster.ts";
import type { ApiServer } from "../support/kube-apiserver.ts";
import type { KubeNode } from "../support/kube-node.ts";
import { manifestText } from "../support/manifest-text.ts";
import { testNeeding } from "../support/needs.ts";
import { anyUpstreamPlugins, BIN_DIRECTORY } from "../support/network-under-test.ts";
import { changesOf, type NodeState, nodeState } from "../support/node-state.ts";
import { proofSize } from "../support/proof-size.ts";
import { openInstallPage, typeOnPage } from "./install-page.ts";
import {
  expectNothingLeft,
  expectPermitted,
  expectWell,
  type InstalledCluster,
  installedCluster,
  installedTests,
  startPods,
} from "./installed-tests.ts";

const problem = bareClusterProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testCluster = testNeeding(problem);
setDefaultTimeout(300_000);

interface Row {
  readonly file: string;
  readonly title: string;
  /** Who connects the pods. "fabric": our plugin, and others have written the routes between the nodes. */
  readonly network: "own" | "other" | "fabric";
}

const ROWS: readonly Row[] = [
  { file: `${identity.product}.yaml`, title: "networking and policy", network: "own" },
  { file: `${identity.product}-etcd.yaml`, title: "networking and policy, on etcd", network: "own" },
  {
    file: `${identity.product}-policy-other-network.yaml`,
    title: "policy with another networking plugin",
    network: "other",
  },
  {
    file: `${identity.product}-etcd-policy-other-network.yaml`,
    title: "policy with another networking plugin, on etcd",
    network: "other",
  },
  { file: `${identity.product}-policy-only.yaml`, title: "policy only", network: "fabric" },
];

describe.each(ROWS)("the manifest for $title", ({ file, network }) => {
  const page = openInstallPage();
  let installed: InstalledCluster;
  let prepared: ReadonlyMap<string, NodeState>;
  beforeAll(async () => {
    if (problem !== undefined) return;
    const cluster = await openBareCluster();
    installed = installedCluster(cluster);
    if (network !== "own") await routeToPods(cluster);
    if (network === "other") for (const node of cluster.nodes) await installPtp(node, cluster.server);
    prepared = new Map(
      await Promise.all(cluster.nodes.map(async (node) => [node.name, await nodeState(node.host)] as const)),
    );
  });
  afterAll(() => installed?.[Symbol.asyncDispose]());

  const type = (title: string) =>
    typeOnPage(page, title, installed, { replacing: { [`dist/manifests/${identity.product}.yaml`]: "edited.yaml" } });

  testCluster("makes the nodes Ready", async () => {
    const { host, server } = installed;
    host.writeFile(join(host.directory, "edited.yaml"), edited(file, server));
    expect(await type("With a manifest")).toContain("successfully rolled out");
    await startPods(installed);
  });

  installedTests(testCluster, () => installed);

  testCluster("is well, as the admin tool says", () => expectWell(installed));

  if (network !== "own") {
    testCluster("does not touch the routes and tunnels of others", async () => {
      for (const { name, host } of installed.nodes) {
        const changes = changesOf(prepared.get(name) ?? new Map(), await nodeState(host));
        expect(changes.filter((line) => /^[+-] (routes|rules): (?!.*(veth|vend))|^- /.test(line))).toEqual([]);
      }
    });
  }

  testCluster("leaves nothing on the nodes when it is removed", async () => {
    await installed.pods.removeAll();
    await type("Remove what a manifest installed");
    const nodes = installed.nodes.map((node) => ({ ...node, before: prepared.get(node.name) ?? node.before }));
    await expectNothingLeft({ ...installed, nodes }, network === "other" ? UPSTREAM_TABLES : undefined);
    expectPermitted(installed);
  });
});

/** Upstream's portmap creates them for the first host port. */
const UPSTREAM_TABLES = /^\+ tables: table ip6? nat$/;

/** As an administrator edits it: dual stack, with the pools of this cluster, or with its etcd. */
function edited(file: string, { etcdEndpoint }: ApiServer): string {
  const text = manifestText(file);
  const pools = POD_RANGES.map((cidr) => ({ cidr, vxlanMode: "CrossSubnet", natOutgoing: true }));
  return text
    .replace(/(default_pools: )\|\n( {4}.*\n)+/, (_, key: string) => `${key}'${JSON.stringify(pools)}'\n`)
    .replace('"assign_ipv6": "false"', '"assign_ipv6": "true"')
    .replace(/(\[\s*\{\s*"subnet": "usePodCidr"\s*\}\s*\])/, '$1, [{ "subnet": "usePodCidrIPv6" }]')
    .replace("http://<ETCD_IP>:<ETCD_PORT>", etcdEndpoint);
}

/** As the network around the nodes would: every machine leads the ranges of a node's pods there. */
async function routeToPods({ server, nodes, host: controlPlane }: BareCluster): Promise<void> {
  for (const { name, addresses } of nodes) {
    const others = [controlPlane, ...nodes.filter((other) => other.name !== name).map(({ host }) => host)];
    for (const range of await rangesOf(server, name)) {
      const via = addresses.find((address) => address.includes(":") === range.includes(":")) ?? "";
      for (const host of others) await host.must(["ip", "route", "add", range, "via", via]);
    }
  }
}

async function rangesOf(server: ApiServer, node: string): Promise<readonly string[]> {
  const { spec } = await server.get<{ readonly spec: { readonly podCIDRs: readonly string[] } }>("node", node);
  return spec.podCIDRs;
}

/** Another networking plugin: upstream's ptp with host-local, in the ranges of the node. */
async function installPtp({ name, host }: KubeNode, server: ApiServer): Promise<void> {
  const upstream = await anyUpstreamPlugins();
  for (const program of ["ptp", "host-local", "portmap"]) {
    copyFileSync(join(upstream, program), host.view(join(BIN_DIRECTORY, program)));
  }
  const ranges = (await rangesOf(server, name)).map((subnet) => [{ subnet }]);
  const routes = [{ dst: "0.0.0.0/0" }, { dst: "::/0" }];
  const plugins = [
    { type: "ptp", ipam: { type: "host-local", ranges, routes } },
    { type: "portmap", capabilities: { portMappings: true }, snat: true },
  ];
  host.writeFile("/etc/cni/net.d/10-ptp.conflist", JSON.stringify({ cniVersion: "1.0.0", name: "ptp", plugins }));
}
