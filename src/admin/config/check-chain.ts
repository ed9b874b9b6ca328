/**
 * Checks the plugins of a network list together: their order, their capabilities, and the options of the plugins that
 * are part of this product.
 *
 * Options are decoded by the plugins' own decoders, so what is reported here is what a call would refuse. Pure.
 */
import { decodeBandwidth } from "../../chained/bandwidth/bandwidth.ts";
import { decodeOptions } from "../../chained/portmap/options.ts";
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { type CniVersion, NEWEST_VERSION } from "../../cni/version.ts";
import { capabilityRemedy, POD_ANNOTATIONS } from "../../config/capabilities.ts";
import { decodeNetworkConfig } from "../../config/decode.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import { type ConfigPath, shownValue } from "../../config/problem.ts";
import { PluginError } from "../../errors.ts";
import { identity, ORCHESTRATOR_NAMES } from "../../identity.ts";
import { decodeHostLocal } from "../../ipam/hostlocal/config.ts";
import { podCidrPlaces, withExampleRanges } from "../../ipam/hostlocal/pod-cidr.ts";
import { readLogSettings } from "../../log/log-settings.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { redact } from "../../redaction.ts";
import { type ConfigFinding, error, note, warning } from "./finding.ts";

/** A plugin of the list, and its place in the file. */
interface Placed {
  readonly config: JsonObject;
  readonly type: string;
  readonly index: number;
  readonly place: ConfigPath;
}

/** Plugins that change an interface that another plugin has created. */
const CHAINED: ReadonlySet<string> = new Set(["portmap", "bandwidth", "tuning", "firewall", "sbr", "vrf"]);

export interface Chain {
  readonly entries: readonly unknown[];
  /** `undefined`: a list without a known version, which is reported elsewhere. */
  readonly cniVersion: CniVersion | undefined;
  /** The place of an entry in the file; a single config has none. */
  placeOf(index: number): ConfigPath;
}

export function checkChain({ entries, cniVersion, placeOf }: Chain): readonly ConfigFinding[] {
  const placed = entries.flatMap((config, index): Placed[] => {
    if (!isJsonObject(config) || typeof config["type"] !== "string") return [];
    return [{ config, type: config["type"], index, place: placeOf(index) }];
  });
  return placed.flatMap((entry) => [
    ...checkOrder(entry, placed),
    ...checkOptions(entry),
    ...checkAnnotations(entry, placed),
    ...checkLogOptions(entry),
    ...checkOwnCapabilities(entry),
    ...checkHostLocal(entry, cniVersion ?? NEWEST_VERSION),
    ...checkType(entry),
    ...checkIpamType(entry),
  ]);
}

function checkOrder({ type, index, place }: Placed, chain: readonly Placed[]): readonly ConfigFinding[] {
  const path = [...place, "type"];
  if (CHAINED.has(type) && index === 0) {
    const creator = chain.find((entry) => !CHAINED.has(entry.type));
    const fix =
      creator === undefined
        ? `write a list of plugins that begins with "${identity.product}"`
        : `move it after ${shownValue(creator.type)}`;
    return [error(path, `"${type}" must follow the plugin that creates the interface, in a list of plugins: ${fix}`)];
  }
  if (type === identity.product && index > 0) {
    const state = `"${type}" creates the interface and does not use the result of a previous plugin`;
    return [error(path, `${state}: make it the first plugin of the list, and the only one of its type`)];
  }
  return [];
}

const PORTMAP_OPTIONS = [
  "snat",
  "masqAll",
  "backend",
  "markMasqBit",
  "externalSetMarkChain",
  "conditionsV4",
  "conditionsV6",
];
const DIRECTIONS = ["ingress", "egress"];

function checkOptions(entry: Placed): readonly ConfigFinding[] {
  const { type, config, place } = entry;
  switch (type) {
    case "portmap":
      return [
        ...PORTMAP_OPTIONS.flatMap((name) =>
          problemOf(() => void decodeOptions(only(config, [name])), [...place, name]),
        ),
        ...missingCapability(entry, "portMappings", "the runtime passes no host ports to the plugin"),
      ];
    case "bandwidth":
      return [
        ...["shapedSubnets", "unshapedSubnets"].flatMap((name) =>
          problemOf(() => void decodeBandwidth(only(config, [name])), [...place, name]),
        ),
        ...DIRECTIONS.flatMap((direction) => {
          const names = [`${direction}Rate`, `${direction}Burst`];
          const given = names.find((name) => name in config) ?? names[0] ?? "";
          return problemOf(() => void decodeBandwidth(only(config, names)), [...place, given]);
        }),
        ...(hasRates(config)
          ? []
          : missingCapability(
              entry,
              "bandwidth",
              "the runtime passes no rates to the plugin, and the config has none",
            )),
      ];
    default:
      return [];
  }
}

/** Our own plugin's are decoded with the rest of its config. */
function checkLogOptions({ type, config, place }: Placed): readonly ConfigFinding[] {
  if (type !== "portmap" && type !== "bandwidth") return [];
  return readLogSettings(config).problems.map(({ field, message }) => warning([...place, field], message));
}

/** A runtime that declares them to our plugin would have its requests refused. */
function checkOwnCapabilities({ type, config, place }: Placed): readonly ConfigFinding[] {
  const { capabilities, ipam } = config;
  if (type !== identity.product || !isJsonObject(capabilities)) return [];
  const ipamType = isJsonObject(ipam) ? String(ipam["type"]) : "";
  return Object.keys(capabilities).flatMap((name) => {
    const remedy = capabilities[name] === true ? capabilityRemedy(name, ipamType) : undefined;
    const state = `"${type}" does not support the capability ${shownValue(name)}, and refuses an ADD that uses it`;
    return remedy === undefined ? [] : [warning([...place, "capabilities", name], `${state}: ${remedy}`)];
  });
}

