import { describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

function convert(document: object | readonly object[], ...args: readonly string[]): Promise<AdminRun> {
  const stdin = [document]
    .flat()
    .map((each) => JSON.stringify(each))
    .join("\n---\n");
  const openDatastore = () => Promise.reject(new Error("it was opened"));
  return runInside(["convert", "-f", "-", ...args], { stdin, openDatastore });
}

async function converted(document: object): Promise<unknown> {
  const { code, stdout, stderr } = await convert(document, "-o", "json");
  expect([code, stderr]).toEqual([EXIT_OK, ""]);
  return JSON.parse(stdout);
}

const CONVERSIONS: readonly (readonly [string, object, object])[] = [
  [
    "a NetworkPolicy of the orchestrator",
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "web", namespace: "shop", uid: "1" },
      spec: { podSelector: { matchLabels: { app: "web" } }, ingress: [{ from: [{ podSelector: {} }] }] },
    },
    {
      kind: "NetworkPolicy",
      metadata: { name: "web", namespace: "shop" },
      spec: expect.objectContaining({ types: ["Ingress"], order: 1000 }),
    },
  ],
];

describe("convert", () => {
  test.each(CONVERSIONS)("%s", async (_, document, expected) => {
    expect(await converted(document)).toEqual({ apiVersion: API_VERSION, ...expected });
  });

  test("resources of v3 stay as they are, and several become a list that can be applied", async () => {
    const pool = { apiVersion: API_VERSION, kind: "IPPool", metadata: { name: "blue" }, spec: { cidr: "10.0.0.0/24" } };
    const node = { apiVersion: API_VERSION, kind: "Node", metadata: { name: "n1" }, spec: {} };
    const { stdout } = await convert([pool, node]);
    const applied = await runInside(["apply", "-f", "-"], { stdin: stdout });

    expect(applied.stdout).toBe("ippool/blue created\nnode/n1 created\n");
  });

  test.each([
    [
      {
        apiVersion: API_VERSION,
        kind: "IPPool",
        metadata: { name: "p" },
        spec: { cidr: "10.0.0.0/16", colour: "blue" },
      },
      "spec.colour",
    ],
    [{ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: {} }, 'kind: "Pod" of "v1" cannot be converted'],
  ])("refuses %j", async (document, reason) => {
    const refused = await convert(document);

    expect([refused.code, refused.stdout]).toEqual([EXIT_FAILED, ""]);
    expect(refused.stderr).toContain(reason);
    expect((await convert(document, "--ignore-validation")).code).toBe(EXIT_OK);
  });

  test.each([
    ["example.org/v3", "NodeAgentConfiguration", "NodeAgentConfiguration"],
    ["crd.example.org/v1", "FelixConfiguration", "NodeAgentConfiguration"],
    ["example.org/v3", "GlobalNetworkPolicy", "GlobalNetworkPolicy"],
  ])("gives a resource of %s, a %s, the group of this product", async (apiVersion, kind, wanted) => {
    const metadata = { name: "default", resourceVersion: "7", uid: "u", annotations: { "cni.example.org/a": "b" } };
    const spec =
      wanted === kind && kind !== "NodeAgentConfiguration" ? { selector: "example.org/namespace == 'a'" } : {};
    const group = API_VERSION.split("/")[0];

    expect(await converted({ apiVersion, kind, metadata, spec })).toMatchObject({
      apiVersion: API_VERSION,
      kind: wanted,
      metadata: { name: "default", annotations: { [`cni.${group}/a`]: "b" } },
      spec: JSON.parse(JSON.stringify(spec).replace("example.org", String(group))),
    });
  });

  test("decodes the labels and the name of a policy as former releases stored it", async () => {
    const hidden = { labels: { role: "db", "example.org/zone": "a" }, annotations: { note: "kept" }, uid: "u" };
    const metadata = {
      ...{ name: "default.web", namespace: "shop" },
      annotations: { "example.org/metadata": JSON.stringify(hidden), "cni.example.org/a": "b" },
    };
    const spec = { tier: "default", selector: "role == 'db'" };

    const resource = await converted({ apiVersion: "crd.example.org/v1", kind: "NetworkPolicy", metadata, spec });
    expect(resource).toEqual({
      ...{ apiVersion: API_VERSION, kind: "NetworkPolicy", spec },
      metadata: {
        ...{ name: "web", namespace: "shop" },
        labels: { role: "db", [`${identity.labelPrefix}zone`]: "a" },
        annotations: { note: "kept", [`cni.${identity.labelPrefix}a`]: "b" },
      },
    });
  });

  test("renames only keys of labels, annotations and selectors that are in the other group", async () => {
    const paths = [{ exact: "/example.org/x" }];
    const owner = { apiVersion: "example.org/v3", kind: "Tier", name: "t", uid: "u" };
    const labels = { "example.org/a": "example.org/b", "myexample.org/c": "d", selector: "example.org/e" };
    const document = (own: string) => ({
      selector: `myexample.org/role == "example.org/a" && has(pcns.${own}name) && ${own}b in {'cni.example.org/c'}`,
      ingress: [{ action: "Allow", protocol: "TCP", source: { notSelector: `!has(${own}x)` }, http: { paths } }],
    });
    const resource = await converted({
      ...{ apiVersion: "example.org/v3", kind: "GlobalNetworkPolicy", spec: document("example.org/") },
      metadata: { name: "p", ownerReferences: [owner], labels },
    });

    const { "example.org/a": renamed, ...others } = labels;
    expect(resource).toEqual({
      ...{ apiVersion: API_VERSION, kind: "GlobalNetworkPolicy", spec: document(identity.labelPrefix) },
      metadata: { name: "p", labels: { [`${identity.labelPrefix}a`]: renamed, ...others } },
    });
  });

  test.each(["GlobalNetworkPolicy", "FelixConfiguration"])("apply of such a %s names the command", async (kind) => {
    const stdin = JSON.stringify({ apiVersion: "example.org/v3", kind, metadata: { name: "default" }, spec: {} });
    const { code, stderr } = await runInside(["apply", "-f", "-"], { stdin });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(`can be converted: ${identity.adminTool} convert`);
  });

  const POLICY = {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "web" },
    spec: { podSelector: {} },
  };
  const config = (more: object) =>
    JSON.stringify({
      name: "net",
      cniVersion: "1.0.0",
      type: identity.product,
      ipam: { type: identity.ipamType },
      ...more,
    });

  test.each([
    ["without Kubernetes", config({ datastore_type: "embedded" }), true],
    ["with Kubernetes", config({ datastore_type: "kubernetes", kubernetes: { kubeconfig: "/k" } }), false],
    ["without a network", undefined, false],
  ])("says on a host %s whether a converted policy selects anything", async (_, text, isSaid) => {
    const files = text === undefined ? {} : { "/etc/cni/net.d/10-net.conf": text };
    const { code, stderr } = await runInside(["convert", "-f", "-"], { stdin: JSON.stringify(POLICY), files });

    expect(code).toBe(EXIT_OK);
    expect(stderr.includes("selects only pods of Kubernetes")).toBe(isSaid);
  });

  test("reports a rule of a NetworkPolicy that is left out", async () => {
    const { code, stderr } = await convert({
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "web", namespace: "shop" },
      spec: { podSelector: {}, ingress: [{ from: [{ domain: "example.org" }] }] },
    });

    expect(code).toBe(EXIT_OK);
    expect(stderr).toContain("warning:");
  });
});
