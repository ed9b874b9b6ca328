/** From a complete and valid spec to what is rendered. Pure. */

import { INSTALLED_LOG_FILE } from "../../config/installed-network-list.ts";
import { identity } from "../../identity.ts";
import { HOST_LOCAL } from "../../model/installation/choices.ts";
import { ALERTS_PORT, type DeclaredConsole } from "../../model/installation/console.ts";
import { megabytesOf, NO_LOG_FILE } from "../../model/installation/logging.ts";
import { type InstallationSpec, USE_DEFAULT } from "../../model/installation/spec.ts";
import type { DeclaredWorkload } from "../../model/installation/workload.ts";
import { NO_KUBELET } from "../../model/kubelet-directory.ts";
import { detectionText } from "./address-detection.ts";
import type {
  EffectiveInstallation,
  EffectiveNetwork,
  ImageSource,
  InstallationDatastore,
  WorkloadOverride,
} from "./effective-installation.ts";
import type { CompleteNetwork, CompleteSpec } from "./installation-defaults.ts";
import { poolResource } from "./pool-resource.ts";

export function effectiveInstallation(spec: CompleteSpec): EffectiveInstallation {
  const { cni = {} } = spec.logging ?? {};
  return {
    image: imageSource(spec),
    kubernetesProvider: spec.kubernetesProvider ?? "",
    datastore: datastoreOf(spec),
    cni: {
      ipam: spec.cni.ipam.type === HOST_LOCAL ? "HostLocal" : "Pools",
      ...directories(spec.kubernetesProvider ?? ""),
      ...(spec.cni.binDir === undefined ? {} : { binDir: spec.cni.binDir }),
      ...(spec.cni.confDir === undefined ? {} : { confDir: spec.cni.confDir }),
    },
    network: networkOf(spec.network),
    flows: { ...spec.flows, mode: spec.flows.mode ?? "Disabled" },
    console: consoleOf(spec.console ?? {}),
    ...kubeletDirectory(spec.kubeletVolumePluginPath),
    logging: {
      level: LEVELS[cni.logSeverity ?? "Info"],
      ...logFile(cni.logFilePath ?? INSTALLED_LOG_FILE),
      maxSizeMegabytes: megabytesOf(cni.logFileMaxSize ?? "100Mi"),
      maxAgeDays: cni.logFileMaxAgeDays ?? 30,
      maxCount: cni.logFileMaxCount ?? 10,
    },
    controlPlane: {
      replicas: spec.controlPlaneReplicas ?? 2,
      nodeSelector: spec.controlPlaneNodeSelector ?? {},
      tolerations: spec.controlPlaneTolerations ?? [],
    },
    ...(spec.nodeMetricsPort === undefined ? {} : { nodeMetricsPort: spec.nodeMetricsPort }),
    nodeUpdateStrategy: {
      type: "RollingUpdate",
      rollingUpdate: { maxUnavailable: spec.nodeUpdateStrategy?.rollingUpdate?.maxUnavailable ?? 1 },
    },
    admissionPolicies: admissionPolicies(spec.admissionPolicies ?? {}),
    overrides: {
      node: overrideOf(spec.nodeDaemonSet, componentResources(spec, "Node")),
      controllers: overrideOf(spec.controllersDeployment, componentResources(spec, "KubeControllers")),
    },
  };
}

function consoleOf({ mode = "Disabled", hosts = [], alerts }: DeclaredConsole): EffectiveInstallation["console"] {
  const { namespace, service, port = ALERTS_PORT } = alerts ?? {};
  const isComplete = namespace !== undefined && service !== undefined;
  return { mode, hosts, ...(isComplete ? { alerts: { namespace, service, port } } : {}) };
}

function admissionPolicies(declared: NonNullable<InstallationSpec["admissionPolicies"]>) {
  return {
    chosenAddresses: declared.chosenAddresses !== "Disabled",
    recordedAddresses: declared.recordedAddresses !== "Disabled",
    nodeAccounts: declared.nodeAccounts !== "Disabled",
  };
}

function logFile(path: string): Pick<EffectiveInstallation["logging"], "filePath"> {
  return path === NO_LOG_FILE ? {} : { filePath: path };
}

