import { describe, expect, test } from "bun:test";
import { objectTable } from "../../../test/support/object-table.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { resourceKey } from "../../model/keys.ts";
import type { Facts } from "../engine/facts.ts";
import { detectFacts } from "./detect.ts";
import type { DetectionRequest } from "./detection.ts";

const TARGET = "v3.29.0";

interface Agents {
  readonly name?: string;
  readonly namespace?: string;
  readonly version?: string;
  readonly image?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly others?: readonly string[];
  readonly selector?: Readonly<Record<string, string>>;
  readonly status?: object;
}

/** The DaemonSet of an earlier release, with the variables that tell its variant. */
function agents(given: Agents = {}): object {
  const { name = "vendor-node", namespace = "kube-system", version = "v3.26.1", env = {}, others = [] } = given;
  const image = given.image ?? `docker.io/vendor/node:${version}`;
  const variables = Object.entries(env).map(([key, value]) =>
    value === undefined ? { name: key, valueFrom: { configMapKeyRef: {} } } : { name: key, value },
  );
  const containers = [
    { name: "vendor-node", image, env: variables },
    ...others.map((each) => ({ name: each, image: "x:1" })),
  ];
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name, namespace },
    spec: {
      selector: { matchLabels: given.selector ?? { "k8s-app": name } },
      template: { spec: { containers, initContainers: [{ name: "install-cni", image }] } },
    },
    status: given.status ?? { desiredNumberScheduled: 2, updatedNumberScheduled: 2 },
  };
}

const KUBERNETES = { DATASTORE_TYPE: "kubernetes" };
const PRESENT = { "app.kubernetes.io/name": "vendor-node" };

function deployment(name: string, { namespace = "kube-system", image = "" } = {}): object {
  const template = { spec: { containers: [{ name, image: image || `docker.io/vendor/${name}:v3.26.1` }] } };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: { replicas: 1, selector: { matchLabels: {} }, template },
    status: { updatedReplicas: 1 },
  };
}

function settings(data: object, name = "vendor-config"): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "kube-system" }, data };
}

function list(plugin: object): string {
  // As in the manifests: a number that the installation fills in.
  return JSON.stringify({
    name: "pods",
    cniVersion: "0.3.1",
    plugins: [{ type: "vendor", mtu: 1, ...plugin }],
  }).replace('"mtu":1', '"mtu": __CNI_MTU__');
}

const OWN_IPAM = { datastore_type: "kubernetes", ipam: { type: "vendor-ipam" } };
const NODE_RANGES = { datastore_type: "kubernetes", ipam: { type: "host-local", subnet: "usePodCidr" } };

function information(version: string, more: object = {}, apiVersion = "crd.vendor.org/v1"): object {
  const spec = { vendorVersion: version, datastoreReady: true, ...more };
  return { apiVersion, kind: "ClusterInformation", metadata: { name: "default" }, spec };
}

function definition(group: string): object {
  const metadata = { name: `clusterinformations.${group}` };
  return { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata };
}

const FORMER = [definition("crd.vendor.org"), information("v3.26.1")];
const CURRENT = [definition("vendor.org"), information("v3.28.0", {}, "vendor.org/v3")];

function release(
  chart: string,
  { namespace = "default", name = "vendor", version = 1, status = "deployed", from = "v3.22.0" } = {},
) {
  const record = {
    name,
    version,
    info: { status },
    chart: { metadata: { name: chart, version: from } },
    config: { a: 1 },
  };
  const encoded = Buffer.from(Bun.gzipSync(JSON.stringify(record))).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "helm.sh/release.v1",
    metadata: { name: `sh.helm.release.v1.${name}.v${version}`, namespace },
    data: { release: Buffer.from(encoded).toString("base64") },
  };
}

