/**
 * The MTU that pods get if the network config sets none: that of the links to other hosts, less what the tunnels of the
 * pools add to a packet. All pools count: a pod may send to any of them. Pure.
 */
import { parsePrefix } from "../../ip/prefix.ts";
import type { IPPool } from "../../model/ip-pool.ts";

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

type Tunnels = "cidr" | "ipipMode" | "vxlanMode";

function overheadOf({ cidr, ipipMode, vxlanMode }: Pick<IPPool["spec"], Tunnels>): number {
  const family = parsePrefix(cidr)?.network.family ?? 4;
  return Math.max(ipipMode === "Never" ? 0 : OVERHEAD.ipip, vxlanMode === "Never" ? 0 : OVERHEAD.vxlan[family]);
}
