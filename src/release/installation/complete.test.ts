import { describe, expect, test } from "bun:test";
import { API_VERSION, apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { formatProblem } from "../../model/problem.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import { type Completed, completeInstallation } from "./complete.ts";

const { product, title } = identity;

const FACTS: ClusterFacts = { version: "3.29.0", namespace: "system", pools: [], platformPodCidrs: [] };

const INSTALLATION = { apiVersion: apiVersionOf(OPERATOR_API), kind: "Installation" };

function existingPool(name: string, spec: object): IPPool {
  const decoded = ipPool.decode({ apiVersion: API_VERSION, kind: "IPPool", metadata: { name }, spec });
  if (!decoded.ok) throw new Error(decoded.problems.map(formatProblem).join("; "));
  return decoded.value;
}

/** `network`: the members of the network of the spec. */
function completeNetwork(network: object, facts: Partial<ClusterFacts> = {}): Completed {
  return completeSpec({ [NETWORK_FIELD]: network }, facts);
}

function completeSpec(spec: object, facts: Partial<ClusterFacts> = {}, overlay?: object): Completed {
  const object = (name: string, its: object) => ({ ...INSTALLATION, metadata: { name }, spec: its });
  const over = overlay === undefined ? {} : { overlay: object("overlay", overlay) };
  return completeInstallation({ default: object("default", spec), ...over }, { ...FACTS, ...facts });
}

function accepted(completed: Completed) {
  if (!completed.ok) throw new Error(completed.problems.map(formatProblem).join("; "));
  return completed;
}

const poolsOf = (completed: Completed) =>
  accepted(completed).installation.network.ipPools.map(({ metadata, spec }) => ({ name: metadata.name, ...spec }));

const refusal = (completed: Completed) => (completed.ok ? [] : completed.problems.map(formatProblem));

describe("completeInstallation()", () => {
  test("completes an Installation that says nothing", () => {
    const { installation } = accepted(completeSpec({}));

    expect(installation).toMatchObject({
      image: { registry: identity.imageRegistry, path: "", prefix: "", pullSecrets: [] },
      datastore: { type: "Kubernetes" },
      cni: { ipam: "Pools", binDir: "/opt/cni/bin", confDir: "/etc/cni/net.d" },
      logging: { level: "INFO", maxSizeMegabytes: 100, maxAgeDays: 30, maxCount: 10 },
      controlPlane: { replicas: 2, nodeSelector: {}, tolerations: [] },
      nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
      overrides: { node: {}, controllers: {} },
    });
    expect(installation.network).toMatchObject({
      bgp: "Enabled",
      mtu: 0,
      ipv4AddressDetection: "first-found",
      hostPorts: "Enabled",
      containerIPForwarding: "Disabled",
      linuxPolicySetupTimeoutSeconds: 0,
      featureControl: { ipAddrsNoIpam: false, floatingIPs: false, allowedSourcePrefixes: false },
      numQueues: 1,
    });
    expect(installation.network.ipPools).toEqual([
      {
        apiVersion: API_VERSION,
        kind: "IPPool",
        metadata: {
          name: "default-ipv4-ippool",
          labels: { "app.kubernetes.io/managed-by": identity.operator },
        },
        spec: {
          cidr: "192.168.0.0/16",
          ipipMode: "Never",
          vxlanMode: "CrossSubnet",
          natOutgoing: true,
          nodeSelector: "all()",
          blockSize: 26,
          disabled: false,
          disableBGPExport: false,
          allowedUses: ["Workload", "Tunnel"],
        },
      },
    ]);
  });

  test("uses every field", () => {
    const { installation } = accepted(
      completeSpec({
        variant: title,
        registry: "registry.example.org",
        imagePath: "/mirror/network/",
        imagePrefix: "our-",
        imagePullSecrets: [{ name: "one" }, { name: "two" }],
        kubernetesProvider: "OpenShift",
        datastore: { type: "Etcd", etcd: { endpoints: ["https://a:2379", "https://b:2379"], secretName: "etcd" } },
        cni: { type: title, ipam: { type: title }, confDir: "/etc/net.d" },
        logging: { cni: { logSeverity: "Debug", logFileMaxSize: "1Gi", logFileMaxAgeDays: 1, logFileMaxCount: 2 } },
        controlPlaneReplicas: 3,
        controlPlaneNodeSelector: { zone: "a" },
        controlPlaneTolerations: [{ operator: "Exists" }],
        nodeMetricsPort: 9091,
        nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: "10%" } },
        componentResources: [{ componentName: "KubeControllers", resourceRequirements: { limits: { cpu: 1 } } }],
        [`${product}NodeDaemonSet`]: {
          spec: {
            template: {
              spec: {
                containers: [{ name: identity.nodeAgent, resources: { requests: { memory: "64Mi" } } }],
                nodeSelector: { disk: "ssd" },
                tolerations: [{ key: "a", operator: "Exists" }],
                affinity: { nodeAffinity: {} },
              },
            },
          },
        },
        [NETWORK_FIELD]: {
          linuxDataplane: "Iptables",
          bgp: "Disabled",
          ipPools: [
            {
              cidr: "10.1.0.0/16",
              encapsulation: "VXLAN",
              natOutgoing: "Disabled",
              blockSize: 28,
              cooldownSeconds: 600,
              keepAddresses: true,
              keepFor: "72h",
            },
          ],
          mtu: 1400,
          nodeAddressAutodetectionV4: { cidrs: ["192.0.2.0/24", "198.51.100.0/24"] },
          nodeAddressAutodetectionV6: { kubernetes: "NodeInternalIP" },
          hostPorts: "Disabled",
          containerIPForwarding: "Enabled",
          linuxPolicySetupTimeoutSeconds: 10,
          featureControl: { floatingIPs: true },
          numQueues: 4,
          readinessGates: ["http://localhost:9099/readiness"],
          ipv4Pools: ["default-ipv4-ippool", "10.1.0.0/16"],
        },
      }),
    );

    expect(installation).toMatchObject({
      image: { registry: "registry.example.org/", path: "mirror/network", prefix: "our-", pullSecrets: ["one", "two"] },
      kubernetesProvider: "OpenShift",
      datastore: { type: "Etcd", endpoints: "https://a:2379,https://b:2379", secretName: "etcd" },
      cni: { ipam: "Pools", binDir: "/var/lib/cni/bin", confDir: "/etc/net.d" },
      logging: { level: "DEBUG", maxSizeMegabytes: 1024, maxAgeDays: 1, maxCount: 2 },
      controlPlane: { replicas: 3, nodeSelector: { zone: "a" }, tolerations: [{ operator: "Exists" }] },
      nodeMetricsPort: 9091,
      nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
      overrides: {
        node: {
          resources: { requests: { memory: "64Mi" } },
          nodeSelector: { disk: "ssd" },
          tolerations: [{ key: "a", operator: "Exists" }],
          affinity: { nodeAffinity: {} },
        },
        controllers: { resources: { limits: { cpu: 1 } } },
      },
    });
    expect(installation.network).toMatchObject({
      bgp: "Disabled",
      mtu: 1400,
      ipv4AddressDetection: "cidr=192.0.2.0/24,198.51.100.0/24",
      ipv6AddressDetection: "kubernetes-internal-ip",
      hostPorts: "Disabled",
      containerIPForwarding: "Enabled",
      linuxPolicySetupTimeoutSeconds: 10,
      featureControl: { ipAddrsNoIpam: false, floatingIPs: true, allowedSourcePrefixes: false },
      numQueues: 4,
      readinessGates: ["http://localhost:9099/readiness"],
      ipv4Pools: ["default-ipv4-ippool", "10.1.0.0/16"],
      ipv6Pools: [],
    });
    expect(installation.network.ipPools[0]?.spec).toMatchObject({
      vxlanMode: "Always",
      natOutgoing: false,
      blockSize: 28,
      cooldownSeconds: 600,
      keepAddresses: true,
      keepFor: "72h",
    });
  });

  test.each([
    [{ firstFound: true }, "first-found"],
    [{ interface: "eth.*" }, "interface=eth.*"],
    [{ skipInterface: "docker.*" }, "skip-interface=docker.*"],
    [{ canReach: "192.0.2.1" }, "can-reach=192.0.2.1"],
  ])("translates the detection of addresses %p", (detection, text) => {
    const { installation } = accepted(completeNetwork({ nodeAddressAutodetectionV4: detection }));

    expect(installation.network.ipv4AddressDetection).toBe(text);
  });

  test.each(["UseDefault", ""])("takes the image from the product's registry if the registry is %p", (registry) => {
    const { image } = accepted(
      completeSpec({ registry, imagePath: "UseDefault", imagePrefix: "UseDefault" }),
    ).installation;

    expect(image).toMatchObject({ registry: identity.imageRegistry, path: "", prefix: "" });
  });

  test.each([
    [{}, "/var/lib/kubelet"],
    [{ kubeletVolumePluginPath: "/data/kubelet/" }, "/data/kubelet"],
    [{ kubeletVolumePluginPath: "/.data/..kubelet/a.b" }, "/.data/..kubelet/a.b"],
    [{ kubeletVolumePluginPath: "None" }, undefined],
  ])("finds the directory of the kubelet in %p", (spec, directory) => {
    expect(accepted(completeSpec(spec)).installation.kubeletDirectory).toBe(directory);
  });

  test.each([
    [{}, { mode: "Disabled", hosts: [] }],
    [{ console: { hosts: ["fd00::7"] } }, { mode: "Disabled", hosts: ["fd00::7"] }],
    [{ console: { mode: "Enabled" } }, { mode: "Enabled", hosts: [] }],
    [
      { console: { alerts: { namespace: "monitoring", service: "prometheus" } } },
      { mode: "Disabled", hosts: [], alerts: { namespace: "monitoring", service: "prometheus", port: 9090 } },
    ],
    [
      { console: { alerts: { namespace: "monitoring", service: "thanos", port: 10902 } } },
      { mode: "Disabled", hosts: [], alerts: { namespace: "monitoring", service: "thanos", port: 10902 } },
    ],
  ])("has a console only if it is switched on: %p", (spec, expected) => {
    expect(accepted(completeSpec(spec)).installation.console as unknown).toEqual(expected);
  });

  test("accepts values that other products need and that change nothing here", () => {
    const spec = {
      nonPrivileged: "Disabled",
      fipsMode: "Disabled",
      flexVolumePath: "None",
      [NETWORK_FIELD]: { windowsDataplane: "Disabled", multiInterfaceMode: "None", linuxDataplane: "Nftables" },
    };

    expect(refusal(completeSpec(spec))).toEqual([]);
  });
});

