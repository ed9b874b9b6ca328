/** What the fields of an Installation mean. */
import { INSTALLED_LOG_FILE } from "../../../config/installed-network-list.ts";
import { identity } from "../../../identity.ts";
import { ALERTS_PORT } from "../../../model/installation/console.ts";
import { CONTROLLERS_FIELD, NETWORK_FIELD, NODE_FIELD } from "../../../model/installation/names.ts";
import { REFUSED_NETWORK_FIELDS } from "../../../model/installation/network.ts";
import { REFUSED_SPEC_FIELDS } from "../../../model/installation/spec.ts";
import { below, type Descriptions } from "../kind.ts";

const { title, product, adminTool } = identity;

const CNI: Descriptions = {
  "": "Plugin that connects the pods, and where their addresses come from",
  type: `Plugin that connects the pods; only ${title}`,
  ipam: "Where the addresses of pods come from",
  "ipam.type": `${title}: from IP pools, in blocks that nodes claim. HostLocal: from the pod CIDRs of each node. Default: ${title}`,
  "ipam.plugin": "Another name of type, which must not differ from it",
  binDir: "Directory of the plugins on every node. Default: /opt/cni/bin, or that of the provider",
  confDir: "Directory of the network configuration on every node. Default: /etc/cni/net.d, or that of the provider",
};

const POOL: Descriptions = {
  "": "IP pools that the operator creates and keeps as declared. Absent: the pod CIDRs of the platform, otherwise 192.168.0.0/16, unless there are pools already. An empty list: the operator manages no pools. Pools are never deleted; one that is no longer declared is disabled",
  name: "Name of the IPPool. Default: default-ipv4-ippool or default-ipv6-ippool if it is the only one of its family, otherwise derived from the CIDR; cannot be changed",
  cidr: "Range of addresses; cannot be changed",
  encapsulation:
    "How packets travel between nodes. VXLAN: in a tunnel; VXLANCrossSubnet: in a tunnel only between subnets; IPIP and IPIPCrossSubnet: the same with IPIP, for IPv4 and with BGP; None: routed, with BGP. Default: VXLANCrossSubnet; None for IPv6 with BGP, and with HostLocal",
  natOutgoing:
    "Use the node's address as the source for destinations outside of all pools. Default: Enabled for IPv4, Disabled for IPv6",
  nodeSelector: "Nodes that use the pool. Default: all()",
  namespaceSelector: "Namespaces whose pods use the pool. Default: every pod, and containers without a pod",
  blockSize:
    "Prefix length of the blocks that nodes claim: 20 to 32 for IPv4 (default 26), 116 to 128 for IPv6 (default 122); cannot be changed",
  disableBGPExport: "Do not announce the pool by BGP",
  disableNewAllocations: "Assign no more addresses of the pool",
  allowedUses: "What the addresses are for: workloads, or tunnels of nodes. Default: both",
  cooldownSeconds:
    "Seconds for which a released address is given to no other owner: 0 to 86400. Default: cooldownSeconds of the IPAMConfiguration",
  keepAddresses:
    "Whether pods whose names come again (StatefulSets) get their addresses of the pool again after they were deleted. Default: only those with the annotation keepAddresses; false: none",
  keepFor: "How long a kept address waits for its pod; 0s: until it is released. Default: 24h",
};

const DETECTION: Descriptions = {
  firstFound: "Use the first valid address of the first valid interface",
  kubernetes: "Use the InternalIP of the Kubernetes Node",
  interface: "Use an interface whose name matches one of these regular expressions, separated by commas",
  skipInterface: "Use an interface whose name matches none of these regular expressions, separated by commas",
  canReach: "Use the address that the node reaches this address or host name with",
  cidrs: "Use an address in one of these CIDRs",
};

