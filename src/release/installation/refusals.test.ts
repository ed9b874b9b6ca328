/** Every Installation that the operator refuses: the field, the value and what to do. */
import { describe, expect, test } from "bun:test";
import { apiVersionOf, identity, OPERATOR_API } from "../../identity.ts";
import { NETWORK_FIELD } from "../../model/installation/names.ts";
import { formatProblem } from "../../model/problem.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import { completeInstallation } from "./complete.ts";

const { product, title } = identity;
const FACTS: ClusterFacts = { version: "3.29.0", namespace: "system", pools: [], platformPodCidrs: [] };

const INSTALLATION = {
  apiVersion: apiVersionOf(OPERATOR_API),
  kind: "Installation",
  metadata: { name: "default" },
};

function refusals(spec: object, facts: Partial<ClusterFacts> = {}): readonly string[] {
  const completed = completeInstallation({ default: { ...INSTALLATION, spec } }, { ...FACTS, ...facts });
  return completed.ok ? [] : completed.problems.map(formatProblem);
}

const network = (members: object) => ({ [NETWORK_FIELD]: members });
const pools = (...ipPools: readonly object[]) => network({ ipPools });
const workload = (name: string, container: object) => ({
  [`${product}${name}`]: { spec: { template: { spec: { containers: [container] } } } },
});

const NETWORK = `spec.${NETWORK_FIELD}`;

type Case = readonly [spec: object, message: string];

