/** What the environment of the pod says about the installation on its node. Pure. */
import type { Environment } from "../../cni/environment.ts";
import { FORMER_NETWORK_CONFIG } from "../../config/former-network-config.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { serverFromEnvironment } from "../../kube/server-from-environment.ts";
import { isNodeName } from "../../model/node-name.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";

export interface InstallSettings {
  readonly nodeName: string;
  /** Of the plugin's account. */
  readonly namespace: string;
  readonly pluginAccount: string;
  /** URL of the orchestrator's API. */
  readonly server: string;
  /** In the container. */
  readonly networkConfigFile: string;
  /** In the container; files that do not exist there are not used. */
  readonly etcdSecretsDirectory: string;
  /** Replaces the endpoints in the network config. */
  readonly etcdEndpoints?: string;
  readonly binDirectory: string;
  readonly configDirectory: string;
  /** Whether pods get their network from our plugin; otherwise the agent works beside another one. */
  readonly managesCni: boolean;
  /** As given: specs of pools, and of the NodeAgentConfiguration, for a datastore that has none. */
  readonly defaultPools: readonly unknown[];
  readonly nodeAgentConfiguration?: unknown;
  /** The name of the network config that an earlier release had installed, if it was another. */
  readonly formerNetworkConfig?: string;
}

const PREFIX = identity.environmentPrefix;
export const DEFAULT_POOLS = `${PREFIX}DEFAULT_POOLS`;
export const NODE_AGENT_CONFIGURATION = `${PREFIX}NODE_AGENT_CONFIGURATION`;
const MANAGE_CNI = `${PREFIX}MANAGE_CNI`;

export function readInstallSettings(environment: Environment): InstallSettings {
  const value = (name: string) => environment[name] || undefined;
  const nodeName = value("NODE_NAME");
  if (nodeName === undefined) {
    throw invalid("NODE_NAME", "is not set", "set it to the field spec.nodeName of the pod");
  }
  if (!isNodeName(nodeName)) {
    throw invalid("NODE_NAME", `is ${quoted(nodeName)}, which is not a valid node name`, "use spec.nodeName");
  }
  const server = serverFromEnvironment(environment);
  if (server === undefined) {
    throw invalid(
      "KUBERNETES_SERVICE_HOST",
      "or KUBERNETES_SERVICE_PORT is not set",
      "run it in a pod, or set both to the address of the Kubernetes API",
    );
  }
  const etcdEndpoints = etcdEndpointsIn(value("ETCD_ENDPOINTS"));
  const nodeAgentConfiguration = jsonIn(environment, NODE_AGENT_CONFIGURATION);
  const formerNetworkConfig = value(FORMER_NETWORK_CONFIG);
  return {
    ...placesIn(environment),
    nodeName,
    server,
    networkConfigFile: value(`${PREFIX}NETWORK_CONFIG_FILE`) ?? `/etc/${identity.product}-install/config`,
    ...(etcdEndpoints === undefined ? {} : { etcdEndpoints }),
    defaultPools: poolsIn(jsonIn(environment, DEFAULT_POOLS)),
    ...(nodeAgentConfiguration === undefined ? {} : { nodeAgentConfiguration }),
    ...(formerNetworkConfig === undefined ? {} : { formerNetworkConfig }),
  };
}

export type InstallPlaces = Pick<
  InstallSettings,
  "namespace" | "pluginAccount" | "etcdSecretsDirectory" | "binDirectory" | "configDirectory" | "managesCni"
>;

/** The settings that the agent needs too. */
export function placesIn(environment: Environment): InstallPlaces {
  const value = (name: string) => environment[name] || undefined;
  return {
    namespace: value("POD_NAMESPACE") ?? "kube-system",
    pluginAccount: value(`${PREFIX}PLUGIN_ACCOUNT`) ?? `${identity.product}-cni-plugin`,
    etcdSecretsDirectory: value(`${PREFIX}ETCD_SECRETS`) ?? `/etc/${identity.product}-etcd-secrets`,
    binDirectory: directoryIn(environment, "CNI_BIN_DIR") ?? "/opt/cni/bin",
    configDirectory: directoryIn(environment, "CNI_CONF_DIR") ?? "/etc/cni/net.d",
    managesCni: truthIn(environment, MANAGE_CNI),
  };
}

function directoryIn(environment: Environment, name: string): string | undefined {
  const given = environment[name] || undefined;
  if (given === undefined) return undefined;
  if (!given.startsWith("/")) throw invalid(name, `is ${quoted(given)}`, "use an absolute path of the host");
  return given.replace(/\/+$/, "");
}

function truthIn(environment: Environment, name: string): boolean {
  const given = environment[name] || "true";
  if (given === "true" || given === "false") return given === "true";
  throw invalid(name, `is ${quoted(given)}`, 'use "true" or "false"');
}

/** Manifests have a placeholder, which nobody may forget. */
function etcdEndpointsIn(given: string | undefined): string | undefined {
  if (given?.includes("<")) {
    throw invalid(
      "ETCD_ENDPOINTS",
      `is the placeholder ${quoted(given)}`,
      "set etcd_endpoints in the manifest to the URLs of etcd, separated by commas",
    );
  }
  return given;
}

function jsonIn(environment: Environment, name: string): unknown {
  const given = environment[name] || undefined;
  if (given === undefined) return undefined;
  try {
    return parseJson(given);
  } catch {
    throw invalid(name, "is not valid JSON", "correct it");
  }
}

function poolsIn(given: unknown): readonly unknown[] {
  if (given === undefined) return [];
  if (Array.isArray(given)) return given;
  throw invalid(DEFAULT_POOLS, "is not a list", 'use a list of specs of pools, such as [{"cidr":"10.244.0.0/16"}]');
}

function invalid(variable: string, state: string, remedy: string): PluginError {
  return new PluginError("config-invalid", `Cannot install: the environment variable ${variable} ${state}`, {
    details: remedy,
  });
}