const INSTALLATION = { apiVersion: "operator.vendor.io/v1", kind: "Installation", metadata: { name: "default" } };
const OPERATED = [
  agents({ namespace: "vendor-system", env: KUBERNETES, version: "v3.22.0" }),
  deployment("vendor-operator", { namespace: "vendor-operator", image: "quay.io/vendor/operator:v1.25.0" }),
  { ...INSTALLATION, status: { vendorVersion: "v3.22.0" } },
  definition("crd.vendor.org"),
  information("v3.22.0"),
];

async function detect(items: readonly object[], request: Partial<DetectionRequest> = {}) {
  const { objects, paths } = objectTable(items, { "/version": { gitVersion: "v1.34.1" } });
  const detection = await detectFacts(objects, { target: TARGET, ignoredGroups: [], ...request });
  const facts: Partial<Facts> = detection.kind === "found" ? detection.facts : detection.partial;
  const obstacles = detection.kind === "found" ? [] : detection.obstacles;
  return { facts, obstacles, paths, remedies: obstacles.map(({ remedy }) => remedy).join("; ") };
}

describe("the install method", () => {
  const etcd = { ETCD_ENDPOINTS: undefined, VENDOR_NETWORKING_BACKEND: undefined };
  const bird = { ...KUBERNETES, VENDOR_NETWORKING_BACKEND: undefined };
  const none = { ...KUBERNETES, VENDOR_NETWORKING_BACKEND: "none" };
  const cases: readonly (readonly [name: string, items: readonly object[], method: object])[] = [
    [
      "vendor.yaml",
      [agents({ env: bird }), settings({ vendor_backend: "bird", cni_network_config: list(OWN_IPAM) }), ...FORMER],
      { kind: "manifest", network: "own" },
    ],
    [
      "vendor-typha.yaml",
      [
        agents({ env: bird }),
        deployment("vendor-typha"),
        settings({ vendor_backend: "bird", cni_network_config: list(OWN_IPAM) }),
        ...FORMER,
      ],
      { kind: "manifest", network: "own" },
    ],
    [
      "vendor-vxlan.yaml",
      [
        agents({ env: { ...bird, VENDOR_IPV4POOL_VXLAN: "Always" } }),
        settings({ vendor_backend: "vxlan", cni_network_config: list(OWN_IPAM) }),
        ...FORMER,
      ],
      { kind: "manifest", network: "own" },
    ],
    [
      "vendor.yaml with addresses of host-local",
      [agents({ env: bird }), settings({ vendor_backend: "bird", cni_network_config: list(NODE_RANGES) }), ...FORMER],
      { kind: "manifest", network: "own" },
    ],
    [
      "vendor-policy-only.yaml",
      [
        agents({ env: { ...none, USE_POD_CIDR: "true", VENDOR_MANAGE_CNI: "false" } }),
        deployment("vendor-typha"),
        settings({ typha_service_name: "vendor-typha", cni_network_config: list(NODE_RANGES) }),
        ...FORMER,
      ],
      { kind: "manifest", network: "fabric" },
    ],
    [
      "canal.yaml",
      [
        agents({ name: "canal", env: { ...none, USE_POD_CIDR: "true" }, others: ["kube-flannel"] }),
        settings({ cni_network_config: list(NODE_RANGES) }, "canal-config"),
        ...FORMER,
      ],
      { kind: "manifest", network: "other" },
    ],
    [
      "vendor-etcd.yaml",
      [agents({ env: etcd }), settings({ vendor_backend: "bird", etcd_endpoints: "http://10.0.0.1:2379" })],
      { kind: "manifest", network: "own" },
    ],
    [
      "canal-etcd.yaml",
      [agents({ name: "canal-node", env: etcd }), settings({ etcd_endpoints: "http://10.0.0.1:2379" }, "canal-config")],
      { kind: "manifest", network: "other" },
    ],
    [
      "the present manifest",
      [
        agents({ selector: PRESENT, image: "registry.vendor.org/vendor:v3.28.0" }),
        settings({ config: list(OWN_IPAM) }, "cni-config"),
        ...CURRENT,
      ],
      { kind: "manifest", network: "own" },
    ],
    [
      "the present manifest for policy with another plugin",
      [
        agents({ selector: PRESENT, image: "registry.vendor.org/vendor:v3.28.0", env: { VENDOR_MANAGE_CNI: "false" } }),
        settings({ config: list(OWN_IPAM) }, "cni-config"),
        ...CURRENT,
      ],
      { kind: "manifest", network: "other" },
    ],
    [
      "the present manifest for policy only",
      [
        agents({ selector: PRESENT, image: "registry.vendor.org/vendor:v3.28.0" }),
        settings({ config: list(NODE_RANGES) }, "cni-config"),
        ...CURRENT,
      ],
      { kind: "manifest", network: "fabric" },
    ],
    ["the operator's manifest", OPERATED, { kind: "operator" }],
    [
      "the chart, in any namespace and under any name",
      [...OPERATED, release("vendor-operator", { namespace: "apps", name: "net", version: 2 }), release("other-chart")],
      {
        kind: "chart",
        release: { name: "net", namespace: "apps", revision: 2, chartVersion: "v3.22.0", status: "deployed" },
      },
    ],
  ];
  test.each(cases)("is known of %s", async (_, items, method) => {
    const { facts, obstacles } = await detect(items);
    expect(obstacles).toEqual([]);
    expect(facts.method).toEqual(method as Facts["method"]);
  });

  test("takes the newest record of a release, and ignores an uninstalled one", async () => {
    const older = release("vendor-operator", { version: 9 });
    const newer = release("vendor-operator", { version: 10, status: "failed", from: "v3.23.1" });
    const gone = release("vendor-operator", { name: "gone", status: "uninstalled" });
    const { facts } = await detect([...OPERATED, newer, older, gone]);
    expect(facts.method).toMatchObject({ release: { revision: 10, status: "failed", chartVersion: "v3.23.1" } });
    expect(facts.unfinished).toEqual(["release default/vendor of Helm is failed"]);
  });

  test("prefers the release in the operator's namespace, and names what is left over in another", async () => {
    const moved = release("vendor-operator", { namespace: "vendor-operator", from: "v3.29.0" });
    const { facts } = await detect([...OPERATED, release("vendor-operator"), moved]);
    expect(facts.method).toMatchObject({ release: { namespace: "vendor-operator" } });
    expect(facts.unfinished).toEqual(["release default/vendor of Helm is left over"]);
  });

  test("asks which of several releases it is", async () => {
    const items = [...OPERATED, release("vendor-operator"), release("vendor-operator", { namespace: "apps" })];
    expect((await detect(items)).remedies).toContain("--release NAMESPACE/NAME");
    expect((await detect(items, { release: "apps/vendor" })).facts.method).toMatchObject({
      release: { namespace: "apps" },
    });
    expect((await detect(items, { release: "x/y" })).remedies).toContain('"default/vendor"');
  });

  test("is not guessed between canal and the product's own networking", async () => {
    const own = [agents({ env: bird }), settings({ vendor_backend: "bird" })];
    const canal = agents({ name: "canal", env: none, others: ["kube-flannel"] });
    const { obstacles, remedies } = await detect([...own, canal, ...FORMER]);
    expect(obstacles[0]?.message).toContain("DaemonSet kube-system/canal");
    expect(remedies).toContain("--variant");
    expect((await detect([...own, canal, ...FORMER], { network: "own" })).obstacles).toEqual([]);
  });

  test("is not guessed between a manifest and the operator", async () => {
    const { remedies } = await detect([...OPERATED, agents({ env: bird })]);
    expect(remedies).toContain("--method manifest");
  });

  test("does not take the DaemonSet of another product for its own", async () => {
    const foreign = agents({ name: "canal" });
    const other = JSON.parse(JSON.stringify(foreign).replaceAll('"vendor-node"', '"other-node"'));
    expect((await detect([other])).remedies).toContain("vendorctl install");
    expect((await detect([])).obstacles[0]?.message).toContain("is not installed");
  });

  test("refuses agents that use eBPF", async () => {
    const { obstacles } = await detect([
      agents({ env: { ...bird, FELIX_BPFENABLED: "true" } }),
      settings({ vendor_backend: "bird" }),
      ...FORMER,
    ]);
    expect(obstacles.map(({ message }) => message).join()).toContain("eBPF");
  });
});