const CASES: readonly Case[] = [
  [{ variant: "TigeraSecureEnterprise" }, 'spec.variant: "TigeraSecureEnterprise" is not supported'],
  [{ registry: "https://example.org/" }, 'spec.registry: "https://example.org/" is not a registry; use a host'],
  [{ registry: "a b" }, 'spec.registry: "a b" is not a registry'],
  [{ imagePath: "Upper" }, 'spec.imagePath: "Upper" is not part of an image name'],
  [{ imagePrefix: "a/b" }, 'spec.imagePrefix: "a/b" is not part of an image name'],
  [{ kubernetesProvider: "Mesos" }, 'spec.kubernetesProvider: "Mesos" is not allowed; use "", "EKS"'],
  [
    { cni: { type: "AmazonVPC" } },
    `spec.cni.type: "AmazonVPC" is not supported: the operator installs the plugin of ${title}; use`,
  ],
  [network({ cni: { type: "GKE" } }), 'spec.cni.type: "GKE" is not supported'],
  [
    { cni: { ipam: { type: "AzureVNET" } } },
    `spec.cni.ipam.type: "AzureVNET" is not an IPAM plugin of ${title}; use "${title}" or "HostLocal"`,
  ],
  [{ cni: { binDir: "opt/cni" } }, 'spec.cni.binDir: "opt/cni" is not an absolute path'],
  [{ console: { mode: "On" } }, 'spec.console.mode: "On" is not allowed; use "Enabled", "Disabled"'],
  ...[
    "https://console.example.org",
    "console.example.org:8443",
    "*.example.org",
    "Console",
    "",
    "-a",
    "1.2.3",
    "a:b",
  ].map(
    (host): Case => [
      { console: { hosts: ["console.example.org", host] } },
      `spec.console.hosts[1]: ${JSON.stringify(host)} is not a host name or address; use lower-case letters`,
    ],
  ),
  [
    { console: { alerts: { service: "prometheus" } } },
    'spec.console.alerts.namespace: is missing; set the namespace of the Service of Prometheus, for example "monitoring"',
  ],
  [
    { console: { alerts: { namespace: "monitoring" } } },
    'spec.console.alerts.service: is missing; set the name of the Service of Prometheus, for example "prometheus"',
  ],
  [
    { console: { alerts: { namespace: "Monitoring", service: "prometheus" } } },
    'spec.console.alerts.namespace: "Monitoring" is not the name of a namespace; use lower-case letters',
  ],
  ...["prometheus.monitoring", "prometheus:9090", "https://prometheus", "a/../b", "", "a".repeat(64)].map(
    (service): Case => [
      { console: { alerts: { namespace: "monitoring", service } } },
      `spec.console.alerts.service: ${JSON.stringify(service)} is not the name of a Service; use lower-case letters`,
    ],
  ),
  [
    { console: { alerts: { namespace: "monitoring", service: "prometheus", port: 70_000 } } },
    "spec.console.alerts.port: 70000 is not a port; use a whole number from 1 to 65535",
  ],
  [{ datastore: { type: "Consul" } }, 'spec.datastore.type: "Consul" is not allowed; use "Kubernetes", "Etcd"'],
  [{ datastore: { type: "Etcd" } }, 'spec.datastore.type: "Etcd" has no endpoints; set spec.datastore.etcd.endpoints'],
  [
    { datastore: { type: "Etcd", etcd: { endpoints: ["http://a:2379"], discoverySrv: "example.org" } } },
    'spec.datastore.etcd.discoverySrv: "example.org" cannot be used with spec.datastore.etcd.endpoints; remove one',
  ],
  [
    { datastore: { type: "Etcd", etcd: { discoverySrv: "http://a" } } },
    'spec.datastore.etcd.discoverySrv: "http://a" is not a domain name; use the one whose SRV records list etcd',
  ],
  [
    { logging: { cni: { logFilePath: "cni.log" } } },
    'spec.logging.cni.logFilePath: "cni.log" is not the path of a file; use an absolute path, without spaces',
  ],
  [
    { logging: { cni: { logFilePath: "/var/log/" } } },
    'spec.logging.cni.logFilePath: "/var/log/" is not the path of a file',
  ],
  ...["/..", "/var/log/../cni.log", "/var/./cni.log", "/ ", "/var/log/cni.log ", "/var/log/\n/cni.log", "/a\u007f"].map(
    (logFilePath): Case => [
      { logging: { cni: { logFilePath } } },
      `spec.logging.cni.logFilePath: ${JSON.stringify(logFilePath)} is not the path of a file`,
    ],
  ),
  [
    { cni: { ipam: { type: title, plugin: "HostLocal" } } },
    'spec.cni.ipam.plugin: "HostLocal" differs from "type" beside it, which means the same and which the operator adds; set both to the same value',
  ],
  [
    network({ cni: { ipam: { type: title, plugin: "HostLocal" } } }),
    `${NETWORK}.cni.ipam.plugin: "HostLocal" differs from "type" beside it`,
  ],
  [
    { cni: { ipam: { type: title } }, ...network({ cni: { ipam: { plugin: "HostLocal" } } }) },
    `${NETWORK}.cni.ipam.plugin: "HostLocal" differs from the same field of spec.cni; remove one of the two`,
  ],
  [{ datastore: { type: "Etcd", etcd: { endpoints: [] } } }, 'spec.datastore.type: "Etcd" has no endpoints'],
  [
    { datastore: { etcd: { endpoints: ["http://a:2379"] } } },
    "spec.datastore.etcd: has no effect with the datastore Kubernetes; remove it",
  ],
  [
    { datastore: { type: "Etcd", etcd: { endpoints: ["a:2379"] } } },
    'spec.datastore.etcd.endpoints[0]: "a:2379" is not the URL of an etcd server',
  ],
  [
    { controlPlaneReplicas: 0 },
    "spec.controlPlaneReplicas: 0 is not a number of replicas; use a whole number of at least 1",
  ],
  [
    { controlPlaneNodeSelector: { "kubernetes.io/os": "windows" } },
    'spec.controlPlaneNodeSelector.kubernetes.io/os: "windows" has no node for the controllers',
  ],
  [{ nodeMetricsPort: 70_000 }, "spec.nodeMetricsPort: 70000 is not a port"],
  [{ nodeUpdateStrategy: { type: "OnDelete" } }, 'spec.nodeUpdateStrategy.type: "OnDelete" is not supported'],
  [
    { nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: "0%" } } },
    'spec.nodeUpdateStrategy.rollingUpdate.maxUnavailable: "0%" is not a number or share of nodes',
  ],
  [
    { componentResources: [{ componentName: "Typha" }] },
    'spec.componentResources[0].componentName: "Typha" is not a component; use "Node" or "KubeControllers"',
  ],
  [
    workload("NodeDaemonSet", { name: "other" }),
    `.spec.template.spec.containers[0].name: "other" is not a container of this workload; use "${identity.nodeAgent}"`,
  ],
  [
    workload("KubeControllersDeployment", { name: identity.nodeAgent }),
    `is not a container of this workload; use "${identity.controllers}"`,
  ],
  [{ nonPrivileged: "Enabled" }, 'spec.nonPrivileged: "Enabled" is not supported: the node agent'],
  [{ fipsMode: "Enabled" }, 'spec.fipsMode: "Enabled" is not supported'],
  [{ flexVolumePath: "/usr/libexec" }, 'spec.flexVolumePath: "/usr/libexec" is not supported'],
  ...["var/lib/kubelet", "/", "/var/../kubelet", "/var//kubelet", "none"].map(
    (kubeletVolumePluginPath): Case => [
      { kubeletVolumePluginPath },
      `spec.kubeletVolumePluginPath: "${kubeletVolumePluginPath}" is not an absolute path; use the directory of the kubelet`,
    ],
  ),
  [
    { typhaMetricsPort: 9093 },
    "spec.typhaMetricsPort: 9093 is not supported: every node agent follows the datastore itself",
  ],
  [{ typhaDeployment: {} }, "spec.typhaDeployment:"],
  [{ typhaAffinity: {} }, "spec.typhaAffinity:"],
  [{ certificateManagement: {} }, "spec.certificateManagement:"],
  [{ windowsNodes: {} }, "spec.windowsNodes:"],
  [{ serviceCIDRs: ["10.96.0.0/12"] }, "spec.serviceCIDRs:"],
  [{ [`${product}NodeWindowsDaemonSet`]: {} }, `spec.${product}NodeWindowsDaemonSet:`],
  [{ csiNodeDriverDaemonSet: {} }, "spec.csiNodeDriverDaemonSet:"],
  [{ azure: { policyMode: "Default" } }, "spec.azure:"],
  [{ logging: { cni: { logSeverity: "Trace" } } }, 'spec.logging.cni.logSeverity: "Trace" is not allowed'],
  [
    { logging: { cni: { logFileMaxSize: "100MB" } } },
    'spec.logging.cni.logFileMaxSize: "100MB" is not a size of a file; use for example "100Mi"',
  ],
  [{ logging: { cni: { logFileMaxSize: "0Mi" } } }, 'spec.logging.cni.logFileMaxSize: "0Mi" is not a size'],
  [{ logging: { cni: { logFileMaxCount: 0 } } }, "spec.logging.cni.logFileMaxCount: 0 is not a number of files"],
  [{ logging: { cni: { logFileMaxAgeDays: 0 } } }, "spec.logging.cni.logFileMaxAgeDays: 0 is not a number of days"],
  [
    network({ linuxDataplane: "BPF" }),
    `${NETWORK}.linuxDataplane: "BPF" is not supported: policy is enforced with nftables; use "Nftables"`,
  ],
  [network({ linuxDataplane: "VPP" }), `${NETWORK}.linuxDataplane: "VPP" is not supported`],
  [network({ windowsDataplane: "HNS" }), `${NETWORK}.windowsDataplane: "HNS" is not supported`],
  [network({ multiInterfaceMode: "Multus" }), `${NETWORK}.multiInterfaceMode: "Multus" is not supported`],
  [network({ sysctl: [{ key: "net.ipv4.tcp_keepalive_time", value: "40" }] }), `${NETWORK}.sysctl:`],
  [network({ bgp: "On" }), `${NETWORK}.bgp: "On" is not allowed; use "Enabled", "Disabled"`],
  [network({ mtu: 67 }), `${NETWORK}.mtu: 67 is not an MTU; use a whole number from 68 to 65535`],
  [network({ mtu: -1 }), `${NETWORK}.mtu: -1 is not an MTU`],
  [
    network({ mtu: 1279, ipPools: [{ cidr: "fd00::/64" }] }),
    `${NETWORK}.mtu: 1279 is too small for IPv6; use at least 1280`,
  ],
  [
    network({ linuxPolicySetupTimeoutSeconds: -1 }),
    `${NETWORK}.linuxPolicySetupTimeoutSeconds: -1 is not a number of seconds`,
  ],
  [network({ numQueues: 0 }), `${NETWORK}.numQueues: 0 is not a number of queues`],
  [network({ readinessGates: ["localhost:9099"] }), `${NETWORK}.readinessGates[0]: "localhost:9099" is not a URL`],
  [
    network({ ipv4Pools: ["no pool"] }),
    `${NETWORK}.ipv4Pools[0]: "no pool" is neither an IPv4 CIDR nor the name of a pool`,
  ],
  [
    network({ ipv4Pools: ["blue"] }),
    `${NETWORK}.ipv4Pools[0]: "blue" is not an IPv4 pool; use default-ipv4-ippool, or declare it`,
  ],
  [network({ ipv6Pools: ["blue"] }), `${NETWORK}.ipv6Pools[0]: "blue" is not an IPv6 pool: there is none; declare one`],
  [
    { cni: { ipam: { type: "HostLocal" } }, ...network({ ipv4Pools: ["blue"] }) },
    `${NETWORK}.ipv4Pools: ["blue"] has no effect with HostLocal`,
  ],
  [
    network({ nodeAddressAutodetectionV4: {} }),
    `${NETWORK}.nodeAddressAutodetectionV4: has no method; use one of firstFound`,
  ],
  [
    network({ nodeAddressAutodetectionV4: { firstFound: true, canReach: "192.0.2.1" } }),
    `${NETWORK}.nodeAddressAutodetectionV4: "firstFound, canReach" has more than one method`,
  ],
  [
    network({ nodeAddressAutodetectionV6: { firstFound: false } }),
    `${NETWORK}.nodeAddressAutodetectionV6.firstFound: false means no method`,
  ],
  [
    network({ nodeAddressAutodetectionV4: { cidrs: ["fd00::/64"] } }),
    `${NETWORK}.nodeAddressAutodetectionV4.cidrs: ["fd00::/64"] has "fd00::/64", which is not an IPv4 CIDR`,
  ],
  [
    network({ nodeAddressAutodetectionV4: { cidrs: ["192.0.2.1"] } }),
    `${NETWORK}.nodeAddressAutodetectionV4.cidrs[0]: "192.0.2.1" is not a CIDR`,
  ],
  [
    network({ nodeAddressAutodetectionV4: { interface: "eth(" } }),
    `${NETWORK}.nodeAddressAutodetectionV4.interface: "eth(" has "eth(", which is not a regular expression`,
  ],
  [pools({}), `${NETWORK}.ipPools[0].cidr: is required`],
  [pools({ cidr: "10.0.0.1/16" }), `${NETWORK}.ipPools[0].cidr: "10.0.0.1/16" has host bits; use "10.0.0.0/16"`],
  [pools({ cidr: "169.254.0.0/16" }), `${NETWORK}.ipPools[0].cidr: "169.254.0.0/16" overlaps the link-local range`],
  [
    pools({ cidr: "10.0.0.0/16" }, { cidr: "10.0.0.0/16" }),
    `${NETWORK}.ipPools[1].cidr: "10.0.0.0/16" is declared more than once`,
  ],
  [
    pools({ cidr: "10.0.0.0/16", name: "a" }, { cidr: "10.1.0.0/16", name: "a" }),
    `${NETWORK}.ipPools[1].name: "a" is the name of two pools`,
  ],
  [
    pools({ cidr: "10.0.0.0/16" }, { cidr: "10.0.1.0/24" }),
    `${NETWORK}.ipPools[1].cidr: "10.0.1.0/24" overlaps pool "10.0.0.0-16" (10.0.0.0/16)`,
  ],
  [pools({ cidr: "10.0.0.0/16", name: "A" }), `${NETWORK}.ipPools[0].name: "A" is not a valid name`],
  [
    pools({ cidr: "10.0.0.0/16", natOutgoing: true }),
    `${NETWORK}.ipPools[0].natOutgoing: true is not allowed; use "Enabled", "Disabled"`,
  ],
  [
    pools({ cidr: "10.0.0.0/16", nodeSelector: "" }),
    `${NETWORK}.ipPools[0].nodeSelector: "" selects no node; use "all()"`,
  ],
  [
    pools({ cidr: "10.0.0.0/16", nodeSelector: "zone = a" }),
    `${NETWORK}.ipPools[0].nodeSelector: "zone = a" is not a valid selector`,
  ],
  [
    pools({ cidr: "10.0.0.0/16", encapsulation: "GRE" }),
    `${NETWORK}.ipPools[0].encapsulation: "GRE" is not allowed; use "VXLANCrossSubnet"`,
  ],
  [
    pools({ cidr: "10.0.0.0/16", blockSize: 19 }),
    `${NETWORK}.ipPools[0].blockSize: 19 is out of range for IPv4; use 20 to 32`,
  ],
  [
    pools({ cidr: "fd00::/64", blockSize: 115 }),
    `${NETWORK}.ipPools[0].blockSize: 115 is out of range for IPv6; use 116 to 128`,
  ],
  [
    pools({ cidr: "10.0.0.0/27", blockSize: 26 }),
    `${NETWORK}.ipPools[0].blockSize: 26 makes a block larger than the pool`,
  ],
  [
    pools({ cidr: "fd00::/64", encapsulation: "IPIP" }),
    `${NETWORK}.ipPools[0].encapsulation: "IPIP" is not supported for IPv6; use VXLANCrossSubnet, VXLAN or None`,
  ],
  [
    pools(...Array.from({ length: 26 }, (_, index) => ({ cidr: `10.${index}.0.0/16` }))),
    `${NETWORK}.ipPools: 26 are too many pools; use at most 25`,
  ],
  ...["IPIP", "IPIPCrossSubnet", "None"].map(
    (encapsulation) =>
      [
        network({ bgp: "Disabled", ipPools: [{ cidr: "10.0.0.0/16", encapsulation }] }),
        `${NETWORK}.ipPools[0].encapsulation: "${encapsulation}" needs BGP, and ${NETWORK}.bgp is Disabled; set it to Enabled`,
      ] as const,
  ),
  ...["VXLAN", "VXLANCrossSubnet"].map(
    (encapsulation) =>
      [
        { cni: { ipam: { type: "HostLocal" } }, ...pools({ cidr: "10.0.0.0/16", encapsulation }) },
        `${NETWORK}.ipPools[0].encapsulation: "${encapsulation}" is not supported with HostLocal`,
      ] as const,
  ),
];

