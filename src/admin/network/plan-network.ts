/**
 * What a network of containers consists of: a pool for each of its subnets, a profile if it is isolated, and the network list
 * that a runtime reads. What the list says about the host is that of the network which is installed already, so that all
 * networks of a host share one datastore and one log; the first one is as the package brings it. Pure.
 */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import {
  BANDWIDTH_ENTRY,
  CNI_VERSION,
  CNI_VERSIONS,
  installedNetworkList,
} from "../../config/installed-network-list.ts";
import { entriesOf, ownEntryOf } from "../../config/own-entry.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { addressBits, type Family } from "../../ip/address.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";
import { isolatedProfileSpec } from "../../model/network-profile.ts";

export interface WantedNetwork {
  readonly name: string;
  /** Each becomes a pool of the network alone; at most one of each family. */
  readonly subnets: readonly Prefix[];
  /** Pools that exist, by name. */
  readonly pools: readonly NamedPool[];
  /** Containers of other networks do not reach those of this one. */
  readonly isIsolated: boolean;
  /** Of every container of the network. */
  readonly labels: Readonly<Record<string, string>>;
  /** Bits per second, in each direction. */
  readonly rate?: number;
}

interface NamedPool {
  readonly name: string;
  readonly family: Family;
}

export interface NetworkPlan {
  /** The documents of its pools and its profile. */
  readonly resources: readonly JsonObject[];
  readonly list: JsonObject;
}

/** On what was made for a network, and ends with it. */
export const OF_NETWORK_LABEL = `${identity.labelPrefix}of-network`;

/** As that of any pool, unless the subnet is smaller. */
const BLOCK_HOST_BITS = 6;

/** A tenth of a second at the full rate, and never less than some large packets. */
const BURSTS_PER_SECOND = 10;
const SMALLEST_BURST = 800_000;

/** `installed`: the network list of this host that runs our plugin; `undefined` if there is none yet. */
export function planNetwork(wanted: WantedNetwork, installed: JsonObject | undefined): NetworkPlan {
  const { name, subnets, isIsolated } = wanted;
  const made = subnets.map(({ network: { family } }) => ({ family, name: poolNameOf(name, family) }));
  const pools = subnets.map((subnet) => poolOf(name, subnet));
  const entries = entriesOf(installed ?? installedNetworkList("embedded", identity));
  const plugins = entries.map((entry) => ownEntryOf(entry) ?? entry).map((entry) => entryFor(entry, wanted, made));
  const hasShaping = plugins.some((entry) => isJsonObject(entry) && entry["type"] === BANDWIDTH_ENTRY["type"]);
  return {
    resources: [...pools, ...(isIsolated ? [document("Profile", name, name, isolatedProfileSpec(name))] : [])],
    list: {
      name,
      cniVersion: CNI_VERSION,
      cniVersions: CNI_VERSIONS,
      plugins: hasShaping || wanted.rate === undefined ? plugins : [...plugins, shapedEntry(BANDWIDTH_ENTRY, wanted)],
    },
  };
}

function poolNameOf(network: string, family: Family): string {
  return family === 4 ? network : `${network}-ipv6`;
}

function poolOf(network: string, subnet: Prefix): JsonObject {
  const { family } = subnet.network;
  return document("IPPool", poolNameOf(network, family), network, {
    cidr: formatPrefix(subnet),
    blockSize: Math.max(subnet.length, addressBits(family) - BLOCK_HOST_BITS),
    natOutgoing: true,
    // Other networks take none of its addresses: only a pool that a network names need not select the node.
    nodeSelector: "!all()",
  });
}

function document(kind: string, name: string, network: string, spec: object): JsonObject {
  return { apiVersion: API_VERSION, kind, metadata: { name, labels: { [OF_NETWORK_LABEL]: network } }, spec };
}

function entryFor(entry: unknown, wanted: WantedNetwork, made: readonly NamedPool[]): unknown {
  if (!isJsonObject(entry)) return entry;
  if (entry["type"] === identity.product) return ownEntry(entry, wanted, made);
  return entry["type"] === BANDWIDTH_ENTRY["type"] ? shapedEntry(entry, wanted) : entry;
}

/** Fields of the installed entry that are about its network, or that belong to the list. */
const OF_ANOTHER_NETWORK: ReadonlySet<string> = new Set(["ipam", "labels", "name", "cniVersion", "cniVersions"]);

function ownEntry(
  installed: JsonObject,
  { pools, labels, isIsolated }: WantedNetwork,
  made: readonly NamedPool[],
): JsonObject {
  const ofHost = Object.entries(installed).filter(([field]) => !OF_ANOTHER_NETWORK.has(field));
  const { policy } = installed;
  const all = [...made, ...pools];
  return {
    ...Object.fromEntries(ofHost),
    ipam: { type: identity.ipamType, ...familyFields(4, all), ...familyFields(6, all) },
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    // The profile counts before there is any policy, and no container starts while nothing would keep others out.
    ...(isIsolated ? { policy: { ...(isJsonObject(policy) ? policy : {}), type: POLICY_TYPE } } : {}),
  };
}

/** Without any pool named, addresses are those of the plugin's own choice. */
function familyFields(family: Family, all: readonly NamedPool[]): JsonObject {
  if (all.length === 0) return {};
  const names = all.filter((each) => each.family === family).map(({ name }) => name);
  const assign = String(names.length > 0);
  return { [`assign_ipv${family}`]: assign, ...(names.length === 0 ? {} : { [`ipv${family}_pools`]: names }) };
}

const POLICY_TYPE = "k8s";

const RATES = ["ingressRate", "ingressBurst", "egressRate", "egressBurst"];

function shapedEntry(entry: JsonObject, { rate }: WantedNetwork): JsonObject {
  const unshaped = Object.fromEntries(Object.entries(entry).filter(([field]) => !RATES.includes(field)));
  if (rate === undefined) return unshaped;
  const burst = Math.max(Math.round(rate / BURSTS_PER_SECOND), SMALLEST_BURST);
  return { ...unshaped, ingressRate: rate, ingressBurst: burst, egressRate: rate, egressBurst: burst };
}