const NETWORK: Descriptions = {
  "": "The network of the pods",
  linuxDataplane: "How policy is enforced. Iptables and Nftables both mean nftables. Default: Nftables",
  windowsDataplane: "Only Disabled: nodes run Linux",
  bgp: "Whether nodes exchange routes by BGP. Default: Enabled; Disabled on EKS",
  ...below("ipPools", POOL[""] ?? "", POOL),
  mtu: "MTU of the interfaces of pods; 0 or absent: detected on each node",
  ...below(
    "nodeAddressAutodetectionV4",
    "How a node finds its IPv4 address: one of the methods. Default: firstFound",
    DETECTION,
  ),
  ...below(
    "nodeAddressAutodetectionV6",
    "How a node finds its IPv6 address: one of the methods. Default: firstFound",
    DETECTION,
  ),
  hostPorts: "Whether pods may have host ports: portmap is in the network configuration list. Default: Enabled",
  hostPortsSNAT:
    "Whether clients of host ports are masqueraded if replies would not come back through the node: snat of portmap, so without effect if hostPorts is Disabled. Default: Enabled",
  bandwidth:
    "Whether the traffic of pods is shaped by their annotations: bandwidth is in the network configuration list. Default: Enabled",
  multiInterfaceMode: "Only None: a pod has one interface of this network",
  containerIPForwarding: "Whether containers may forward packets. Default: Disabled",
  linuxPolicySetupTimeoutSeconds:
    "Delay new pods until their policy is programmed, but at most this number of seconds; 0 does not wait. Default: 0",
  featureControl: "Features that let a pod choose addresses; an admission policy should restrict who may use them",
  "featureControl.ipAddrsNoIpam": "Allow pods to request addresses outside of IPAM by annotation. Default: false",
  "featureControl.floatingIPs": "Allow pods to request floating IPs by annotation. Default: false",
  "featureControl.allowedSourcePrefixes":
    "Allow pods to send from further source addresses by annotation, except for those of pools and nodes. Default: false",
  "featureControl.clusterSourcePrefixes":
    "Prefixes that such pods may send from although they overlap a pool or an address of a node. Default: none",
  numQueues: "Number of receive queues and of transmit queues of the interfaces of pods. Default: 1",
  readinessGates: "URLs that must be ready before the network of a pod is set up",
  ipv4Pools: "IPv4 pools that pods get addresses from, by name or CIDR. Absent: all pools",
  ipv6Pools: "IPv6 pools that pods get addresses from, by name or CIDR. Absent: all pools",
  ...below("cni", "The same as spec.cni, which must not differ from it", CNI),
};

const TOLERATION: Descriptions = {
  key: "Key of the taint",
  operator: "Exists, or Equal: the value must match too",
  value: "Value of the taint",
  effect: "Effect of the taint; absent: every effect",
  tolerationSeconds: "How long the taint is tolerated",
};

const RESOURCES: Descriptions = { limits: "Most that the container may use", requests: "What the container needs" };

function workload(container: string): Descriptions {
  const pod = "spec.template.spec";
  return {
    spec: "Specification of the workload",
    "spec.template": "Template of its pods",
    [pod]: "Specification of its pods",
    [`${pod}.affinity`]: "Affinity of the pods; replaces that of the operator",
    [`${pod}.nodeSelector`]: "Labels of the nodes that the pods may run on, in addition to those of the operator",
    ...below(`${pod}.tolerations`, "Tolerations of the pods; replace those of the operator", TOLERATION),
    [`${pod}.containers`]: "Containers whose resources are set",
    [`${pod}.containers.name`]: `Only ${container}`,
    ...below(`${pod}.containers.resources`, "Resources of the container", RESOURCES),
  };
}