describe("the default pools", () => {
  test("are the pod CIDRs of the platform", () => {
    const pools = poolsOf(completeSpec({}, { platformPodCidrs: ["10.244.0.0/16", "fd00:10:244::/56"] }));

    expect(pools).toMatchObject([
      { name: "default-ipv4-ippool", cidr: "10.244.0.0/16", vxlanMode: "CrossSubnet", natOutgoing: true },
      { name: "default-ipv6-ippool", cidr: "fd00:10:244::/56", vxlanMode: "Never", natOutgoing: false, blockSize: 122 },
    ]);
  });

  test("are none if the datastore has pools", () => {
    const pools = [existingPool("old", { cidr: "10.9.0.0/16" })];
    const completed = accepted(completeSpec({}, { pools, platformPodCidrs: ["10.244.0.0/16"] }));

    expect(completed.installation.network.ipPools).toEqual([]);
    expect(completed.defaults).toMatchObject({ [NETWORK_FIELD]: { ipPools: [] } });
  });

  test("of an empty list are none", () => {
    expect(poolsOf(completeNetwork({ ipPools: [] }))).toEqual([]);
  });

  test("avoid the addresses of EKS, where there is no BGP", () => {
    const { network } = accepted(completeSpec({ kubernetesProvider: "EKS" })).installation;

    expect(network).toMatchObject({ bgp: "Disabled", ipv4AddressDetection: "can-reach=8.8.8.8" });
    expect(network.ipPools.map(({ spec }) => [spec.cidr, spec.vxlanMode])).toEqual([["172.16.0.0/16", "Always"]]);
  });

  test("have no tunnel with HostLocal, and are only those of the platform", () => {
    const hostLocal = { cni: { ipam: { type: "HostLocal" } } };

    expect(poolsOf(completeSpec(hostLocal))).toEqual([]);
    expect(poolsOf(completeSpec(hostLocal, { platformPodCidrs: ["10.244.0.0/16"] }))).toMatchObject([
      { cidr: "10.244.0.0/16", ipipMode: "Never", vxlanMode: "Never" },
    ]);
  });

  test("have a tunnel for IPv6 too if there is no BGP", () => {
    const pools = poolsOf(completeNetwork({ bgp: "Disabled", ipPools: [{ cidr: "fd00::/64" }] }));

    expect(pools).toMatchObject([{ name: "default-ipv6-ippool", vxlanMode: "CrossSubnet" }]);
  });

  test("are named after their CIDR if there are several of a family", () => {
    const ipPools = [
      { cidr: "10.1.0.0/16" },
      { cidr: "10.2.0.0/16", name: "two" },
      { cidr: "2001:db8::/64" },
      { cidr: "fd00::/64" },
    ];

    expect(poolsOf(completeNetwork({ ipPools })).map(({ name }) => name)).toEqual([
      "10.1.0.0-16",
      "two",
      "2001.0db8.0000.0000.0000.0000.0000.0000-64",
      "fd00.0000.0000.0000.0000.0000.0000.0000-64",
    ]);
  });

  test("keep the name of the pool that has their CIDR, and take no name that another one has", () => {
    const pools = [
      existingPool("old", { cidr: "10.1.0.0/16" }),
      existingPool("default-ipv6-ippool", { cidr: "fd01::/64" }),
    ];
    const ipPools = [{ cidr: "10.1.0.0/16" }, { cidr: "fd00::/64" }];

    expect(poolsOf(completeNetwork({ ipPools }, { pools })).map(({ name }) => name)).toEqual([
      "old",
      "fd00.0000.0000.0000.0000.0000.0000.0000-64",
    ]);
  });
});

