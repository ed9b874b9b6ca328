/**
 * `usePodCidr` and `usePodCidrIPv6` in place of a subnet: the range that the
 * orchestrator has assigned to the Node (`spec.podCIDRs`). host-local itself does not
 * know these words: the network plugin replaces them before host-local reads the
 * config. Pure.
 */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { PluginError } from "../../errors.ts";
import type { Family } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import { quoted } from "../../quote.ts";

/** In lower case: they are recognized in any case. */
const WORDS: ReadonlyMap<string, Family> = new Map([
  ["usepodcidr", 4],
  ["usepodcidripv6", 6],
]);

/** Fields of a range that must be inside its subnet. */
const BOUNDS = ["rangestart", "rangeend", "gateway"];

/** A subnet of the config that is one of the words. */
export interface PodCidrPlace {
  /** `ipam.ranges[0][0].subnet` */
  readonly place: string;
  /** As it is written. */
  readonly word: string;
  readonly family: Family;
  readonly range: JsonObject;
}

export interface NodeRanges {
  readonly node: string;
  readonly podCidrs: readonly string[];
}

export function podCidrPlaces(config: JsonObject): readonly PodCidrPlace[] {
  const places: PodCidrPlace[] = [];
  mapRanges(config, (found) => {
    places.push(found);
    return found.range;
  });
  return places;
}

/** The config with the ranges of the Node; throws if it has none of a family that is needed. */
export function withPodCidrs(config: JsonObject, ranges: NodeRanges): JsonObject {
  return mapRanges(config, (found) => withSubnet(found.range, podCidrFor(found, ranges)));
}

/**
 * The config with ranges that contain every address: DEL, CHECK and GC depend on what
 * is reserved, not on the ranges, and must work without the orchestrator's API.
 */
export function withAnyAddress(config: JsonObject): JsonObject {
  const ranges = [[{ subnet: "0.0.0.0/0" }], [{ subnet: "::/0" }]];
  const withRanges = mapMember(config, "ipam", (ipam) =>
    isJsonObject(ipam) ? { ...without(ipam, ["ranges", "subnet", ...BOUNDS]), ranges } : ipam,
  );
  return mapMember(withRanges, "runtimeconfig", (runtime) =>
    isJsonObject(runtime) ? without(runtime, ["ipranges"]) : runtime,
  );
}

/** The same config for a check of everything that does not depend on the Node. */
export function withExampleRanges(config: JsonObject): JsonObject {
  return mapRanges(config, ({ family, range }) => {
    const names = Object.keys(range).map((name) => name.toLowerCase());
    if (names.includes("rangestart") && names.includes("rangeend")) {
      return withSubnet(range, family === 4 ? "0.0.0.0/0" : "::/0");
    }
    const subnet = family === 4 ? "192.0.2.0/24" : "2001:db8::/64";
    return withSubnet(without(range, BOUNDS), subnet);
  });
}

function podCidrFor({ place, word, family }: PodCidrPlace, { node, podCidrs }: NodeRanges): string {
  const ofFamily = podCidrs.filter((text) => parseInterfaceAddress(text)?.address.family === family);
  const [found, ...others] = ofFamily;
  if (found !== undefined && others.length === 0) return found;
  const existing = podCidrs.length === 0 ? "is empty" : `contains ${podCidrs.map(quoted).join(", ")}`;
  const rule = found === undefined ? `no IPv${family} range` : `more than one IPv${family} range`;
  throw new PluginError(
    podCidrs.length === 0 ? "try-again-later" : "config-invalid",
    `Cannot use "${place}" ${quoted(word)}: Node "${node}" has ${rule}: its "spec.podCIDRs" ${existing}`,
    { details: remedy(found, family) },
  );
}

function remedy(found: string | undefined, family: Family): string {
  if (found !== undefined) return `write one of the ranges instead, for example "subnet": "${found}"`;
  const range = family === 4 ? "10.244.0.0/16" : "fd00:10:244::/48";
  return (
    `let the cluster assign ranges to nodes (kube-controller-manager --allocate-node-cidrs --cluster-cidr=${range}), ` +
    "or write the subnet of this node instead"
  );
}

/** Replaces every range whose subnet is one of the words; fields match in any case. */
function mapRanges(config: JsonObject, replace: (found: PodCidrPlace) => JsonObject): JsonObject {
  const mapRange = (range: unknown, place: string) => {
    if (!isJsonObject(range)) return range;
    const word = Object.entries(range).find(([name]) => name.toLowerCase() === "subnet")?.[1];
    const family = typeof word === "string" ? WORDS.get(word.toLowerCase()) : undefined;
    if (typeof word !== "string" || family === undefined) return range;
    return replace({ place: `${place}.subnet`, word, family, range });
  };
  const mapSet = (set: unknown, place: string) =>
    Array.isArray(set) ? set.map((range: unknown, index) => mapRange(range, `${place}[${index}]`)) : set;
  return mapMember(config, "ipam", (ipam) => {
    const flat = mapRange(ipam, "ipam");
    if (!isJsonObject(flat)) return flat;
    return mapMember(flat, "ranges", (ranges) =>
      Array.isArray(ranges) ? ranges.map((set: unknown, index) => mapSet(set, `ipam.ranges[${index}]`)) : ranges,
    );
  });
}

function withSubnet(range: JsonObject, subnet: string): JsonObject {
  return mapMember(range, "subnet", () => subnet);
}

/** `name` in lower case. */
function mapMember(object: JsonObject, name: string, map: (value: unknown) => unknown): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => [key, key.toLowerCase() === name ? map(value) : value]),
  );
}

/** `names` in lower case. */
function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !names.includes(key.toLowerCase())));
}