const MANIFEST = [
  agents({ env: { ...KUBERNETES, VENDOR_NETWORKING_BACKEND: "bird" } }),
  deployment("vendor-kube-controllers"),
];

describe("the datastore", () => {
  test.each([
    ["stored by an earlier release", FORMER, "former"],
    ["stored as now", [definition("vendor.org"), information("v3.26.1", {}, "vendor.org/v3")], "current"],
    [
      "moved already",
      [
        definition("crd.vendor.org"),
        information("v3.22.0", { datastoreReady: false }),
        definition("vendor.org"),
        information("v3.26.1", {}, "vendor.org/v3"),
      ],
      "current",
    ],
    [
      "being moved",
      [
        definition("crd.vendor.org"),
        information("v3.26.1", { datastoreReady: false }),
        definition("vendor.org"),
        information("v3.26.1", { datastoreReady: false }, "vendor.org/v3"),
      ],
      "former",
    ],
  ] as const)("is %s", async (_, items, storage) => {
    const { facts } = await detect([...MANIFEST, ...items]);
    expect(facts).toMatchObject({ datastore: "kubernetes", storage });
  });

  test("is never asked through the aggregated API of an earlier release", async () => {
    const service = { namespace: "vendor-apiserver", name: "vendor-api" };
    const aggregated = {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v3.vendor.org" },
      spec: { service },
    };
    const { facts, paths } = await detect([...MANIFEST, ...FORMER, aggregated]);
    expect(facts).toMatchObject({ storage: "former", hasAggregatedApi: true });
    expect(paths.filter((path) => path.startsWith("/apis/vendor.org/"))).toEqual([]);
  });

  test("is asked for if its signs contradict each other, or there are none", async () => {
    const both = agents({ env: { ...KUBERNETES, ETCD_ENDPOINTS: undefined, VENDOR_NETWORKING_BACKEND: "bird" } });
    const neither = agents({ env: { VENDOR_NETWORKING_BACKEND: "bird" } });
    for (const agent of [both, neither]) {
      expect((await detect([agent, ...FORMER])).remedies).toContain("--datastore etcd");
      expect((await detect([agent, ...FORMER], { datastore: "kubernetes" })).obstacles).toEqual([]);
    }
  });

  test("of etcd says the release and the host endpoints", async () => {
    const store = openMemory();
    const write = (plural: string, name: string, spec: object, labels = {}) =>
      store.commit([
        {
          kind: "create",
          key: resourceKey(plural, { name }),
          value: JSON.stringify({ metadata: { name, labels }, spec }),
        },
      ]);
    await write("clusterinformations", "default", { vendorVersion: "v3.26.1" });
    await write("felixconfigurations", "node.one", { workloadSourceSpoofing: "Any" });
    await write("hostendpoints", "by-hand", { interfaceName: "*" });
    await write("hostendpoints", "one", { interfaceName: "eth0" });
    await write(
      "hostendpoints",
      "auto",
      { interfaceName: "*" },
      { "vendor.org/created-by": "vendor-kube-controllers" },
    );
    await write("globalnetworkpolicies", "default.allow-all-upgrade", {});
    const agent = agents({ env: { ETCD_ENDPOINTS: undefined, VENDOR_NETWORKING_BACKEND: "bird" } });
    const { facts } = await detect([agent], { openDatastore: async () => store });
    expect(facts).toMatchObject({
      datastore: "etcd",
      storage: "etcd",
      hostEndpoints: ["by-hand"],
      hasUpgradePolicy: true,
      allowsSourceSpoofing: false,
    });
    await write("felixconfigurations", "default", { workloadSourceSpoofing: "Any" });
    const opened = await detect([agent], { openDatastore: async () => store });
    expect(opened.facts).toMatchObject({ allowsSourceSpoofing: true });
    expect(facts.parts).toContainEqual({ part: "ClusterInformation default", version: "v3.26.1" });

    const failure = new PluginError("config-invalid", "it needs certificates", { details: "add --etcd-key-file" });
    const { obstacles } = await detect([agent], { openDatastore: () => Promise.reject(failure) });
    expect(obstacles).toEqual([{ message: "it needs certificates", remedy: "add --etcd-key-file" }]);
  });
});