describe("an Installation is refused", () => {
  test.each(CASES.map(([spec, message]) => [JSON.stringify(spec).slice(0, 120), spec, message] as const))(
    "%s",
    (_, spec, message) => {
      const found = refusals(spec);

      expect(found).toHaveLength(1);
      expect(found[0]).toContain(message);
    },
  );

  test("if a pool is outside of the pod CIDRs of the platform", () => {
    const facts = { platformPodCidrs: ["10.244.0.0/16", "not a CIDR"] };
    const found = refusals(pools({ cidr: "10.245.0.0/24" }, { cidr: "10.244.1.0/24" }), facts);

    expect(found).toEqual([
      `${NETWORK}.ipPools[0].cidr: "10.245.0.0/24" is outside of the pod CIDRs of the cluster (10.244.0.0/16), which other components rely on; use a CIDR inside of them`,
    ]);
    expect(refusals(pools({ cidr: "10.245.0.0/24", allowedUses: ["Tunnel"] }), facts)).toEqual([]);
  });

  test("with all its problems at once", () => {
    const spec = { ...pools({ cidr: "10.0.0.0/27", blockSize: 26 }, { cidr: "fd00::/64", encapsulation: "IPIP" }) };

    expect(refusals(spec)).toHaveLength(2);
  });
});
