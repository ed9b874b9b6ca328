/** The defaults of an Installation. Pure: some depend on what the operator found in the cluster. */

import { INSTALLED_LOG_FILE } from "../../config/installed-network-list.ts";
import { identity } from "../../identity.ts";
import { ADMISSION_GROUPS } from "../../model/installation/admission.ts";
import { HOST_LOCAL, OWN_TYPE } from "../../model/installation/choices.ts";
import { type DeclaredCni, mergedCni } from "../../model/installation/cni.ts";
import { ALERTS_PORT, type DeclaredConsole } from "../../model/installation/console.ts";
import type { DeclaredFlows } from "../../model/installation/flows.ts";
import type { DeclaredDetection, DeclaredNetwork } from "../../model/installation/network.ts";
import type { InstallationSpec } from "../../model/installation/spec.ts";
import { DEFAULT_KUBELET_DIRECTORY } from "../../model/kubelet-directory.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import { type CompletePool, completePools } from "./default-pools.ts";

/** A spec in which nothing is missing that the operator needs to know. `cni` is only in `spec.cni`. */
export interface CompleteSpec extends InstallationSpec {
  readonly cni: DeclaredCni & { readonly type: string; readonly ipam: { readonly type: string } };
  readonly network: CompleteNetwork;
  readonly kubeletVolumePluginPath: string;
  readonly flows: DeclaredFlows;
}

export interface CompleteNetwork extends Omit<DeclaredNetwork, "cni"> {
  readonly bgp: "Enabled" | "Disabled";
  readonly ipPools: readonly CompletePool[] & DeclaredNetwork["ipPools"];
}

export function withDefaults(spec: InstallationSpec, facts: ClusterFacts): CompleteSpec {
  const { cni: nested = {}, ...network } = spec.network ?? {};
  const cni = mergedCni(spec.cni ?? {}, nested);
  const ipamType = cni.ipam?.type ?? OWN_TYPE;
  return {
    ...spec,
    variant: spec.variant ?? identity.title,
    datastore: { ...spec.datastore, type: spec.datastore?.type ?? "Kubernetes" },
    cni: { ...cni, type: cni.type ?? OWN_TYPE, ipam: { type: ipamType } },
    network: networkDefaults(network, { ipam: ipamType === HOST_LOCAL ? "HostLocal" : "Pools", spec, facts }),
    logging: {
      cni: {
        logSeverity: "Info",
        logFilePath: INSTALLED_LOG_FILE,
        logFileMaxSize: "100Mi",
        logFileMaxAgeDays: 30,
        logFileMaxCount: 10,
        ...spec.logging?.cni,
      },
    },
    kubeletVolumePluginPath: spec.kubeletVolumePluginPath ?? DEFAULT_KUBELET_DIRECTORY,
    admissionPolicies: { ...enabledPolicies(), ...spec.admissionPolicies },
    flows: { mode: "Disabled", ...spec.flows },
    console: withAlertsPort({ mode: "Disabled", ...spec.console }),
    controlPlaneReplicas: spec.controlPlaneReplicas ?? 2,
    nodeUpdateStrategy: {
      type: spec.nodeUpdateStrategy?.type ?? "RollingUpdate",
      rollingUpdate: { maxUnavailable: spec.nodeUpdateStrategy?.rollingUpdate?.maxUnavailable ?? 1 },
    },
  };
}

function withAlertsPort(declared: DeclaredConsole): DeclaredConsole {
  const { alerts } = declared;
  return alerts === undefined ? declared : { ...declared, alerts: { port: ALERTS_PORT, ...alerts } };
}

function enabledPolicies() {
  return Object.fromEntries(ADMISSION_GROUPS.map((group) => [group, "Enabled" as const]));
}

interface NetworkCircumstances {
  readonly ipam: "Pools" | "HostLocal";
  readonly spec: InstallationSpec;
  readonly facts: ClusterFacts;
}

function networkDefaults(
  network: Omit<DeclaredNetwork, "cni">,
  { ipam, spec, facts }: NetworkCircumstances,
): CompleteNetwork {
  const provider = spec.kubernetesProvider ?? "";
  const bgp = network.bgp ?? (provider === "EKS" ? "Disabled" : "Enabled");
  const ipPools = [...completePools(network.ipPools, { ipam, bgp, provider }, facts)];
  const hasFamily = (sign: string) => ipPools.some(({ cidr }) => cidr.includes(sign));
  return {
    ...(hasFamily(".") ? { nodeAddressAutodetectionV4: defaultDetection(provider) } : {}),
    ...(hasFamily(":") ? { nodeAddressAutodetectionV6: { firstFound: true } } : {}),
    linuxDataplane: "Nftables",
    hostPorts: "Enabled",
    hostPortsSNAT: "Enabled",
    bandwidth: "Enabled",
    multiInterfaceMode: "None",
    containerIPForwarding: "Disabled",
    linuxPolicySetupTimeoutSeconds: 0,
    numQueues: 1,
    ...network,
    featureControl: {
      ipAddrsNoIpam: false,
      floatingIPs: false,
      allowedSourcePrefixes: false,
      ...network.featureControl,
    },
    bgp,
    ipPools,
  };
}

/** On EKS a node has several interfaces; Docker Enterprise has bridges with addresses of their own. */
function defaultDetection(provider: string): DeclaredDetection {
  switch (provider) {
    case "EKS":
      return { canReach: "8.8.8.8" };
    case "DockerEnterprise":
      return { skipInterface: "^br-.*" };
    default:
      return { firstFound: true };
  }
}
