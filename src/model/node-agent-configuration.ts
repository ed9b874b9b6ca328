/**
 * NodeAgentConfiguration: settings of the node agent. `default` is for all nodes; `node.NAME` overrides its fields on
 * one node.
 */
import * as v from "valibot";
import { identity, PRODUCT_API } from "../identity.ts";
import { ipv4DetectionField, ipv6DetectionField } from "./address-detection.ts";
import { durationField } from "./duration-field.ts";
import { interfacePrefixField } from "./interface-prefix.ts";
import { PROBE_PORT } from "./probe-port.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";
import { checkSettingsName, OF_ALL_NODES, OF_ONE_NODE } from "./settings-name.ts";

const NOT_A_PORT = "is not a port; use a whole number from 1 to 65535";
const portNumber = v.pipe(v.number(), v.integer(NOT_A_PORT), v.minValue(1, NOT_A_PORT), v.maxValue(65_535, NOT_A_PORT));
const hostPort = v.object({
  protocol: v.optional(v.picklist(["TCP", "UDP", "tcp", "udp"]), "TCP"),
  port: portNumber,
});
const NOT_A_LIMIT = "is not a limit; use a whole number from 4 to 1000000";
const limitNumber = v.pipe(
  v.number(),
  v.integer(NOT_A_LIMIT),
  v.minValue(4, NOT_A_LIMIT),
  v.maxValue(1_000_000, NOT_A_LIMIT),
);

const NOT_A_VNI = "is not a VXLAN network identifier; use a whole number from 1 to 16777215";
const vniNumber = v.pipe(v.number(), v.integer(NOT_A_VNI), v.minValue(1, NOT_A_VNI), v.maxValue(16_777_215, NOT_A_VNI));

const NOT_A_SIZE = "is not a size in megabytes; use a whole number from 8 to 100000";
const megabytes = v.pipe(v.number(), v.integer(NOT_A_SIZE), v.minValue(8, NOT_A_SIZE), v.maxValue(100_000, NOT_A_SIZE));
const NOT_A_RATE = "is not a number per second; use a whole number from 1 to 100000";
const perSecond = v.pipe(v.number(), v.integer(NOT_A_RATE), v.minValue(1, NOT_A_RATE), v.maxValue(100_000, NOT_A_RATE));
/** In place of a path. */
export const NO_FILE = "None";
const FILE_OR_NONE = /^(None|\/.*[^/])$/;
const logFile = v.pipe(v.string(), v.regex(FILE_OR_NONE, 'is not an absolute path of a file; use one, or "None"'));

/** An Installation has the same, under other names. */
export const FLOW_FIELDS = {
  flowDeniedPerSecond: v.exactOptional(perSecond),
  flowHistoryAge: v.exactOptional(durationField("24h")),
  flowHistoryMegabytes: v.exactOptional(megabytes),
  flowLogFile: v.exactOptional(logFile),
  flowsPerSecond: v.exactOptional(perSecond),
} as const;

const specSchema = v.object({
  bgp: v.exactOptional(v.picklist(["Enabled", "Disabled"])),
  defaultEndpointToHostAction: v.exactOptional(v.picklist(["Accept", "Drop", "Return"])),
  denyAction: v.exactOptional(v.picklist(["Drop", "Reject"])),
  failsafeInboundHostPorts: v.exactOptional(v.array(hostPort)),
  failsafeOutboundHostPorts: v.exactOptional(v.array(hostPort)),
  ...FLOW_FIELDS,
  flows: v.exactOptional(v.picklist(["Enabled", "Disabled"])),
  healthEnabled: v.exactOptional(v.boolean()),
  healthHost: v.exactOptional(v.string()),
  healthPort: v.exactOptional(portNumber),
  interfacePrefix: v.exactOptional(interfacePrefixField),
  ipv4AddressDetection: v.exactOptional(ipv4DetectionField),
  ipv6AddressDetection: v.exactOptional(ipv6DetectionField),
  namespacePolicyAddresses: v.exactOptional(limitNumber),
  namespacePolicyLists: v.exactOptional(limitNumber),
  namespacePolicyRules: v.exactOptional(limitNumber),
  openConnections: v.exactOptional(v.picklist(["Keep", "End"])),
  prometheusMetricsEnabled: v.exactOptional(v.boolean()),
  prometheusMetricsHost: v.exactOptional(v.string()),
  prometheusMetricsPort: v.exactOptional(portNumber),
  routing: v.exactOptional(v.picklist(["Enabled", "Disabled"])),
  tablesRefreshInterval: v.exactOptional(durationField("180s")),
  vxlanChecksumOffload: v.exactOptional(v.picklist(["Auto", "On", "Off"])),
  vxlanPort: v.exactOptional(portNumber),
  vxlanVNI: v.exactOptional(vniNumber),
});

