import { describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../test/support/admin-context.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK } from "../command.ts";

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

function former(kind: string, metadata: object, spec: object = {}): object {
  return { apiVersion: "v1", kind, metadata, spec };
}

const CONVERSIONS: readonly (readonly [string, object, object])[] = [
  [
    "a pool is named by its CIDR",
    former("ipPool", { cidr: "10.1.0.0/16" }, { ipip: { enabled: true, mode: "cross-subnet" }, "nat-outgoing": true }),
    {
      kind: "IPPool",
      metadata: { name: "10-1-0-0-16" },
      spec: { cidr: "10.1.0.0/16", ipipMode: "CrossSubnet", natOutgoing: true },
    },
  ],
  [
    "a pool without tunnels, of IPv6",
    former("ippool", { cidr: "fd00::/112" }, { ipip: { enabled: false, mode: "always" }, disabled: true }),
    {
      kind: "IPPool",
      metadata: { name: "fd00---112" },
      spec: { cidr: "fd00::/112", ipipMode: "Never", disabled: true },
    },
  ],
  [
    "a node",
    former("node", { name: "Node_A" }, { bgp: { asNumber: 64512, ipv4Address: "192.0.2.1/24" } }),
    { kind: "Node", metadata: { name: "node-a" }, spec: { bgp: { asNumber: 64512, ipv4Address: "192.0.2.1/24" } } },
  ],
  [
    "a global peer",
    former("bgpPeer", { scope: "global", peerIP: "192.0.2.9" }, { asNumber: 64513 }),
    { kind: "BGPPeer", metadata: { name: "192-0-2-9" }, spec: { peerIP: "192.0.2.9", asNumber: 64513 } },
  ],
  [
    "a peer of a node",
    former("bgpPeer", { scope: "node", node: "n1", peerIP: "fd00::9" }, { asNumber: 64513 }),
    {
      kind: "BGPPeer",
      metadata: { name: "n1.fd00-0000-0000-0000-0000-0000-0000-0009" },
      spec: { peerIP: "fd00::9", asNumber: 64513, node: "n1" },
    },
  ],
  [
    "a host endpoint",
    former(
      "hostEndpoint",
      { name: "eth0", node: "n1", labels: { role: "db" } },
      { interfaceName: "eth0", expectedIPs: ["192.0.2.1"], profiles: ["p1", "k8s_ns.shop"] },
    ),
    {
      kind: "HostEndpoint",
      metadata: { name: "n1.eth0", labels: { role: "db" } },
      spec: { node: "n1", interfaceName: "eth0", expectedIPs: ["192.0.2.1"], profiles: ["p1", "kns.shop"] },
    },
  ],
  [
    "the endpoint of a pod",
    former(
      "workloadEndpoint",
      {
        name: "eth0",
        workload: "shop.web-0",
        orchestrator: "k8s",
        node: "n1",
        activeInstanceID: "abc",
        labels: { [`${identity.product}/k8s_ns`]: "shop" },
      },
      { ipNetworks: ["10.0.0.5/32"], interfaceName: "vend1", mac: "ee:ee:ee:ee:ee:ee", profiles: ["k8s_ns.shop"] },
    ),
    {
      kind: "WorkloadEndpoint",
      metadata: {
        name: "n1-k8s-web--0-eth0",
        namespace: "shop",
        labels: { [`${identity.labelPrefix}namespace`]: "shop" },
      },
      spec: {
        orchestrator: "k8s",
        node: "n1",
        pod: "web-0",
        containerID: "abc",
        endpoint: "eth0",
        ipNetworks: ["10.0.0.5/32"],
        profiles: ["kns.shop"],
        interfaceName: "vend1",
        mac: "ee:ee:ee:ee:ee:ee",
      },
    },
  ],
  [
    "a profile, whose tags become labels",
    former(
      "profile",
      { name: "p1", tags: ["web"], labels: { a: "1" } },
      { ingress: [{ action: "deny" }], egress: [{ action: "allow" }] },
    ),
    {
      kind: "Profile",
      metadata: { name: "p1" },
      spec: { labelsToApply: { a: "1", web: "" }, ingress: [{ action: "Deny" }], egress: [{ action: "Allow" }] },
    },
  ],
  [
    "a policy, with all criteria of v1",
    former(
      "policy",
      { name: "allow.web" },
      {
        order: 100,
        selector: `${identity.product}/k8s_ns == 'shop'`,
        ingress: [
          {
            action: "next-tier",
            protocol: "tcp",
            source: {
              tag: "web",
              selector: "a == 'b' || c == 'd'",
              net: "10.0.0.5/24",
              "!nets": ["10.1.0.0/16"],
              "!tag": "x",
            },
            destination: { ports: [80, "1000:2000"], notPorts: [99] },
          },
          { action: "deny", protocol: "icmp", "!icmp": { type: 8 } },
        ],
      },
    ),
    {
      kind: "GlobalNetworkPolicy",
      metadata: { name: "allow-web-6318df38" },
      spec: {
        order: 100,
        selector: `${identity.labelPrefix}namespace == 'shop'`,
        types: ["Ingress"],
        ingress: [
          {
            action: "Pass",
            protocol: "TCP",
            source: {
              nets: ["10.0.0.0/24"],
              notNets: ["10.1.0.0/16"],
              selector: "(a == 'b' || c == 'd') && web == ''",
              notSelector: "x == ''",
            },
            destination: { ports: [80, "1000:2000"], notPorts: [99] },
          },
          { action: "Deny", protocol: "ICMP", notICMP: { type: 8 } },
        ],
      },
    },
  ],
  [
    "a policy before tracking applies to forwarded packets",
    former(
      "policy",
      { name: "raw" },
      { doNotTrack: true, selector: "all()", egress: [{ action: "allow" }], types: ["egress"] },
    ),
    {
      kind: "GlobalNetworkPolicy",
      metadata: { name: "raw" },
      spec: {
        selector: "all()",
        types: ["Egress"],
        egress: [{ action: "Allow" }],
        doNotTrack: true,
        applyOnForward: true,
      },
    },
  ],
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
    const { stdout } = await convert([pool, former("node", { name: "n1" })]);
    const applied = await runInside(["apply", "-f", "-"], { stdin: stdout });

    expect(applied.stdout).toBe("ippool/blue created\nnode/n1 created\n");
  });

  test.each([
    [former("ipPool", { cidr: "10.0.0.0/16" }, { colour: "blue" }), "spec.colour: is not a field of v1"],
    [former("ipPool", {}), "metadata.cidr: is missing"],
    [former("policy", { name: "p" }, { ingress: [{ action: "shout" }] }), 'spec.ingress[0].action: is "shout"'],
    [
      former("policy", { name: "p" }, { ingress: [{ source: { domain: "x" } }] }),
      "spec.ingress[0].source.domain: is not a field",
    ],
    [former("bgpPeer", { scope: "node", peerIP: "192.0.2.9" }), "metadata.node: must be given"],
    [former("pod", { name: "p" }), 'kind: "pod" of "v1" cannot be converted'],
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
