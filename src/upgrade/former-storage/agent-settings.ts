/**
 * FelixConfiguration becomes NodeAgentConfiguration: fields that both have are kept, the others are listed. Pure.
 */
import type { GenericSchema } from "valibot";
import type { Fields } from "../../kube/objects.ts";
import { NODE_AGENT_CONFIGURATION } from "../../model/kinds.ts";
import { SETTINGS_OF_ALL_NODES } from "../../model/node-agent-configuration.ts";
import { formatProblems, type Problem } from "../../model/problem.ts";
import { decodeShape, findUnknownFields, isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { FORMER_AGENT_CONFIGURATION, isSpoofingAllowed, SOURCE_SPOOFING } from "../former-names.ts";

/** What the kernel can do, if it is not found out. */
const FEATURES = "featureDetectOverride";

export interface AgentSettings {
  readonly spec: Fields;
  readonly notes: readonly string[];
  /** What cannot be expressed, and would open hosts more widely, or cut nodes off, if it were left out. */
  readonly problems: readonly string[];
}

/** Fields with another name; the first that is set counts. */
const RENAMED: Readonly<Record<string, readonly string[]>> = {
  denyAction: ["nftablesFilterDenyAction", "iptablesFilterDenyAction"],
  tablesRefreshInterval: ["nftablesRefreshInterval", "iptablesRefreshInterval"],
};
/** Values that mean what this release does anyway; several of them are in every cluster, since former agents wrote them. */
const WITHOUT_COUNTERPART: Readonly<Record<string, readonly unknown[]>> = {
  awsSrcDstCheck: ["DoNothing"],
  bpfEnabled: [false],
  // Only the switch of the network config, which is kept, decides here.
  floatingIPs: ["Enabled", "Disabled"],
  genericXDPEnabled: [false],
  // Tunnels follow from the pools.
  ipipEnabled: [true],
  ipv6Support: [true, false],
  logFilePath: ["none"],
  logSeverityFile: ["none", ""],
  logSeverityScreen: ["Info"],
  logSeveritySys: ["none", ""],
  // Agents of this release serve sidecars without it.
  policySyncPathPrefix: ["/var/run/nodeagent", ""],
  reportingInterval: ["0s", "0"],
  usageReportingEnabled: [false],
  vxlanEnabled: [true],
  wireguardEnabled: [false],
  wireguardEnabledV6: [false],
};
/** Without it, traffic would be cut or readable by others: the same as for the variables of the node agent. */
const IRREPLACEABLE: Readonly<Record<string, string>> = {
  bpfEnabled:
    "services are not handled by the agent any more: install kube-proxy first, then set bpfEnabled to false, or, if the operator " +
    'or the chart has installed the cluster, linuxDataplane of the Installation to "Iptables", since the operator writes the ' +
    "field. That takes effect at once, in the running cluster of the earlier release",
  wireguardEnabled:
    "traffic between nodes would not be encrypted any more: set wireguardEnabled to false to accept that",
  wireguardEnabledV6:
    "traffic between nodes would not be encrypted any more: set wireguardEnabledV6 to false to accept that",
};
/** Settings of a dataplane that is off. */
const OF_BPF = /^bpf[A-Z]/;
/** Without one of their fields an entry opens more, and without all entries those of the default are open. */
const FAILSAFE: readonly string[] = ["failsafeInboundHostPorts", "failsafeOutboundHostPorts"];
/** Of an entry of them. Former programs write it, empty, into every entry: then it means every network. */
const NETWORK = "net";
/** Earlier releases accepted these values in capitals, too. */
const WORDS = ["defaultEndpointToHostAction", "denyAction"];

export function agentSettings(name: string, former: unknown): AgentSettings {
  const { [SOURCE_SPOOFING.field]: spoofing, [FEATURES]: features, ...given }: Fields = isObject(former) ? former : {};
  const { vxlanChecksumOffload, others } = translateFeatures(features);
  const renamed: Fields = {
    ...withPresentNames(name === "default" ? given : without(given, SETTINGS_OF_ALL_NODES)),
    ...(vxlanChecksumOffload && { vxlanChecksumOffload }),
    ...(others === "" ? {} : { [FEATURES]: others }),
  };
  const schema = NODE_AGENT_CONFIGURATION.codec.specSchema;
  const unknown = findUnknownFields(schema, renamed)
    .map(({ path }) => path)
    .filter((path) => !isWithoutEffect(path, renamed));
  const irreplaceable = unknown.filter((path) => IRREPLACEABLE[path] !== undefined && renamed[path] === true);
  const wrong = problemsOf(schema, renamed);
  const known = decodeShape(
    schema,
    without(
      renamed,
      wrong.map(({ path }) => topField(path)),
    ),
  );
  return {
    // Without the unknown ones, also those within known ones.
    spec: known.ok && isObject(known.value) ? known.value : {},
    notes: [
      ...spoofingNotes(name, spoofing),
      ...ofAllNodesNotes(name, given),
      ...listed(
        name,
        "this release does not have",
        unknown
          .filter((path) => !isFailsafe(path) && !irreplaceable.includes(path))
          .toSorted()
          .join(", "),
      ),
      ...listed(name, "this release does not accept", formatProblems(wrong.filter(({ path }) => !isNeeded(path)))),
    ],
    problems: [
      ...irreplaceable.map((path) => `${quoted(path)} is true: ${IRREPLACEABLE[path]}`),
      ...unknown
        .filter(isFailsafe)
        .map(
          (path) =>
            `this release does not have "${path}", and without it the entry would open the port more widely; remove the entry, or the field from it`,
        ),
      ...wrong.filter(({ path }) => isNeeded(path)).map((problem) => formatProblems([problem])),
    ],
  };
}

function isWithoutEffect(path: string, given: Fields): boolean {
  const field = topField(path);
  if (OF_BPF.test(field) && field !== "bpfEnabled") return given["bpfEnabled"] !== true;
  return WITHOUT_COUNTERPART[field]?.includes(given[field]) === true;
}

/** The default is carried over to the network config; `Disabled` is what this release does. */
function spoofingNotes(name: string, spoofing: unknown): readonly string[] {
  if (!isSpoofingAllowed(spoofing)) return [];
  const what = `${FORMER_AGENT_CONFIGURATION.kind} ${quoted(name)}: ${SOURCE_SPOOFING.field} ${quoted(spoofing)}`;
  if (name === "default") {
    return [`${what} becomes the switch allowedSourcePrefixes; addresses of pools and nodes are excluded all the same`];
  }
  return [`${what} is not copied: the switch allowedSourcePrefixes is one for all nodes`];
}

/** One of two nodes with different ones would be cut off. */
function ofAllNodesNotes(name: string, given: Fields): readonly string[] {
  if (name === "default") return [];
  return SETTINGS_OF_ALL_NODES.filter((field) => given[field] !== undefined && given[field] !== null).map(
    (field) =>
      `${FORMER_AGENT_CONFIGURATION.kind} ${quoted(name)}: ${field} ${quoted(given[field])} is not copied: it is the same on all nodes`,
  );
}

/** `ChecksumOffloadBroken=true,Other=false`: the first has a counterpart. `others`: the rest of it. */
export function translateFeatures(text: unknown): {
  readonly vxlanChecksumOffload?: "On" | "Off";
  readonly others: string;
} {
  const entries = typeof text === "string" ? text.split(",").map((each) => each.trim()) : [];
  const offload = entries.map((each) => /^ChecksumOffloadBroken\s*=\s*(true|false)$/i.exec(each)?.[1]?.toLowerCase());
  const others = entries.filter((each, index) => each !== "" && offload[index] === undefined).join(",");
  const isBroken = offload.findLast((each) => each !== undefined);
  if (isBroken === undefined) return { others };
  return { vxlanChecksumOffload: isBroken === "true" ? "Off" : "On", others };
}

function listed(name: string, reason: string, fields: string): readonly string[] {
  if (fields === "") return [];
  return [`${FORMER_AGENT_CONFIGURATION.kind} ${quoted(name)}: fields that ${reason} are not copied: ${fields}`];
}

function withPresentNames(given: Fields): Fields {
  const names = new Map(Object.entries(RENAMED).flatMap(([now, before]) => before.map((each) => [each, now] as const)));
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) if (!names.has(name) && value !== null) fields[name] = value;
  for (const [now, before] of Object.entries(RENAMED)) {
    const set = before.find((each) => given[each] !== undefined && given[each] !== null);
    if (set !== undefined) fields[now] ??= given[set];
  }
  for (const name of FAILSAFE) if (Array.isArray(fields[name])) fields[name] = fields[name].map(withoutEmptyNetwork);
  for (const name of WORDS) {
    const word = fields[name];
    if (typeof word === "string") fields[name] = `${word.slice(0, 1).toUpperCase()}${word.slice(1).toLowerCase()}`;
  }
  return fields;
}

function withoutEmptyNetwork(entry: unknown): unknown {
  return isObject(entry) && entry[NETWORK] === "" ? without(entry, [NETWORK]) : entry;
}

function problemsOf(schema: GenericSchema, spec: Fields): readonly Problem[] {
  const decoded = decodeShape(schema, spec);
  return decoded.ok ? [] : decoded.problems;
}

/** `failsafeInboundHostPorts[0].port` is about `failsafeInboundHostPorts`. */
function topField(path: string): string {
  return path.split(/[.[]/, 1)[0] ?? path;
}

function isFailsafe(path: string): boolean {
  return FAILSAFE.includes(topField(path));
}

/** With another value hosts would be open more widely, or nodes of the two releases would not reach each other's pods. */
function isNeeded(path: string): boolean {
  return isFailsafe(path) || SETTINGS_OF_ALL_NODES.some((field) => field === topField(path));
}

function without(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** Settings apply to all nodes, or to one. */
export function isOfNodes(name: string): boolean {
  return name === "default" || name.startsWith("node.");
}