describe("the release", () => {
  test("is that of all parts; the operator of an earlier release has versions of its own", async () => {
    const { facts } = await detect(OPERATED);
    expect(facts.version).toBe("v3.22.0");
    expect(facts.parts).toEqual([
      { part: "Installation default", version: "v3.22.0" },
      { part: "DaemonSet vendor-system/vendor-node", version: "v3.22.0" },
      { part: "Deployment vendor-operator/vendor-operator", version: "v1.25.0" },
      { part: "ClusterInformation default of the earlier storage", version: "v3.22.0" },
    ]);
  });

  test.each([
    ["a digest", "docker.io/vendor/node@sha256:0123"],
    ["a tag with a digest", "docker.io/vendor/node:v3.26.1@sha256:0123"],
    ["a private tag", "registry.example:5000/node:production"],
    ["no tag", "registry.example:5000/node"],
  ])("is asked for if the image has %s, although ClusterInformation has one", async (_, image) => {
    const env = { ...KUBERNETES, VENDOR_NETWORKING_BACKEND: "bird" };
    const items = [agents({ image, env }), ...FORMER];
    const { obstacles, remedies } = await detect(items);
    expect(remedies).toContain("--from-version");
    expect(obstacles[0]?.message).toContain("ClusterInformation default of the earlier storage has v3.26.1");
    expect((await detect(items, { version: "3.26.1" })).facts.version).toBe("v3.26.1");
    expect((await detect(items, { version: "latest" })).remedies).toContain("v3.26.1");
  });

  test("is not certain while parts differ, unless the user or our own ledger says it", async () => {
    const items = [...MANIFEST, definition("crd.vendor.org"), information("v3.22.0")];
    const { obstacles, remedies, facts } = await detect(items);
    expect(obstacles[0]?.message).toContain("DaemonSet kube-system/vendor-node has v3.26.1");
    expect(remedies).toContain("--from-version");
    expect(facts.unfinished?.[0]).toContain("releases differ");
    expect((await detect(items, { version: "v3.22.0" })).facts.version).toBe("v3.22.0");

    const ledger = { run: "r1", phase: "running", from: "v3.22.0", to: TARGET };
    const begun = settings({ "ledger.json": JSON.stringify(ledger) }, "vendor-upgrade");
    const resumed = await detect([...items, begun]);
    expect(resumed.facts.version).toBe("v3.22.0");
    expect(resumed.facts.unfinished?.[0]).toBe("upgrade r1 of vendorctl from v3.22.0 to v3.29.0 has not ended");
    const ended = settings({ "ledger.json": JSON.stringify({ ...ledger, phase: "complete" }) }, "vendor-upgrade");
    expect((await detect([...items, ended])).obstacles).toHaveLength(1);
  });

  test("shows rollouts that have not ended and a locked datastore", async () => {
    const status = { desiredNumberScheduled: 3, updatedNumberScheduled: 1 };
    const env = { ...KUBERNETES, VENDOR_NETWORKING_BACKEND: "bird" };
    const locked = information("v3.26.1", { datastoreReady: false });
    const { facts } = await detect([agents({ env, status }), definition("crd.vendor.org"), locked]);
    expect(facts.unfinished).toEqual([
      "DaemonSet kube-system/vendor-node: 1 of 3 pods are up to date",
      "the datastore of the earlier release is locked",
    ]);
  });

  test("of running agents is counted by what they recorded", async () => {
    const node = (name: string, version: string) => {
      const annotations = { "vendor.org/agent-version": version };
      return { apiVersion: "v1", kind: "Node", metadata: { name, annotations } };
    };
    const present = [
      agents({ selector: PRESENT, image: "registry.vendor.org/vendor:v3.28.0" }),
      settings({ config: list(OWN_IPAM) }, "cni-config"),
      ...CURRENT,
    ];
    const { facts } = await detect([...present, node("a", "v3.28.0"), node("b", "v3.28.0"), node("c", "v3.27.0")]);
    expect(facts.nodes).toEqual(["a", "b", "c"]);
    expect(facts.unfinished?.[0]).toContain("agent of Node c has v3.27.0");
    expect(facts.parts).toContainEqual({ part: "agents of 2 Nodes", version: "v3.28.0" });
  });
});

