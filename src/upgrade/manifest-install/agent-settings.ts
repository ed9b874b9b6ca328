/**
 * Settings that earlier releases had in the environment of the node agent. They are now fields of NodeAgentConfiguration, or pools,
 * or gone. Pure.
 */
import { identity } from "../../identity.ts";
import {
  type NodeAgentConfigurationSpec,
  nodeAgentConfiguration,
  nodeAgentSettings,
} from "../../model/node-agent-configuration.ts";
import { formatProblems } from "../../model/problem.ts";
import { quoted } from "../../quote.ts";
import type { Obstacle } from "../engine/facts.ts";
import { SOURCE_SPOOFING } from "../former-names.ts";
import { translateFeatures } from "../former-storage/agent-settings.ts";
import { isSame } from "../merge/canonical-json.ts";
import type { UnreadVariable } from "../pod-template.ts";

export interface TranslatedEnvironment {
  /** Fields of NodeAgentConfiguration `default`, if they differ from what a new installation does. */
  readonly settings: NodeAgentConfigurationSpec;
  /** Fields that are given with the value of a new installation. */
  readonly usualSettings: NodeAgentConfigurationSpec;
  /** What earlier releases did without a variable, if a new installation does otherwise. */
  readonly formerDefaults: NodeAgentConfigurationSpec;
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
}

const PREFIX = identity.environmentPrefix;
/** The published manifests set it: without it, the default of earlier releases was to drop. */
const HOST_ACTION = "FELIX_DEFAULTENDPOINTTOHOSTACTION";
const BACKEND = `${PREFIX}NETWORKING_BACKEND`;

type Translate = (value: string, all: ReadonlyMap<string, string>) => Partial<NodeAgentConfigurationSpec> | undefined;

/** `undefined`: the value has no meaning here. */
const TABLE: Readonly<Record<string, Translate>> = {
  [BACKEND]: backend,
  IP_AUTODETECTION_METHOD: (value) => ({ ipv4AddressDetection: value }),
  IP6_AUTODETECTION_METHOD: (value) => ({ ipv6AddressDetection: value }),
  [HOST_ACTION]: hostAction,
  FELIX_IPTABLESFILTERDENYACTION: denyAction,
  FELIX_NFTABLESFILTERDENYACTION: denyAction,
  FELIX_HEALTHENABLED: (value) => truth(value, "healthEnabled"),
  FELIX_HEALTHHOST: (value) => ({ healthHost: value }),
  FELIX_HEALTHPORT: (value) => ({ healthPort: Number(value) }),
  FELIX_PROMETHEUSMETRICSENABLED: (value) => truth(value, "prometheusMetricsEnabled"),
  FELIX_PROMETHEUSMETRICSHOST: (value) => ({ prometheusMetricsHost: value }),
  FELIX_PROMETHEUSMETRICSPORT: (value) => ({ prometheusMetricsPort: Number(value) }),
  FELIX_INTERFACEPREFIX: (value) => ({ interfacePrefix: value }),
  FELIX_IPTABLESREFRESHINTERVAL: refreshInterval,
  FELIX_VXLANPORT: (value) => ({ vxlanPort: Number(value) }),
  FELIX_VXLANVNI: (value) => ({ vxlanVNI: Number(value) }),
  FELIX_FEATUREDETECTOVERRIDE: features,
  FELIX_FAILSAFEINBOUNDHOSTPORTS: (value) => failsafe(value, "failsafeInboundHostPorts"),
  FELIX_FAILSAFEOUTBOUNDHOSTPORTS: (value) => failsafe(value, "failsafeOutboundHostPorts"),
};