describe("the spec of cni", () => {
  const hostLocal = { ipam: { type: "HostLocal" } };

  test.each([
    [{ cni: hostLocal }],
    [{ [NETWORK_FIELD]: { cni: hostLocal } }],
    [{ cni: hostLocal, [NETWORK_FIELD]: { cni: { type: title, ...hostLocal } } }],
  ])("is accepted in both places: %j", (spec) => {
    expect(accepted(completeSpec(spec)).installation.cni.ipam).toBe("HostLocal");
  });

  test("is refused if the two places differ", () => {
    const spec = { cni: { ipam: { type: title } }, [NETWORK_FIELD]: { cni: hostLocal } };

    expect(refusal(completeSpec(spec))).toEqual([
      `spec.${NETWORK_FIELD}.cni.ipam.type: "HostLocal" differs from the same field of spec.cni; remove one of the two`,
    ]);
  });

  test("is completed in the place where it was written", () => {
    const nested = accepted(completeSpec({ [NETWORK_FIELD]: { cni: hostLocal } }));

    expect(nested.defaults).toMatchObject({ [NETWORK_FIELD]: { cni: { type: title, ...hostLocal } } });
    expect(nested.defaults).not.toHaveProperty("cni");
    expect(nested.computed).toMatchObject({ cni: { type: title, ...hostLocal } });
    expect(accepted(completeSpec({})).defaults).toMatchObject({ cni: { type: title, ipam: { type: title } } });
  });
});

