/** The tunnel devices of the planned node, and why it cannot have one that a pool needs. Pure. */
import type { Family } from "../ip/address.ts";
import type { PoolMode, RoutedNode, RoutedPool } from "./facts.ts";
import { tunnelName } from "./next-hop.ts";
import type { PlannedTunnel, TunnelName, VxlanNumbers } from "./plan.ts";

export interface PlannedTunnels {
  readonly tunnels: ReadonlyMap<TunnelName, PlannedTunnel>;
  readonly problems: readonly string[];
}

type TunnelMode = Exclude<PoolMode["kind"], "unencapsulated">;

/** A device exists as long as there is a pool that needs it and this node has an address for it. */
export function planTunnels(
  own: RoutedNode | undefined,
  pools: readonly RoutedPool[],
  vxlan: VxlanNumbers,
): PlannedTunnels {
  const tunnels = new Map<TunnelName, PlannedTunnel>();
  const problems: string[] = [];
  for (const { name: pool, mode, prefix } of pools) {
    const { family } = prefix.network;
    const local = own?.addresses[family]?.address;
    if (local === undefined) {
      problems.push(
        `Pool "${pool}" cannot be routed: this node has no IPv${family} address (${ADDRESS_FIELD[family]})`,
      );
      continue;
    }
    if (mode.kind === "unencapsulated") continue;
    const name = tunnelName(mode.kind, family);
    const end = own && ownEnd(own, mode.kind, family);
    if (end !== undefined) tunnels.set(name, { name, local, ...end, ...(mode.kind === "vxlan" && { vxlan }) });
    else problems.push(`Pool "${pool}" has no tunnel: this node has no ${END_TITLE[name]}`);
  }
  return { tunnels, problems };
}

const ADDRESS_FIELD = { 4: "spec.bgp.ipv4Address of its Node", 6: "spec.bgp.ipv6Address of its Node" } as const;

const END_TITLE: Readonly<Record<TunnelName, string>> = {
  vxlan4: "VXLAN tunnel address (spec.ipv4VXLANTunnelAddr and spec.vxlanTunnelMACAddr of its Node)",
  vxlan6: "VXLAN tunnel address (spec.ipv6VXLANTunnelAddr and spec.vxlanTunnelMACAddrV6 of its Node)",
  ipip4: "IPIP tunnel address (spec.bgp.ipv4IPIPTunnelAddr of its Node)",
};

function ownEnd(own: RoutedNode, kind: TunnelMode, family: Family): Pick<PlannedTunnel, "address" | "mac"> | undefined {
  if (kind === "vxlan") return own.vxlan[family];
  return own.ipip && { address: own.ipip };
}