/** Read elsewhere, or of no meaning any more, whatever their value is. */
const WITHOUT_NOTE: ReadonlySet<string> = new Set([
  "DATASTORE_TYPE",
  "WAIT_FOR_DATASTORE",
  "NODENAME",
  "CLUSTER_TYPE",
  "USE_POD_CIDR",
  "SLEEP",
  "CNI_CONF_NAME",
  "CNI_NETWORK_CONFIG",
  "CNI_MTU",
  "KUBERNETES_NODE_NAME",
  "KUBERNETES_SERVICE_HOST",
  "KUBERNETES_SERVICE_PORT",
  "ETCD_ENDPOINTS",
  "ETCD_CA_CERT_FILE",
  "ETCD_CERT_FILE",
  "ETCD_KEY_FILE",
  "FELIX_IPINIPMTU",
  "FELIX_VXLANMTU",
  "FELIX_WIREGUARDMTU",
  "FELIX_TYPHAK8SSERVICENAME",
  SOURCE_SPOOFING.variable,
  `${PREFIX}DISABLE_FILE_LOGGING`,
  `${PREFIX}K8S_NODE_REF`,
  `${PREFIX}MANAGE_CNI`,
  `${PREFIX}CNI_SERVICE_ACCOUNT`,
  `${PREFIX}IPV4POOL_CIDR`,
  `${PREFIX}IPV4POOL_IPIP`,
  `${PREFIX}IPV4POOL_VXLAN`,
  `${PREFIX}IPV4POOL_NAT_OUTGOING`,
  `${PREFIX}IPV4POOL_BLOCK_SIZE`,
  `${PREFIX}IPV4POOL_NODE_SELECTOR`,
  `${PREFIX}IPV6POOL_CIDR`,
  `${PREFIX}IPV6POOL_VXLAN`,
  `${PREFIX}IPV6POOL_NAT_OUTGOING`,
  `${PREFIX}IPV6POOL_BLOCK_SIZE`,
  `${PREFIX}IPV6POOL_NODE_SELECTOR`,
  "NO_DEFAULT_POOLS",
]);

/** Stock values that mean what a new installation does anyway. */
const STOCK_VALUES: Readonly<Record<string, readonly string[]>> = {
  IP: ["", "autodetect"],
  IP6: ["", "none", "autodetect"],
  FELIX_IPV6SUPPORT: ["true", "false"],
  FELIX_LOGSEVERITYSCREEN: ["info", "Info"],
  FELIX_BPFENABLED: ["false"],
  FELIX_WIREGUARDENABLED: ["false"],
  FELIX_WIREGUARDENABLEDV6: ["false"],
};

/** Without it, traffic would be cut or readable by others. */
const IRREPLACEABLE: Readonly<Record<string, string>> = {
  FELIX_BPFENABLED: "services are not handled by the agent any more: install kube-proxy first, and set it to false",
  FELIX_WIREGUARDENABLED: "traffic between nodes would not be encrypted any more: set it to false to accept that",
  FELIX_WIREGUARDENABLEDV6: "traffic between nodes would not be encrypted any more: set it to false to accept that",
};

/** The address by which the orchestrator knows the node; the address of a node that is given comes before a way to detect it. */
const HOST_ADDRESS = "fieldRef status.hostIP";

export function translateEnvironment(
  environment: ReadonlyMap<string, string>,
  unread: readonly UnreadVariable[] = [],
): TranslatedEnvironment {
  let settings: NodeAgentConfigurationSpec = {};
  const notes: string[] = [];
  const obstacles: Obstacle[] = [];
  for (const [name, value] of environment) {
    if (WITHOUT_NOTE.has(name) || STOCK_VALUES[name]?.includes(value)) continue;
    const translated = Object.hasOwn(TABLE, name) ? TABLE[name]?.(value, environment) : undefined;
    const consequence = IRREPLACEABLE[name];
    const wrong = translated === undefined ? "" : problemsOf(translated);
    if (translated !== undefined && wrong === "") settings = { ...settings, ...translated };
    else if (consequence !== undefined) obstacles.push(obstacle(name, value, consequence));
    else if (isReachabilitySetting(name))
      obstacles.push(obstacle(name, value, `correct it, or remove it from the DaemonSet${wrong && `: ${wrong}`}`));
    else notes.push(`Variable ${name}=${quoted(value)} of the node agent has no counterpart in this release`);
  }
  for (const { name, source } of unread) {
    if (WITHOUT_NOTE.has(name) && !name.startsWith("ETCD_")) continue;
    const text = `Variable ${name} of the node agent comes from ${source}`;
    if (name === "IP" && source === HOST_ADDRESS)
      settings = { ...settings, ipv4AddressDetection: "kubernetes-internal-ip" };
    else if (Object.hasOwn(TABLE, name) || IRREPLACEABLE[name] !== undefined || isReachabilitySetting(name))
      obstacles.push({
        message: `${text}, which is not read`,
        remedy: "give it as a value in the DaemonSet, or remove it",
      });
    else notes.push(`${text}; it has no counterpart in this release`);
  }
  const hasHostAction = environment.has(HOST_ACTION) || unread.some(({ name }) => name === HOST_ACTION);
  return {
    ...splitUsual(settings),
    formerDefaults: hasHostAction ? {} : { defaultEndpointToHostAction: "Drop" },
    notes,
    obstacles,
  };
}