describe("the IPAM plugin of cni", () => {
  const NESTED = { [NETWORK_FIELD]: { cni: { type: title, ipam: { plugin: "HostLocal" } } } };

  test.each([
    { cni: { ipam: { plugin: "HostLocal" } } },
    { cni: { ipam: { type: "HostLocal", plugin: "HostLocal" } } },
    NESTED,
  ])("may be called plugin: %j", (spec) => {
    const { installation, computed } = accepted(completeSpec(spec));

    expect(installation.cni.ipam).toBe("HostLocal");
    expect(computed).toMatchObject({ cni: { ipam: { type: "HostLocal" } } });
  });

  test("is written back as type beside plugin, the only name that former releases know", () => {
    const { defaults } = accepted(completeSpec({ cni: { ipam: { plugin: "HostLocal" } } }));
    expect(defaults).toMatchObject({ cni: { type: title, ipam: { type: "HostLocal", plugin: "HostLocal" } } });
    expect(accepted(completeSpec(defaults)).defaults).toEqual(defaults);

    const nested = accepted(completeSpec(NESTED)).defaults;
    expect(Object(nested)[NETWORK_FIELD].cni.ipam).toEqual({ type: "HostLocal", plugin: "HostLocal" });
    expect(nested).not.toHaveProperty("cni");

    const overlay = { cni: { ipam: { plugin: "HostLocal" } } };
    const below = accepted(completeSpec({ cni: { ipam: { plugin: title } } }, {}, overlay)).defaults;
    expect(Object(below).cni.ipam).toEqual({ type: title, plugin: title });
  });

  test("of an overlay replaces that of the default, whatever it is called", () => {
    const { installation } = accepted(
      completeSpec({ cni: { ipam: { type: title } } }, {}, { cni: { ipam: { plugin: "HostLocal" } } }),
    );
    expect(installation.cni.ipam).toBe("HostLocal");
  });
});