const SPEC: Descriptions = {
  "": "What is installed; every field is optional",
  variant: `Only ${title}`,
  registry: `Registry of the image, with an optional path. Default: that of the release; UseDefault means the same`,
  imagePath: "Path of the image in the registry. Default: none",
  imagePrefix: "Put before the name of the image. Default: none",
  imagePullSecrets: `Secrets in the namespace ${identity.operator} with which nodes pull the image`,
  "imagePullSecrets.name": "Name of the Secret",
  kubernetesProvider: "Platform of the cluster, which some defaults depend on. Default: none in particular",
  datastore: "Where the network keeps its resources",
  "datastore.type":
    "Kubernetes: in the Kubernetes API. Etcd: in an etcd of your own. Default: Kubernetes; cannot be changed",
  "datastore.etcd": "The etcd servers; only with type Etcd",
  "datastore.etcd.endpoints": "URLs of the etcd servers",
  "datastore.etcd.discoverySrv": "Domain whose SRV records list the etcd servers, instead of endpoints",
  "datastore.etcd.secretName": `Secret in the namespace ${identity.operator} with etcd-ca, etcd-cert and etcd-key`,
  ...below("cni", CNI[""] ?? "", CNI),
  ...below(NETWORK_FIELD, NETWORK[""] ?? "", NETWORK),
  logging: "Logs of the components",
  "logging.cni": "Log of the plugins on every node",
  "logging.cni.logSeverity": "Minimum severity to log. Default: Info",
  "logging.cni.logFilePath": `Log file on every node; None: no log file. Default: ${INSTALLED_LOG_FILE}`,
  "logging.cni.logFileMaxSize": "Size at which the log file is rotated, such as 100Mi. Default: 100Mi",
  "logging.cni.logFileMaxAgeDays": "Days after which rotated files are deleted. Default: 30",
  "logging.cni.logFileMaxCount": "Number of rotated files to keep. Default: 10",
  controlPlaneNodeSelector: "Labels of the nodes that the controllers and the console may run on",
  ...below(
    "controlPlaneTolerations",
    "Tolerations of the controllers and the console, in addition to those of the control plane",
    TOLERATION,
  ),
  controlPlaneReplicas: "Number of replicas of the controllers; one of them is active. Default: 2",
  nodeMetricsPort: "Port at which the node agent serves metrics. Absent: none",
  nodeUpdateStrategy: "How the pods of the node agent are replaced",
  "nodeUpdateStrategy.type": "Only RollingUpdate",
  "nodeUpdateStrategy.rollingUpdate": "Settings of the rolling update",
  "nodeUpdateStrategy.rollingUpdate.maxUnavailable":
    "Nodes whose pods are replaced at a time: a number, or a share such as 10%. Default: 1",
  componentResources: `Resources of components; deprecated, use ${NODE_FIELD} and ${CONTROLLERS_FIELD}`,
  "componentResources.componentName": "Node or KubeControllers",
  ...below("componentResources.resourceRequirements", "Resources of the component", RESOURCES),
  ...below(NODE_FIELD, `What to override in the DaemonSet ${identity.nodeAgent}`, workload(identity.nodeAgent)),
  ...below(
    CONTROLLERS_FIELD,
    `What to override in the Deployment ${identity.controllers}`,
    workload(identity.controllers),
  ),
  nonPrivileged: "Only Disabled: the node agent is privileged",
  fipsMode: "Only Disabled: the cryptography is not certified",
  flexVolumePath: "Only None: there is no FlexVolume",
  kubeletVolumePluginPath:
    "Directory of the kubelet on the nodes, where the node agent serves the CSI driver for the volumes of sidecars; None: it does not. Default: /var/lib/kubelet",
  admissionPolicies: "Policies that the API server evaluates when objects are written; see admission.md",
  "admissionPolicies.chosenAddresses":
    "Only listed namespaces and service accounts may choose addresses that IPAM does not check. Default: Enabled",
  "admissionPolicies.recordedAddresses":
    "Only those who may patch pods/status may write what the plugin records on a pod. Default: Enabled",
  "admissionPolicies.nodeAccounts": "A token of one node does not change what belongs to other nodes. Default: Enabled",
  flows: "Records of who talks to whom, and which rule decided; see flows.md",
  "flows.mode":
    "Enabled: every node records flows, and the controllers serve an API of all of them. A node can be left out by its own NodeAgentConfiguration. Default: Disabled",
  "flows.historyMegabytes": "Size of the history on each node, in megabytes. Default: 100",
  "flows.historyAge": "Age of the oldest flows in the history. Default: 24h",
  "flows.deniedPerSecond":
    "Denied packets of each rule that are recorded in a second; more are only counted. Default: 10",
  "flows.flowsPerSecond":
    "Connections of each node that are recorded one by one in a second; more are only in the roll-ups. Default: 500",
  "flows.logFile": "File on the nodes to which each flow is written as a line of JSON; None: no file. Default: None",
  console: "The web console: health, flows and addresses, for those who log in with a token; see console.md",
  "console.mode": `Enabled: the Deployment ${identity.console} runs, which acts with the rights of the reader alone. Default: Disabled`,
  "console.hosts": `Further host names and addresses under which users reach the console, besides those of the Service ${identity.console}. They are in its certificate, and no other is answered`,
  "console.alerts":
    "Service of a Prometheus with the alert rules of this product: the console shows those that fire, to readers who may get services/proxy there. Absent: none",
  "console.alerts.namespace": "Namespace of the Service",
  "console.alerts.service": "Name of the Service. It serves the API of Prometheus over HTTP",
  "console.alerts.port": `Port of the Service, by its number. Default: ${ALERTS_PORT}`,
  ...Object.fromEntries(Object.entries(REFUSED_SPEC_FIELDS).map(([field, why]) => [field, refused(why)])),
  ...Object.fromEntries(
    Object.entries(REFUSED_NETWORK_FIELDS).map(([field, why]) => [`${NETWORK_FIELD}.${field}`, refused(why)]),
  ),
};

function refused(why: string): string {
  return `Refused: ${why.replace(/^is /, "")}`;
}

const CONDITIONS: Descriptions = {
  type: "Name of the condition",
  status: "True, False or Unknown",
  reason: "One word that says why",
  message: "What is wrong and what to do, or what is still awaited",
  observedGeneration: "Generation of the Installation that the condition is about",
  lastTransitionTime: "When the status changed last",
};

export const INSTALLATION_DESCRIPTIONS: Readonly<Record<string, Descriptions>> = {
  Installation: {
    "": `What the operator installs: the one named default, with the optional overlay over it. Shown by ${adminTool} status`,
    ...below("spec", SPEC[""] ?? "", SPEC),
    status: "What the operator found and did; written by the operator alone",
    "status.variant": "Variant that is installed",
    [`status.${product}Version`]: "Release that is installed",
    "status.mtu": "MTU of the interfaces of pods; 0: detected on each node",
    "status.computed": "The spec that is carried out: default with overlay and all defaults",
    ...below("status.conditions", "Ready, Progressing and Degraded", CONDITIONS),
  },
  [`${title}Status`]: {
    "": "How a component of the installation is; written by the operator alone",
    spec: "Empty",
    status: "How the component is",
    ...below("status.conditions", "Available, Progressing and Degraded", CONDITIONS),
  },
};
