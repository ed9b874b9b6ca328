/**
 * docs/kubernetes.md and docs/admission.md are true: their commands are run in their order, on a real control plane and a node without a network.
 * The administrator's commands run on the node as well, with the administrator's kubeconfig.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buildPackage } from "../../scripts/deb/build-package.ts";
import { identity } from "../../src/identity.ts";
import { openDocsPage } from "../support/docs-page.ts";
import { type HostDaemon, startHostDaemon } from "../support/host-daemon.ts";
import { kubeProgram } from "../support/kube-apiserver.ts";
import { type KubeCluster, kubeClusterProblem, openKubeCluster } from "../support/kube-cluster.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";
import type { KubeNode } from "../support/kube-node.ts";
import { program, testNeeding } from "../support/needs.ts";
import { anyUpstreamPlugins, BIN_DIRECTORY } from "../support/network-under-test.ts";
import { packageRequest } from "../support/package-request.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

/** What it shows is in `make test` in parts: clusters that the operator installs, pods of real nodes, and the admission policies. */
const onlyInSoak = proofSize({ everyDay: "only in `make soak`", soak: undefined });
const needs = [kubeClusterProblem(), program("dpkg-deb"), onlyInSoak];
const testPage = testNeeding(...needs);
const page = openDocsPage("kubernetes.md");
const admissionPage = openDocsPage("admission.md");

const ADMIN_CONFIG = "/etc/kubernetes/admin.conf";

