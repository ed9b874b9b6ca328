/** `connectivity test` on two real nodes: all well, and the right reason for what is not. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { openProductControlPlane, type ProductControlPlane, productClusterProblem } from "../support/kube-product.ts";
import { testNeeding } from "../support/needs.ts";
import { type ProductImage, productImage, productImageProblem } from "../support/product-image.ts";
import { addProductNode, type ProductNode, startProductControllers } from "../support/product-nodes.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

const problem =
  productClusterProblem() ?? productImageProblem() ?? proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testNodes = testNeeding(problem);
setDefaultTimeout(240_000);

interface Checked {
  readonly title: string;
  readonly from: string;
  readonly to: string;
  readonly family?: string;
  readonly result: "ok" | "failed" | "skipped";
  readonly reason?: string;
  readonly remedy?: string;
}

describe("connectivity test, two nodes with VXLAN, dual stack", () => {
  let cluster: ProductControlPlane;
  let nodes: readonly ProductNode[];
  let image: ProductImage;
  beforeAll(async () => {
    if (problem !== undefined) return;
    image = await productImage();
    cluster = await openProductControlPlane({
      datastore: "kubernetes",
      families: "dual stack",
      tunnels: "VXLAN",
      policy: "k8s",
    });
    await startProductControllers(cluster, "kubernetes");
    nodes = [await addProductNode(cluster, "node-1"), await addProductNode(cluster, "node-2")];
    for (const { node } of nodes) {
      await node.host.must(["ctr", "-n", "k8s.io", "images", "import", image.archive]);
    }
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  /** As an administrator outside the cluster. */
  const startTest = (...args: readonly string[]) => {
    const options = [`--kubeconfig=${cluster.server.adminKubeconfig}`, "-o", "json"];
    const own = args.some((word) => word.startsWith("--image=")) ? [] : [`--image=${image.name}`];
    const tool = [builtProgram(identity.adminTool), "connectivity", "test", ...options, ...own, ...args];
    return Bun.spawn(["nsenter", `--net=${cluster.host.netns}`, "--", ...tool], { stdout: "pipe", stderr: "pipe" });
  };
  const runTest = async (...args: readonly string[]) => {
    const child = startTest(...args);
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    const code = await child.exited;
    if (stdout === "") throw new Error(stderr);
    return { code, checks: JSON.parse(stdout).checks as readonly Checked[] };
  };
  const failuresOf = (checks: readonly Checked[]) =>
    checks
      .filter(({ result }) => result === "failed")
      .map(({ title, from, to, family = "" }) => `${title} ${from} ${to} ${family}`.trim());
  const expectNoNamespace = async () => {
    const names = await cluster.server.kubectl(["get", "namespaces", "--output=name"]);
    expect(names).not.toContain("connectivity-test");
  };

  testNodes("all is well", async () => {
    const { code, checks } = await runTest();

    expect(failuresOf(checks)).toEqual([]);
    expect(code).toBe(0);
    expect(checks.filter(({ result }) => result === "ok").length).toBeGreaterThan(70);
    await expectNoNamespace();
  });

  testNodes("a tunnel that is cut fails only what needs it, with the ports to open", async () => {
    const [, second] = nodes;
    if (second === undefined) throw new Error("no second node");
    const { host } = second.node;
    await host.must(["nft", "add table inet cut; add chain inet cut in { type filter hook input priority -400; }"]);
    await host.must(["nft", "add rule inet cut in udp dport 4789 drop"]);
    const { code, checks } = await runTest("--skip=policy");
    await host.must(["nft", "delete table inet cut"]);

    expect(code).toBe(1);
    const pairs = [
      ["node-1", "node-2"],
      ["node-2", "node-1"],
    ];
    const wanted = pairs.flatMap(([from, to]) =>
      ["pod to pod", "pod to Service", "host to pod"].flatMap((title) =>
        ["IPv4", "IPv6"].map((family) => `${title} ${from} ${to} ${family}`),
      ),
    );
    expect(failuresOf(checks).toSorted()).toEqual(wanted.toSorted());
    expect(checks.find(({ result }) => result === "failed")?.remedy).toContain("UDP port 4789");
  });

  testNodes("a policy that closes all pods is found, and nothing is said about policies then", async () => {
    const policy = { apiVersion: API_VERSION, kind: "GlobalNetworkPolicy", metadata: { name: "closed" } };
    const spec = { order: 1, selector: "all()", types: ["Ingress"], ingress: [{ action: "Deny" }] };
    await cluster.server.apply(JSON.stringify({ ...policy, spec }));
    const { code, checks } = await runTest("--skip=host", "--skip=host-port");
    await cluster.server.kubectl(["delete", `globalnetworkpolicies.${identity.apiGroup}`, "closed"]);

    expect(code).toBe(1);
    const pods = checks.filter(({ title }) => title === "pod to pod");
    expect(new Set(pods.map(({ result }) => result))).toEqual(new Set(["failed"]));
    expect(pods[0]?.remedy).toContain("GlobalNetworkPolicy");
    const policies = checks.filter(({ title }) => title.startsWith("policy"));
    expect(new Set(policies.map(({ result }) => result))).toEqual(new Set(["skipped"]));
  });

  testNodes("an image that does not exist is named", async () => {
    const { code, checks } = await runTest("--image=vt.invalid/none:1", "--timeout=20s");

    expect(code).toBe(1);
    expect(checks[0]).toMatchObject({ title: "pod starts", result: "failed" });
    expect(checks[0]?.reason).toContain("vt.invalid/none:1");
    await expectNoNamespace();
  });

  testNodes("Ctrl-C deletes the namespace", async () => {
    const child = startTest();
    const reader = child.stderr.getReader();
    let said = "";
    while (!said.includes("Trying connections")) {
      const { value, done } = await reader.read();
      if (done) throw new Error(said);
      said += new TextDecoder().decode(value);
    }
    child.kill("SIGINT");

    expect(await child.exited).toBe(130);
    await cluster.server.kubectl([
      "wait",
      "--for=delete",
      "namespace",
      `--selector=app.kubernetes.io/managed-by=${identity.adminTool}`,
      "--timeout=60s",
    ]);
    await expectNoNamespace();
  });
});
