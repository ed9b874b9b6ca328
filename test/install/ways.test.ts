/** The other ways to install the product, each on two real nodes from nothing, until it is removed. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { partIfBuilt } from "../parts/build.ts";
import { bareClusterProblem, openBareCluster, POD_RANGES } from "../support/bare-cluster.ts";
import { addressesOf } from "../support/kube-pods.ts";
import { testNeeding } from "../support/needs.ts";
import { installationOn, installOperator, removeInstallation, untilInstalled } from "../support/operator-install.ts";
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
setDefaultTimeout(300_000);
const page = openInstallPage();

interface Way {
  readonly title: string;
  /** Why it cannot be tried here. */
  readonly missing?: string | undefined;
  install(cluster: InstalledCluster): Promise<unknown>;
  remove(cluster: InstalledCluster): Promise<unknown>;
  /** What only this way has. */
  check?(cluster: InstalledCluster): Promise<void>;
}

const WAYS: readonly Way[] = [
  {
    title: "an Installation on etcd",
    async install({ server }) {
      await installOperator(server);
      await server.apply(JSON.stringify(installationOn(server, "etcd")));
      await untilInstalled(server);
    },
    remove: ({ server }) => removeInstallation(server),
  },
  {
    title: "an Installation with addresses of the ranges of the nodes",
    async install({ server }) {
      await server.apply(kubeadmConfig());
      await installOperator(server);
      const { spec: _, ...installation } = installationOn(server, "kubernetes");
      await server.apply(JSON.stringify({ ...installation, spec: { cni: { ipam: { type: "HostLocal" } } } }));
      await untilInstalled(server);
    },
    remove: ({ server }) => removeInstallation(server),
    async check({ pods, server }) {
      const { spec } = await server.get<{ readonly spec: { readonly podCIDRs: readonly string[] } }>("node", "node-1");
      const addresses = addressesOf(await pods.get("a"));
      expect(addresses).toHaveLength(2);
      for (const [index, range] of spec.podCIDRs.entries()) {
        expect(addresses[index]).toStartWith(range.replace(/(0|:)\/\d+$/, ""));
      }
    },
  },
  {
    title: `${identity.adminTool} install`,
    install: (cluster) => typeOnPage(page, `With ${identity.adminTool}`, cluster),
    remove: ({ admin }) => admin("uninstall"),
  },
  ...(["helm3", "helm4"] as const).map((version) => ({
    title: `the chart, with ${version}`,
    missing: helmProblem(version),
    install: (cluster: InstalledCluster) =>
      typeOnPage(page, "With Helm", cluster, { programs: dirname(helmPath(version)) }),
    remove: ({ host, server }: InstalledCluster) =>
      host.must([helmPath(version), "uninstall", "net", "--namespace", identity.operator], {
        environment: { KUBECONFIG: server.adminKubeconfig, HOME: host.directory },
        limitMilliseconds: 200_000,
      }),
  })),
];

describe.each(WAYS)("$title", ({ install, remove, check, missing }) => {
  const testCluster = testNeeding(problem, missing);
  let installed: InstalledCluster;
  beforeAll(async () => {
    if ((problem ?? missing) === undefined) installed = installedCluster(await openBareCluster());
  });
  afterAll(() => installed?.[Symbol.asyncDispose]());

  testCluster("makes the nodes Ready", async () => {
    await install(installed);
    await startPods(installed);
    await check?.(installed);
  });

  installedTests(testCluster, () => installed);

  testCluster("is well, as the admin tool says", () => expectWell(installed));

  testCluster("leaves nothing on the nodes when it is removed", async () => {
    await installed.pods.removeAll();
    await remove(installed);
    await expectNothingLeft(installed);
    expectPermitted(installed);
  });
});

function helmProblem(version: "helm3" | "helm4"): string | undefined {
  const built = partIfBuilt(version);
  return "missing" in built ? built.missing : undefined;
}

function helmPath(version: "helm3" | "helm4"): string {
  const built = partIfBuilt(version);
  if ("missing" in built) throw new Error(built.missing);
  return built.path;
}

/** By which the operator knows the ranges of pods. */
function kubeadmConfig(): string {
  const networking = [`networking:`, `  podSubnet: ${POD_RANGES.join(",")}`].join("\n");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "kubeadm-config", namespace: "kube-system" },
    data: { ClusterConfiguration: `apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n${networking}\n` },
  });
}
