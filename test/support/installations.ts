/** A dozen installations, complete, as the operator has them after all defaults. */
import { identity } from "../../src/identity.ts";
import { type IPPool, type IPPoolSpec, ipPool } from "../../src/model/ip-pool.ts";
import type { ClusterFacts } from "../../src/operator/cluster-facts.ts";
import type { EffectiveInstallation, EffectiveNetwork } from "../../src/operator/effective-installation.ts";

export interface Example {
  readonly installation: EffectiveInstallation;
  readonly facts: ClusterFacts;
}

const IPV4 = pool("default-ipv4-ippool", { cidr: "192.168.0.0/16", vxlanMode: "CrossSubnet" });
const IPV6 = pool("default-ipv6-ippool", { cidr: "fd00:10::/48" });
const PLAIN = pool("default-ipv4-ippool", { cidr: "10.244.0.0/16", vxlanMode: "Never" });

const FACTS: ClusterFacts = {
  version: "v1.2.3",
  namespace: identity.systemNamespace,
  pools: [],
  platformPodCidrs: [],
};

const DEFAULT: EffectiveInstallation = {
  image: { registry: identity.imageRegistry, path: "", prefix: "", pullSecrets: [] },
  kubernetesProvider: "",
  datastore: { type: "Kubernetes" },
  cni: { ipam: "Pools", binDir: "/opt/cni/bin", confDir: "/etc/cni/net.d" },
  network: {
    bgp: "Enabled",
    ipPools: [IPV4],
    mtu: 0,
    ipv4AddressDetection: "first-found",
    hostPorts: "Enabled",
    containerIPForwarding: "Disabled",
    linuxPolicySetupTimeoutSeconds: 0,
    featureControl: { ipAddrsNoIpam: false, floatingIPs: false },
    numQueues: 1,
    readinessGates: [],
    ipv4Pools: [],
    ipv6Pools: [],
  },
  logging: { level: "INFO", maxSizeMegabytes: 100, maxAgeDays: 30, maxCount: 10 },
  controlPlane: { replicas: 2, nodeSelector: {}, tolerations: [] },
  nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
  overrides: { node: {}, controllers: {} },
};

/** By the name of the file in src/operator/render/golden with what is rendered from it. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  default: example(),
  "dual-stack": example(withNetwork({ ipPools: [IPV4, IPV6], ipv6AddressDetection: "first-found" })),
  "host-local-both-families": example({
    ...withNetwork({ ipPools: [PLAIN, IPV6] }),
    cni: { ...DEFAULT.cni, ipam: "HostLocal" },
  }),
  "without-bgp": example(withNetwork({ bgp: "Disabled" })),
  "without-host-ports": example(withNetwork({ hostPorts: "Disabled" })),
  "policy-timeout": example(withNetwork({ linuxPolicySetupTimeoutSeconds: 10 })),
  "etcd-with-secret": example(
    {
      datastore: { type: "Etcd", endpoints: "https://10.0.0.1:2379,https://10.0.0.2:2379", secretName: "etcd-client" },
    },
    { etcdSecretHash: "5ec2e7" },
  ),
  "private-registry": example({
    image: { registry: "mirror.example.org/", path: "network", prefix: "our-", pullSecrets: ["mirror", "other"] },
  }),
  "api-endpoint": example({}, { apiEndpoint: { host: "api.example.org", port: "6443" } }),
  "mtu-and-logging": example({
    ...withNetwork({ mtu: 1400 }),
    logging: { level: "DEBUG", maxSizeMegabytes: 20, maxAgeDays: 3, maxCount: 2 },
    nodeMetricsPort: 9091,
  }),
  overrides: example({
    cni: { ...DEFAULT.cni, binDir: "/usr/libexec/cni", confDir: "/etc/other/net.d" },
    controlPlane: {
      replicas: 3,
      nodeSelector: { "node-role.kubernetes.io/control-plane": "" },
      tolerations: [{ key: "dedicated", operator: "Exists" }],
    },
    nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
    overrides: {
      node: { resources: { requests: { cpu: "250m" } }, nodeSelector: { network: "ours" } },
      controllers: { resources: { limits: { memory: "256Mi" } }, tolerations: [], affinity: {} },
    },
  }),
  features: example(
    withNetwork({
      ipPools: [],
      featureControl: { ipAddrsNoIpam: true, floatingIPs: true },
      numQueues: 4,
      readinessGates: ["http://127.0.0.1:9099/readiness"],
      ipv4Pools: ["default-ipv4-ippool"],
      ipv6Pools: ["fd00:10::/48"],
      containerIPForwarding: "Enabled",
    }),
    { pools: [IPV4, IPV6, pool("unused", { cidr: "10.9.0.0/16", disabled: true })] },
  ),
};

function example(changes: Partial<EffectiveInstallation> = {}, facts: Partial<ClusterFacts> = {}): Example {
  return { installation: { ...DEFAULT, ...changes }, facts: { ...FACTS, ...facts } };
}

function withNetwork(changes: Partial<EffectiveNetwork>): Partial<EffectiveInstallation> {
  return { network: { ...DEFAULT.network, ...changes } };
}

function pool(name: string, spec: Partial<IPPoolSpec>): IPPool {
  const decoded = ipPool.decode({
    apiVersion: ipPool.apiVersion,
    kind: ipPool.kind,
    metadata: { name },
    spec: { natOutgoing: true, ...spec },
  });
  if (!decoded.ok) throw new Error(JSON.stringify(decoded));
  return decoded.value;
}