/** Values of a new installation matter only if the resource has others. */
function splitUsual(all: NodeAgentConfigurationSpec) {
  const usual: Readonly<Record<string, unknown>> = nodeAgentSettings([], "");
  const isUsual = ([name, value]: readonly [string, unknown]) => isSame(value, usual[name]);
  const fields = Object.entries(all);
  return {
    settings: Object.fromEntries(fields.filter((each) => !isUsual(each))) as NodeAgentConfigurationSpec,
    usualSettings: Object.fromEntries(fields.filter(isUsual)) as NodeAgentConfigurationSpec,
  };
}

function obstacle(name: string, value: string, remedy: string): Obstacle {
  return { message: `Variable ${name}=${quoted(value)} of the node agent cannot be carried over`, remedy };
}

/** A wrong guess would change which addresses nodes have, where the datastore is, or which ports of hosts stay open. */
function isReachabilitySetting(name: string): boolean {
  return /^IP6?(_AUTODETECTION_METHOD)?$|^ETCD_|^FELIX_FAILSAFE|^FELIX_INTERFACEPREFIX$|^FELIX_VXLAN(PORT|VNI)$/.test(
    name,
  );
}

/** "" if there are none. */
function problemsOf(spec: Partial<NodeAgentConfigurationSpec>): string {
  const { kind } = nodeAgentConfiguration;
  const decoded = nodeAgentConfiguration.decode({ kind, metadata: { name: "default", uid: "-" }, spec });
  return decoded.ok ? "" : formatProblems(decoded.problems);
}

function backend(value: string): ReturnType<Translate> {
  switch (value) {
    case "bird":
      return {};
    case "vxlan":
      return { bgp: "Disabled" };
    case "none":
      return { routing: "Disabled" };
    default:
      return undefined;
  }
}

function hostAction(value: string): ReturnType<Translate> {
  switch (value.toLowerCase()) {
    case "accept":
      return { defaultEndpointToHostAction: "Accept" };
    case "drop":
      return { defaultEndpointToHostAction: "Drop" };
    case "return":
      return { defaultEndpointToHostAction: "Return" };
    default:
      return undefined;
  }
}

function denyAction(value: string): ReturnType<Translate> {
  switch (value.toLowerCase()) {
    case "drop":
      return { denyAction: "Drop" };
    case "reject":
      return { denyAction: "Reject" };
    default:
      return undefined;
  }
}

function truth(value: string, field: "healthEnabled" | "prometheusMetricsEnabled") {
  return { [field]: /^(true|1|yes)$/i.test(value) };
}

function features(value: string): ReturnType<Translate> {
  const { vxlanChecksumOffload, others } = translateFeatures(value);
  return vxlanChecksumOffload === undefined || others !== "" ? undefined : { vxlanChecksumOffload };
}

function refreshInterval(value: string): ReturnType<Translate> {
  return /^\d+$/.test(value) ? { tablesRefreshInterval: `${value}s` } : undefined;
}

/** `tcp:22,udp:68`, `none`; a range of addresses cannot be expressed. */
function failsafe(
  value: string,
  field: "failsafeInboundHostPorts" | "failsafeOutboundHostPorts",
): ReturnType<Translate> {
  if (value === "none") return { [field]: [] };
  const ports = value.split(",").map((each) => /^(?:(tcp|udp):)?(\d+)$/i.exec(each.trim()));
  if (ports.includes(null)) return undefined;
  return {
    [field]: ports.map((found) => ({
      protocol: found?.[1]?.toLowerCase() === "udp" ? ("UDP" as const) : ("TCP" as const),
      port: Number(found?.[2]),
    })),
  };
}