describe("what an upgrade takes care of", () => {
  test("is found in the storage of an earlier release, whose labels are in an annotation", async () => {
    const endpoint = (name: string, labels: object, interfaceName = "*") => ({
      apiVersion: "crd.vendor.org/v1",
      kind: "HostEndpoint",
      metadata: { name, annotations: { "vendor.org/metadata": JSON.stringify({ labels }) } },
      spec: { interfaceName },
    });
    const policy = {
      apiVersion: "crd.vendor.org/v1",
      kind: "GlobalNetworkPolicy",
      metadata: { name: "default.allow-all-upgrade" },
    };
    const automatic = endpoint("a-auto-hep", { "vendor.org/created-by": "vendor-kube-controllers" });
    const { facts } = await detect([...MANIFEST, ...FORMER, endpoint("mine", { role: "x" }), automatic, policy]);
    expect(facts).toMatchObject({ hostEndpoints: ["mine"], hasUpgradePolicy: true, hasApplicationLayerPolicy: false });
  });

  test("includes application layer policy, in pods or in the template of the mesh", async () => {
    const spec = { containers: [{ name: "app" }, { name: "dikastes" }] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "shop" }, spec };
    const metadata = { name: "istio-sidecar-injector", namespace: "istio-system" };
    const template = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { config: "- name: dikastes" } };
    for (const item of [pod, template]) {
      expect((await detect([...MANIFEST, ...FORMER, item])).facts.hasApplicationLayerPolicy).toBe(true);
    }
  });

  test("includes owner references that a move of the storage would break", async () => {
    const texts = {
      "/version": { gitVersion: "v1.34.1" },
      "/api/v1": { resources: [{ name: "configmaps", kind: "ConfigMap", namespaced: true, verbs: ["list", "patch"] }] },
    };
    const owner = { apiVersion: "vendor.org/v3", kind: "GlobalNetworkSet", name: "s", uid: "u" };
    const metadata = { name: "mine", namespace: "shop", uid: "m", ownerReferences: [owner] };
    const items = [...MANIFEST, ...FORMER, { apiVersion: "v1", kind: "ConfigMap", metadata }];
    const search = (more: readonly object[], ignoredGroups: readonly string[] = []) =>
      detectFacts(objectTable([...items, ...more], texts).objects, { target: TARGET, ignoredGroups });
    expect(await search([])).toMatchObject({ facts: { ownedObjects: ["ConfigMap shop/mine"] } });

    const broken = {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: "v1.metrics.example" },
      spec: { group: "metrics.example", version: "v1", service: {} },
      status: { conditions: [{ type: "Available", status: "False", reason: "MissingEndpoints" }] },
    };
    expect(await search([broken])).toMatchObject({
      obstacles: [{ remedy: expect.stringContaining("--ignore-group") }],
    });
    expect(await search([broken], ["metrics.example"])).toMatchObject({ kind: "found" });
  });
});