export type NodeAgentConfigurationSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type NodeAgentConfiguration = Resource<"NodeAgentConfiguration", NodeAgentConfigurationSpec>;

export const nodeAgentConfiguration = defineResource({
  kind: "NodeAgentConfiguration",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): NodeAgentConfigurationSpec => spec,
  check: (spec, { name }): readonly Problem[] => {
    if (name === OF_ALL_NODES) return ofProbes(spec);
    const problems = checkSettingsName(name);
    return problems.length > 0 ? problems : ofAllNodes(spec);
  },
});

/** Nodes with different ones would not understand each other. */
export const SETTINGS_OF_ALL_NODES = ["vxlanPort", "vxlanVNI"] as const;

export const OF_ALL_NODES_MESSAGE = `is the same on all nodes; set it in "${OF_ALL_NODES}"`;

function ofAllNodes(spec: NodeAgentConfigurationSpec): readonly Problem[] {
  const message = OF_ALL_NODES_MESSAGE;
  return SETTINGS_OF_ALL_NODES.filter((field) => spec[field] !== undefined).map((field) => ({
    ...{ path: `spec.${field}`, value: spec[field], message },
  }));
}

export const PROBE_PORT_MESSAGE = `is the port at which node agents answer probes (${PROBE_PORT}); use another one, such as 8472`;

function ofProbes({ vxlanPort }: NodeAgentConfigurationSpec): readonly Problem[] {
  if (vxlanPort !== PROBE_PORT) return [];
  return [{ path: "spec.vxlanPort", value: vxlanPort, message: PROBE_PORT_MESSAGE }];
}

export type NodeAgentSettings = Required<NodeAgentConfigurationSpec>;

const TCP = (...ports: readonly number[]) => ports.map((number) => ({ protocol: "TCP" as const, port: number }));
const UDP = (...ports: readonly number[]) => ports.map((number) => ({ protocol: "UDP" as const, port: number }));

const DEFAULTS: NodeAgentSettings = {
  bgp: "Enabled",
  defaultEndpointToHostAction: "Accept",
  denyAction: "Drop",
  // SSH, BGP, etcd, the API server: a wrong policy must not lock the operator out of a host.
  failsafeInboundHostPorts: [...TCP(22, 179, 2379, 2380, 5473, 6443, 6666, 6667), ...UDP(68)],
  failsafeOutboundHostPorts: [...TCP(179, 2379, 2380, 5473, 6443, 6666, 6667), ...UDP(53, 67)],
  flowDeniedPerSecond: 10,
  flowHistoryAge: "24h",
  flowHistoryMegabytes: 100,
  flowLogFile: NO_FILE,
  flows: "Disabled",
  flowsPerSecond: 500,
  healthEnabled: true,
  healthHost: "localhost",
  healthPort: 9099,
  interfacePrefix: identity.interfacePrefix,
  ipv4AddressDetection: "first-found",
  ipv6AddressDetection: "first-found",
  namespacePolicyAddresses: 500_000,
  namespacePolicyLists: 4_000,
  namespacePolicyRules: 40_000,
  openConnections: "Keep",
  prometheusMetricsEnabled: false,
  prometheusMetricsHost: "",
  prometheusMetricsPort: 9091,
  routing: "Enabled",
  tablesRefreshInterval: "180s",
  vxlanChecksumOffload: "Auto",
  vxlanPort: 4789,
  vxlanVNI: 4096,
};

/** The names of the records that the settings of a node follow from. */
export function configurationNames(node: string): readonly string[] {
  return [OF_ALL_NODES, `${OF_ONE_NODE}${node}`];
}

/** Each field as `node.NAME` sets it, otherwise `default`, otherwise the built-in value. */
export function nodeAgentSettings(configurations: Iterable<NodeAgentConfiguration>, node: string): NodeAgentSettings {
  const byName = new Map(Array.from(configurations, (each) => [each.metadata.name, each.spec]));
  return { ...DEFAULTS, ...byName.get(OF_ALL_NODES), ...byName.get(`${OF_ONE_NODE}${node}`) };
}
