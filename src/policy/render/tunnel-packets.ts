/** Packets of tunnels between nodes, before they are unpacked. Pure. */
import type { Expression } from "../../linux/nftables/expression.ts";
import { matchPorts, matchProtocol, verdict } from "../../linux/nftables/match.ts";
import type { DesiredRule } from "../table/desired-table.ts";

const PROTOCOL = { ipip: 4, udp: 17 } as const;
const VXLAN_PORT = 4789;

export const TUNNEL_KINDS = ["vxlan", "ipip"] as const;
export type TunnelKind = (typeof TUNNEL_KINDS)[number];

export const TUNNEL_TITLES: Readonly<Record<TunnelKind, string>> = { vxlan: "VXLAN", ipip: "IPIP" };

export function matchTunnel(kind: TunnelKind): readonly Expression[] {
  if (kind === "ipip") return matchProtocol(PROTOCOL.ipip);
  return [...matchProtocol(PROTOCOL.udp), ...matchPorts("destination", VXLAN_PORT)];
}

/** Policy judges the packets inside. Who may send to this host is decided by the guard of the tunnels, in its own table. */
export function acceptTunnels(kinds: ReadonlySet<TunnelKind>): readonly DesiredRule[] {
  return TUNNEL_KINDS.filter((kind) => kinds.has(kind)).map((kind) => ({
    expressions: [...matchTunnel(kind), { kind: "counter" }, verdict({ kind: "accept" })],
    comment: `${TUNNEL_TITLES[kind]} between nodes`,
  }));
}