function missingCapability({ config, place }: Placed, name: string, state: string): readonly ConfigFinding[] {
  const capabilities = config["capabilities"];
  if (isJsonObject(capabilities) && capabilities[name] === true) return [];
  return [warning([...place, "capabilities"], `${state}: add "capabilities": { "${name}": true }`)];
}

/** Runtimes read the annotations under one name only; under the other they reach the plugin as they are. */
function checkAnnotations({ type, config, place }: Placed, chain: readonly Placed[]): readonly ConfigFinding[] {
  const capabilities = isJsonObject(config["capabilities"]) ? config["capabilities"] : {};
  const isOnOrchestrator = chain.some((entry) => isJsonObject(entry.config["kubernetes"]));
  if (type !== "bandwidth" || !isOnOrchestrator || hasRates(config)) return [];
  if (capabilities["bandwidth"] !== true || capabilities[POD_ANNOTATIONS] === true) return [];
  const state = `annotations "${ORCHESTRATOR_NAMES[0]}.io/…-bandwidth" of pods have no effect`;
  return [note([...place, "capabilities"], `${state}: add "capabilities": { "${POD_ANNOTATIONS}": true }`)];
}

function hasRates(config: JsonObject): boolean {
  const names = Object.keys(config).map((name) => name.toLowerCase());
  return DIRECTIONS.some((direction) => names.includes(`${direction}rate`));
}

function checkHostLocal({ config, place }: Placed, cniVersion: CniVersion): readonly ConfigFinding[] {
  const ipam = config["ipam"];
  if (!isJsonObject(ipam) || ipam["type"] !== "host-local") return [];
  const capabilities = config["capabilities"];
  const isFromRuntime = isJsonObject(capabilities) && capabilities["ipRanges"] === true;
  if (isFromRuntime && ipam["ranges"] === undefined && ipam["subnet"] === undefined) return [];
  const isOwn = config["type"] === identity.product;
  const checked = isOwn ? withExampleRanges(config) : config;
  return [
    ...problemOf(
      () => void decodeHostLocal({ config: checked, cniVersion, networkName: "network", args: "" }),
      [...place, "ipam"],
    ),
    ...(isOwn ? checkPodCidrs({ name: "network", cniVersion, ...config }, place) : []),
  ];
}

/** The range of the Node is read from the orchestrator's API. */
function checkPodCidrs(config: JsonObject, place: ConfigPath): readonly ConfigFinding[] {
  const [found] = podCidrPlaces(config);
  const decoded = decodeNetworkConfig(config);
  if (found === undefined || !decoded.ok || kubeAccess(decoded.config) !== undefined) return [];
  const state = `"${found.place}" is ${shownValue(found.word)}, but the config does not give access to the Kubernetes API`;
  return [error([...place, "ipam"], `${state}: set "kubernetes.kubeconfig"`)];
}

const OTHER_PLUGINS = ["bridge", "ptp", "macvlan", "ipvlan", "vlan", "host-device", "loopback", "dummy", "tap"];
const OWN_TYPES = [identity.product, "portmap", "bandwidth"];

function checkType({ type, place }: Placed): readonly ConfigFinding[] {
  if (OWN_TYPES.includes(type) || type === "") return [];
  const path = [...place, "type"];
  if (CHAINED.has(type) || OTHER_PLUGINS.includes(type)) {
    return [note(path, `${shownValue(type)} is a plugin of another project: its fields are not checked`)];
  }
  return [unknownType(path, `${shownValue(type)} is not a known plugin`, nearestName(type, OWN_TYPES))];
}

const OWN_IPAM_TYPES = [identity.ipamType, "host-local"];
const OTHER_IPAM_TYPES = ["dhcp", "static"];

function checkIpamType({ type: plugin, config, place }: Placed): readonly ConfigFinding[] {
  const ipam = config["ipam"];
  if (plugin !== identity.product || !isJsonObject(ipam)) return [];
  const type = ipam["type"];
  if (typeof type !== "string" || type === "" || OWN_IPAM_TYPES.includes(type)) return [];
  const path = [...place, "ipam", "type"];
  if (OTHER_IPAM_TYPES.includes(type)) {
    return [note(path, `${shownValue(type)} is an IPAM plugin of another project: its fields are not checked`)];
  }
  return [unknownType(path, `${shownValue(type)} is not a known IPAM plugin`, nearestName(type, OWN_IPAM_TYPES))];
}

function unknownType(path: ConfigPath, state: string, meant: string | undefined): ConfigFinding {
  const message = `${state}: its fields are not checked`;
  return meant === undefined ? note(path, message) : warning(path, `${message}; did you mean "${meant}"?`);
}

/** The config with only these fields, in any case: they are decoded one by one, so that each problem has its own place. */
function only(config: JsonObject, names: readonly string[]): JsonObject {
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(config).filter(([name]) => wanted.has(name.toLowerCase())));
}

function problemOf(decode: () => void, path: ConfigPath): readonly ConfigFinding[] {
  try {
    decode();
    return [];
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    const message = redact(failure.message.replace(/^Cannot (use|read) the network config: /, ""));
    return [error(fieldIn(message, path), message)];
  }
}

/** Decoders of nested fields name the field at the beginning: `"ipam.ranges[0]" is …`. */
function fieldIn(message: string, path: ConfigPath): ConfigPath {
  const field = /^"(ipam(?:\.\w+|\[\d+\])+)"/.exec(message)?.[1];
  if (field === undefined || path.at(-1) !== "ipam") return path;
  const steps = field.match(/\w+/g) ?? [];
  return [...path.slice(0, -1), ...steps.map((step) => (/^\d+$/.test(step) ? Number(step) : step))];
}