const LEVELS = { Error: "ERROR", Warning: "WARNING", Info: "INFO", Debug: "DEBUG" } as const;

function imageSource(spec: InstallationSpec): ImageSource {
  const given = (text: string | undefined) => (text === undefined || text === USE_DEFAULT ? "" : text);
  const registry = given(spec.registry) || identity.imageRegistry;
  return {
    registry: registry.endsWith("/") ? registry : `${registry}/`,
    path: given(spec.imagePath).replaceAll(/^\/+|\/+$/g, ""),
    prefix: given(spec.imagePrefix),
    pullSecrets: (spec.imagePullSecrets ?? []).map(({ name }) => name),
  };
}

function datastoreOf({ datastore }: InstallationSpec): InstallationDatastore {
  if (datastore?.type !== "Etcd") return { type: "Kubernetes" };
  const { endpoints = [], discoverySrv, secretName } = datastore.etcd ?? {};
  return {
    type: "Etcd",
    endpoints: endpoints.join(","),
    ...(discoverySrv === undefined ? {} : { discoveryDomain: discoverySrv }),
    ...(secretName === undefined ? {} : { secretName }),
  };
}

/** Where the container runtime of the platform looks for plugins and their configuration. */
function directories(provider: string): { readonly binDir: string; readonly confDir: string } {
  switch (provider) {
    case "OpenShift":
      return { binDir: "/var/lib/cni/bin", confDir: "/var/run/multus/cni/net.d" };
    case "GKE":
      return { binDir: "/home/kubernetes/bin", confDir: "/etc/cni/net.d" };
    default:
      return { binDir: "/opt/cni/bin", confDir: "/etc/cni/net.d" };
  }
}

function kubeletDirectory(path: string): Pick<EffectiveInstallation, "kubeletDirectory"> {
  return path === NO_KUBELET ? {} : { kubeletDirectory: path.replace(/\/$/, "") };
}

function networkOf(network: CompleteNetwork): EffectiveNetwork {
  const { nodeAddressAutodetectionV4: ipv4, nodeAddressAutodetectionV6: ipv6, featureControl = {} } = network;
  return {
    bgp: network.bgp,
    ipPools: network.ipPools.flatMap((pool, index) => {
      const resource = poolResource(pool, index);
      return resource.ok ? [resource.value] : [];
    }),
    mtu: network.mtu ?? 0,
    ...(ipv4 === undefined ? {} : { ipv4AddressDetection: detectionText(ipv4) }),
    ...(ipv6 === undefined ? {} : { ipv6AddressDetection: detectionText(ipv6) }),
    hostPorts: network.hostPorts ?? "Enabled",
    hostPortsSNAT: network.hostPortsSNAT ?? "Enabled",
    bandwidth: network.bandwidth ?? "Enabled",
    containerIPForwarding: network.containerIPForwarding ?? "Disabled",
    linuxPolicySetupTimeoutSeconds: network.linuxPolicySetupTimeoutSeconds ?? 0,
    featureControl: {
      ipAddrsNoIpam: featureControl.ipAddrsNoIpam ?? false,
      floatingIPs: featureControl.floatingIPs ?? false,
      allowedSourcePrefixes: featureControl.allowedSourcePrefixes ?? false,
      clusterSourcePrefixes: featureControl.clusterSourcePrefixes ?? [],
    },
    numQueues: network.numQueues ?? 1,
    readinessGates: network.readinessGates ?? [],
    ipv4Pools: network.ipv4Pools ?? [],
    ipv6Pools: network.ipv6Pools ?? [],
  };
}

function componentResources({ componentResources = [] }: InstallationSpec, name: string): object | undefined {
  return componentResources.find(({ componentName }) => componentName === name)?.resourceRequirements;
}

function overrideOf(workload: DeclaredWorkload | undefined, deprecated: object | undefined): WorkloadOverride {
  const { affinity, nodeSelector, tolerations, containers = [] } = workload?.spec?.template?.spec ?? {};
  const resources = containers[0]?.resources ?? deprecated;
  return {
    ...(resources === undefined ? {} : { resources }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(tolerations === undefined ? {} : { tolerations }),
    ...(affinity === undefined ? {} : { affinity }),
  };
}