describe("the page about Kubernetes", () => {
  let cluster: KubeCluster;
  let node: KubeNode;
  let agent: HostDaemon;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    cluster = await openKubeCluster();
    node = await cluster.addNode({ name: "node-1" });
    await prepare(cluster, node);
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const typeOnNode = (title: string) => page.type(title, { host: node.host, replacing: examples() });
  const typeAsAdministrator = (title: string, environment: Readonly<Record<string, string>> = {}) =>
    page.type(title, {
      host: node.host,
      replacing: examples(),
      environment: { KUBECONFIG: ADMIN_CONFIG, ...environment },
    });
  const typeOfAdmission = (title: string) =>
    admissionPage.type(title, { host: node.host, environment: { KUBECONFIG: ADMIN_CONFIG, EDITOR: "true" } });
  const examples = () => ({ IMAGE: AGNHOST_IMAGE, "http://10.0.0.10:2379": cluster.server.etcdEndpoint });

  testPage("prepares the cluster", async () => {
    expect(await typeAsAdministrator("Once per cluster")).toContain("Initialized the datastore");
    expect(await typeAsAdministrator("The pools", { DATASTORE_TYPE: "kubernetes" })).toMatch(
      /^ippool\/default-ipv4 created$/m,
    );
    await typeAsAdministrator("The kubeconfigs");
    await typeAsAdministrator("The tokens of a node");

    for (const name of ["plugin", "node"]) {
      const kubeconfig = readFileSync(node.host.view(join(node.host.directory, `${name}-kubeconfig`)), "utf8");
      expect(kubeconfig).not.toMatch(/client-key-data|token:/);
    }
  });

  testPage("restricts who may choose addresses, and what nodes may write", async () => {
    const installed = await typeOfAdmission("Install by hand");
    expect(installed.match(/^validatingadmissionpolicybinding\S+ created$/gm)).toHaveLength(13);
    await typeOfAdmission("Permit a namespace or a service account");
  });

  testPage("makes a node Ready, and registers it with the kubelet's kubeconfig", async () => {
    await typeOnNode("On every node");
    agent = startHostDaemon(node.host, "agent", [join(BIN_DIRECTORY, identity.nodeAgent)]);
    const printed = await typeOnNode("Check and register the node");

    expect(printed).toContain(".conflist: ok");
    expect(printed).toMatch(/^ok +ready /m);
    expect(printed).toMatch(/^node\/node-1 updated$/m);
  });

  testPage("runs a pod", async () => {
    const printed = await typeAsAdministrator("Run a pod");

    expect(printed).toMatch(/^web +1\/1 +Running .* 10\.244\.\d+\.\d+ /m);
    expect(printed).toMatch(/^default .* web +node-1 +10\.244\.\d+\.\d+\/32,fd00:244::\S+\/128 /m);
    // Two of them are those of the tunnels of the node.
    expect(printed).toContain("4 addresses in use, 3 handles: no problems");
  });

  testPage("closes the pod by a policy, which the agent enforces under its role", async () => {
    const printed = await typeAsAdministrator("Network policy");

    expect(printed).toMatch(/^Verdict: +denied$/m);
    await pollUntil(() => agent.log().includes("Network policy: enforced (policies: 1"), "the agent to enforce it");
    expect(agent.log()).not.toContain("[ERROR]");
  });

  testPage("removes it, and leaves nothing in the cluster and on the node", async () => {
    await typeAsAdministrator("Remove it from the cluster");
    // What the package does on a machine with systemd; the kubelet then forgets the agent's CSI driver.
    await agent.stop();
    await typeOnNode("Remove it from a node");
    expect(await typeOfAdmission("Remove by hand")).toMatch(/^configmap "\S+" deleted/m);
    await typeOfAdmission("What a node may write");
    expect(admissionPage.untried()).toEqual([]);

    expect(await cluster.server.kubectl(["get", "crds", "--output=name"])).toBe("");
    const annotations = () =>
      cluster.server.kubectl(["get", "node", "node-1", "--output=jsonpath={.metadata.annotations}"]);
    await pollUntil(async () => !(await annotations()).includes(identity.apiGroup), "a Node without our annotations");
    const left = ["/etc/cni/net.d", BIN_DIRECTORY].flatMap((directory) => readdirSync(node.host.view(directory)));
    expect(left).toEqual(["loopback"]);
    expect(existsSync(node.host.view(identity.configDirectory))).toBe(false);
    expect(await node.host.must(["ip", "-o", "link"])).not.toContain("vxlan");
  });

  testPage("does the same with etcd, without the node agent", async () => {
    await typeAsAdministrator("With etcd: once per cluster");
    await typeAsAdministrator("The pools", { ETCD_ENDPOINTS: cluster.server.etcdEndpoint });
    await typeAsAdministrator("The kubeconfigs");
    await typeAsAdministrator("The tokens of a node");
    await typeOnNode("On every node");
    await typeOnNode("With etcd: on every node");
    const printed = await typeAsAdministrator("Run a pod");

    expect(printed).toMatch(/^default .* web +node-1 +10\.244\.\d+\.\d+\/32,fd00:244::\S+\/128 /m);
    expect(printed).toContain("2 addresses in use, 1 handle: no problems");
  });

  testPage("has no section that is not tried", () => {
    expect(page.untried()).toEqual([]);
  });
});

/** What a machine has before: kubectl, `loopback` for the CRI, the files of this repository and of kubeadm, a /usr to write to. */
async function prepare({ server }: KubeCluster, { host, name }: KubeNode): Promise<void> {
  const script = `
mkdir -p /run/usr/upper /run/usr/work ${host.directory}/dist
mount -t overlay vt -o lowerdir=/usr,upperdir=/run/usr/upper,workdir=/run/usr/work /usr
ln -s ${kubeProgram("kubectl")} /usr/local/bin/kubectl
cp ${await anyUpstreamPlugins()}/loopback ${BIN_DIRECTORY}
ln -s ${join(import.meta.dir, "../../deploy")} ${host.directory}/deploy
ln -s ${builtProgram(identity.adminTool)} /usr/local/bin/${identity.adminTool}
`;
  await host.must(["sh", "-ec", script]);
  Bun.spawnSync(["cp", "-a", "/var/lib/dpkg", host.view("/var/lib/dpkg")]);
  host.writeFile(ADMIN_CONFIG, readFileSync(server.adminKubeconfig, "utf8"));
  host.writeFile(
    "/etc/kubernetes/kubelet.conf",
    readFileSync(join(server.directory, `node-${name}.kubeconfig`), "utf8"),
  );
  await buildPackage(packageRequest(host.view(join(host.directory, "dist"))));
}
