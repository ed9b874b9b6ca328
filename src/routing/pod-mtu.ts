/**
 * The MTU that pods get if the network config sets none: that of the links to other hosts, less what the tunnels of the
 * pools add to a packet. All pools count: a pod may send to any of them. Pure.
 */
import { identity } from "../identity.ts";
import { isSameAddress } from "../ip/address.ts";
import { parsePrefix } from "../ip/prefix.ts";
import type { HostAddress } from "../linux/rtnetlink/host-addresses.ts";
import type { IPPool } from "../model/ip-pool.ts";
import type { Node } from "../model/node.ts";
import { recordedAddresses } from "./node-addresses.ts";

/** Where plugins look for it. */
export const POD_MTU_FILE = `${identity.stateDirectory}/mtu`;

/** In bytes. The outer header of VXLAN has the family of the pool. */
const OVERHEAD = { ipip: 20, vxlan: { 4: 50, 6: 70 } } as const;
const SMALLEST = 68;
const LARGEST = 65_535;

/** `undefined` if nothing is known of the links. */
export function podMtu(
  uplink: number | undefined,
  pools: readonly Pick<IPPool["spec"], Tunnels>[],
): number | undefined {
  if (uplink === undefined) return undefined;
  const mtu = uplink - Math.max(0, ...pools.map(overheadOf));
  return Math.min(LARGEST, Math.max(SMALLEST, mtu));
}

/** The smallest MTU of the links that have the addresses of the node; `undefined` if no link has one. */
export function nodeLinkMtu(addresses: readonly HostAddress[], bgp: Node["spec"]["bgp"]): number | undefined {
  const recorded = recordedAddresses(bgp);
  const mtus = addresses
    .filter(({ address }) => recorded.some((each) => isSameAddress(each, address)))
    .map(({ link }) => link.mtu);
  return mtus.length === 0 ? undefined : Math.min(...mtus);
}

type Tunnels = "cidr" | "ipipMode" | "vxlanMode";

function overheadOf({ cidr, ipipMode, vxlanMode }: Pick<IPPool["spec"], Tunnels>): number {
  const family = parsePrefix(cidr)?.network.family ?? 4;
  return Math.max(ipipMode === "Never" ? 0 : OVERHEAD.ipip, vxlanMode === "Never" ? 0 : OVERHEAD.vxlan[family]);
}