describe("what is written back", () => {
  test("is what the user wrote, with the defaults, and does not change if it is completed again", () => {
    const spec = { [NETWORK_FIELD]: { mtu: 1400, ipPools: [{ cidr: "10.1.0.0/16" }] }, registry: "example.org" };
    const { defaults } = accepted(completeSpec(spec));

    expect(defaults).toMatchObject({
      registry: "example.org",
      variant: title,
      controlPlaneReplicas: 2,
      [NETWORK_FIELD]: {
        mtu: 1400,
        bgp: "Enabled",
        ipPools: [
          { name: "default-ipv4-ippool", cidr: "10.1.0.0/16", encapsulation: "VXLANCrossSubnet", blockSize: 26 },
        ],
        linuxPolicySetupTimeoutSeconds: 0,
      },
    });
    expect(accepted(completeSpec(defaults)).defaults).toEqual(defaults);
  });

  test("contains nothing of the overlay, which has no copy of it", () => {
    const overlay = {
      registry: "example.org/",
      [NETWORK_FIELD]: { mtu: 1400, hostPorts: "Disabled", cni: { ipam: { type: "HostLocal" } } },
    };
    const first = accepted(completeSpec({}, { platformPodCidrs: ["10.244.0.0/16"] }, overlay));
    const again = accepted(completeSpec(first.defaults, { platformPodCidrs: ["10.244.0.0/16"] }, overlay));

    expect(first.installation).toMatchObject({
      network: { mtu: 1400, hostPorts: "Disabled" },
      cni: { ipam: "HostLocal" },
    });
    expect(first.defaults).not.toHaveProperty("registry");
    expect(first.defaults).not.toHaveProperty([NETWORK_FIELD, "hostPorts"]);
    expect(first.defaults).not.toHaveProperty("cni.ipam");
    expect(first.computed).toMatchObject({ registry: "example.org/", [NETWORK_FIELD]: { mtu: 1400 } });
    expect(again).toEqual(first);
  });
});

describe("an overlay", () => {
  test.each([
    [
      { endpoints: ["http://a:2379"] },
      { discoverySrv: "example.org" },
      { endpoints: "", discoveryDomain: "example.org" },
    ],
    [{ discoverySrv: "example.org" }, { endpoints: ["http://a:2379"] }, { endpoints: "http://a:2379" }],
    [{ discoverySrv: "example.org" }, { endpoints: [] }, { endpoints: "", discoveryDomain: "example.org" }],
  ])("with other servers of etcd replaces those of the default: %j, %j", (below, above, expected) => {
    const spec = { datastore: { type: "Etcd", etcd: { ...below, secretName: "tls" } } };
    const { installation, defaults } = accepted(completeSpec(spec, {}, { datastore: { etcd: above } }));

    expect(installation.datastore).toEqual({ type: "Etcd", ...expected, secretName: "tls" });
    expect(defaults).toMatchObject(spec);
  });

  test("with two sources of the servers of etcd is refused", () => {
    const etcd = { endpoints: ["http://a:2379"], discoverySrv: "example.org" };
    const spec = { datastore: { type: "Etcd", etcd: { endpoints: ["http://b:2379"] } } };
    expect(refusal(completeSpec(spec, {}, { datastore: { etcd } })).join()).toContain("remove one of the two");
  });

  test("replaces lists, and objects of which one member is chosen", () => {
    const spec = {
      controlPlaneNodeSelector: { zone: "a" },
      [NETWORK_FIELD]: {
        mtu: 1400,
        nodeAddressAutodetectionV4: { firstFound: true },
        ipPools: [{ cidr: "10.1.0.0/16" }],
      },
    };
    const overlay = {
      controlPlaneNodeSelector: { disk: "ssd" },
      [NETWORK_FIELD]: { nodeAddressAutodetectionV4: { interface: "eth0" }, ipPools: [{ cidr: "10.2.0.0/16" }] },
    };
    const { installation, defaults } = accepted(completeSpec(spec, {}, overlay));

    expect(installation.controlPlane.nodeSelector).toEqual({ disk: "ssd" });
    expect(installation.network).toMatchObject({ mtu: 1400, ipv4AddressDetection: "interface=eth0" });
    expect(installation.network.ipPools.map(({ spec: { cidr } }) => cidr)).toEqual(["10.2.0.0/16"]);
    expect(defaults).toMatchObject({ [NETWORK_FIELD]: { ipPools: [{ cidr: "10.1.0.0/16" }] } });
  });

  test("is validated together with what it overrides", () => {
    const overlay = { [NETWORK_FIELD]: { bgp: "Disabled" } };
    const completed = completeSpec(
      { [NETWORK_FIELD]: { ipPools: [{ cidr: "10.1.0.0/16", encapsulation: "None" }] } },
      {},
      overlay,
    );

    expect(refusal(completed)).toHaveLength(1);
  });
});
