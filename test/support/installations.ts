/** A dozen Installations as users write them, completed as the operator does it. */
import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { withWireNames } from "../../src/model/installation/names.ts";
import { type IPPool, type IPPoolSpec, ipPool } from "../../src/model/ip-pool.ts";
import { formatProblem } from "../../src/model/problem.ts";
import type { ClusterFacts } from "../../src/release/installation/cluster-facts.ts";
import { completeInstallation } from "../../src/release/installation/complete.ts";
import type { EffectiveInstallation } from "../../src/release/installation/effective-installation.ts";

export interface Example {
  readonly installation: EffectiveInstallation;
  readonly facts: ClusterFacts;
}

const FACTS: ClusterFacts = {
  version: "v1.2.3",
  namespace: identity.systemNamespace,
  pools: [],
  platformPodCidrs: [],
};

const IPV4 = "192.168.0.0/16";
const IPV6 = "fd00:10::/48";

/** By the name of the file in src/release/workloads/golden with what is rendered from it. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  default: example({}),
  flows: example({ flows: { mode: "Enabled", historyMegabytes: 50, logFile: "/var/log/flows.json" } }),
  console: example({ console: { mode: "Enabled", hosts: ["console.example.org", "192.0.2.7"] } }),
  "console-with-etcd": example(
    {
      console: { mode: "Enabled", alerts: { namespace: "monitoring", service: "prometheus" } },
      datastore: { type: "Etcd", etcd: { endpoints: ["https://10.0.0.1:2379"], secretName: "etcd-client" } },
      controlPlaneTolerations: [{ key: "dedicated", operator: "Exists" }],
      imagePullSecrets: [{ name: "mirror" }],
    },
    { etcdSecretHash: "5ec2e7", apiEndpoint: { host: "api.example.org", port: "6443" } },
  ),
  "dual-stack": example(network({ ipPools: [{ cidr: IPV4 }, { cidr: IPV6 }] })),
  "host-local-both-families": example({
    ...network({ ipPools: [{ cidr: "10.244.0.0/16" }, { cidr: IPV6 }] }),
    cni: { ipam: { type: "HostLocal" } },
  }),
  "without-bgp": example(network({ bgp: "Disabled" })),
  "without-host-ports": example(network({ hostPorts: "Disabled" })),
  "without-chained-plugins-and-log-file": example({
    ...network({ hostPorts: "Disabled", bandwidth: "Disabled" }),
    logging: { cni: { logFilePath: "None" } },
  }),
  "host-ports-without-snat": example(network({ hostPortsSNAT: "Disabled" })),
  "etcd-by-discovery": example({ datastore: { type: "Etcd", etcd: { discoverySrv: "etcd.example.org" } } }),
  "without-volumes": example({ kubeletVolumePluginPath: "None" }),
  "policy-timeout": example(network({ linuxPolicySetupTimeoutSeconds: 10 })),
  "etcd-with-secret": example(
    {
      datastore: {
        type: "Etcd",
        etcd: { endpoints: ["https://10.0.0.1:2379", "https://10.0.0.2:2379"], secretName: "etcd-client" },
      },
    },
    { etcdSecretHash: "5ec2e7" },
  ),
  "private-registry": example({
    registry: "mirror.example.org",
    imagePath: "network",
    imagePrefix: "our-",
    imagePullSecrets: [{ name: "mirror" }, { name: "other" }],
  }),
  "api-endpoint": example({}, { apiEndpoint: { host: "api.example.org", port: "6443" } }),
  "mtu-and-logging": example({
    ...network({ mtu: 1400, nodeAddressAutodetectionV4: { interface: "eth.*" } }),
    logging: { cni: { logSeverity: "Debug", logFileMaxSize: "20Mi", logFileMaxAgeDays: 3, logFileMaxCount: 2 } },
    nodeMetricsPort: 9091,
  }),
  overrides: example({
    cni: { binDir: "/usr/libexec/cni", confDir: "/etc/other/net.d" },
    controlPlaneReplicas: 3,
    controlPlaneNodeSelector: { "node-role.kubernetes.io/control-plane": "" },
    controlPlaneTolerations: [{ key: "dedicated", operator: "Exists" }],
    nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: "10%" } },
    nodeDaemonSet: pods({
      nodeSelector: { network: "ours" },
      containers: [{ name: identity.nodeAgent, resources: { requests: { cpu: "250m" } } }],
    }),
    controllersDeployment: pods({
      affinity: { nodeAffinity: {} },
      containers: [{ name: identity.controllers, resources: { limits: { memory: "256Mi" } } }],
    }),
  }),
  features: example(
    network({
      featureControl: {
        ipAddrsNoIpam: true,
        floatingIPs: true,
        allowedSourcePrefixes: true,
        clusterSourcePrefixes: ["10.1.0.0/24"],
      },
      numQueues: 4,
      readinessGates: ["http://127.0.0.1:9099/readiness"],
      ipv4Pools: ["blue"],
      ipv6Pools: [IPV6],
      containerIPForwarding: "Enabled",
    }),
    {
      pools: [
        pool("blue", { cidr: IPV4 }),
        pool("six", { cidr: IPV6 }),
        pool("unused", { cidr: "10.9.0.0/16", disabled: true }),
      ],
    },
  ),
};

/** An Installation with this `spec`; fields whose names contain the product's name have those of the program here. */
function example(spec: object, more: Partial<ClusterFacts> = {}): Example {
  const facts = { ...FACTS, ...more };
  const resource = {
    apiVersion: apiVersionOf(OPERATOR_API),
    kind: "Installation",
    metadata: { name: "default" },
    spec: withWireNames(spec),
  };
  const completed = completeInstallation({ default: resource }, facts);
  if (!completed.ok) throw new Error(completed.problems.map(formatProblem).join("; "));
  return { installation: completed.installation, facts };
}

function network(fields: object): object {
  return { network: fields };
}

function pods(spec: object): object {
  return { spec: { template: { spec } } };
}

function pool(name: string, spec: Partial<IPPoolSpec>): IPPool {
  const { apiVersion, kind } = ipPool;
  const decoded = ipPool.decode({ apiVersion, kind, metadata: { name }, spec });
  if (!decoded.ok) throw new Error(decoded.problems.map(formatProblem).join("; "));
  return decoded.value;
}
