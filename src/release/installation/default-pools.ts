/** The pools of an Installation with everything filled in that a user may leave out. Pure. */
import { formatAddress } from "../../ip/address.ts";
import {
  formatPrefix,
  isSamePrefix,
  type Prefix,
  parseInterfaceAddress,
  parsePrefix,
  prefixAround,
} from "../../ip/prefix.ts";
import { defaultBlockSize } from "../../model/block-sizes.ts";
import type { DeclaredPool, Encapsulation } from "../../model/installation/pool.ts";
import { type IPPool, poolPrefix } from "../../model/ip-pool.ts";
import type { ClusterFacts } from "./cluster-facts.ts";

/** What the defaults of pools depend on. */
export interface PoolSettings {
  readonly ipam: "Pools" | "HostLocal";
  readonly bgp: "Enabled" | "Disabled";
  readonly provider: string;
}

/** Fields whose absence means something; an IPPool has the same. */
export const OPTIONAL_FIELDS = ["namespaceSelector", "cooldownSeconds", "keepAddresses", "keepFor"] as const;
type OptionalField = (typeof OPTIONAL_FIELDS)[number];

export type CompletePool = Required<Omit<DeclaredPool, OptionalField>> & Pick<DeclaredPool, OptionalField>;

const USUAL_CIDR = "192.168.0.0/16";
/** The networks of EKS often contain 192.168.0.0/16. */
const CIDR_ON_EKS = "172.16.0.0/16";

/** `declared`: undefined if the Installation does not say which pools it wants. */
export function completePools(
  declared: readonly DeclaredPool[] | undefined,
  settings: PoolSettings,
  facts: Pick<ClusterFacts, "pools" | "platformPodCidrs">,
): readonly CompletePool[] {
  const pools = declared ?? undeclaredPools(settings, facts);
  return pools.map((pool) => completePool(pool, pools, settings, facts.pools));
}

/** Existing pools are somebody's decision: the operator then manages none. */
function undeclaredPools(
  { ipam, provider }: PoolSettings,
  { pools, platformPodCidrs }: Pick<ClusterFacts, "pools" | "platformPodCidrs">,
): readonly DeclaredPool[] {
  if (pools.length > 0) return [];
  const platform = platformPrefixes(platformPodCidrs);
  if (platform.length > 0) return platform.map((prefix) => ({ cidr: formatPrefix(prefix) }));
  // host-local assigns what the nodes have, which is not known here.
  if (ipam === "HostLocal") return [];
  return provider === "EKS" ? [{ cidr: CIDR_ON_EKS, encapsulation: "VXLAN" }] : [{ cidr: USUAL_CIDR }];
}

/** Text that is not a CIDR is not used; a platform may write an address of the network instead of the network's. */
export function platformPrefixes(cidrs: readonly string[]): readonly Prefix[] {
  return cidrs.flatMap((cidr) => {
    const read = parseInterfaceAddress(cidr.trim());
    return read === undefined ? [] : [prefixAround(read.address, read.length)];
  });
}

function completePool(
  pool: DeclaredPool,
  all: readonly DeclaredPool[],
  settings: PoolSettings,
  existing: readonly IPPool[],
): CompletePool {
  const prefix = prefixOf(pool);
  const { family } = prefix.network;
  return {
    name: defaultName(prefix, all, existing),
    encapsulation: defaultEncapsulation(family, settings),
    natOutgoing: family === 4 ? "Enabled" : "Disabled",
    nodeSelector: "all()",
    blockSize: defaultBlockSize(prefix),
    disableBGPExport: false,
    disableNewAllocations: false,
    ...pool,
    allowedUses: pool.allowedUses?.length ? pool.allowedUses : ["Workload", "Tunnel"],
  };
}

/** Many kernels have no IPIP. IPv6 networks route without tunnels; without BGP only a tunnel connects the nodes. */
function defaultEncapsulation(family: 4 | 6, { ipam, bgp }: PoolSettings): Encapsulation {
  if (ipam === "HostLocal") return "None";
  return family === 6 && bgp === "Enabled" ? "None" : "VXLANCrossSubnet";
}

function defaultName(prefix: Prefix, all: readonly DeclaredPool[], existing: readonly IPPool[]): string {
  const same = existing.find((pool) => isSamePrefix(poolPrefix(pool), prefix));
  if (same !== undefined) return same.metadata.name;
  const { family } = prefix.network;
  const isOnly = all.filter((pool) => prefixOf(pool).network.family === family).length === 1;
  const usual = `default-ipv${family}-ippool`;
  const isTaken = [...existing.map(({ metadata }) => metadata.name), ...all.map(({ name }) => name)].includes(usual);
  return isOnly && !isTaken ? usual : nameFromPrefix(prefix);
}

/** `10.0.0.0-16`, `2001.0db8.0000.…-64`: every CIDR has its own. */
function nameFromPrefix({ network, length }: Prefix): string {
  const address = network.family === 4 ? formatAddress(network) : expanded(network.value);
  return `${address}-${length}`;
}

function expanded(value: bigint): string {
  const digits = value.toString(16).padStart(32, "0");
  return (digits.match(/.{4}/g) ?? []).join(".");
}

function prefixOf({ cidr }: Pick<DeclaredPool, "cidr">): Prefix {
  const prefix = parsePrefix(cidr);
  if (!prefix) throw new RangeError(`Cannot use pool CIDR "${cidr}": it was not decoded`);
  return prefix;
}
