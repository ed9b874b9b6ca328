/** Matches packets of tunnels between hosts, before they are unpacked. Pure. */
import type { Expression } from "./expression.ts";
import { matchPorts, matchProtocol } from "./match.ts";

const PROTOCOL = { ipip: 4, udp: 17 } as const;
/** The port of VXLAN that is assigned to it. */
export const VXLAN_PORT = 4789;

export const TUNNEL_KINDS = ["vxlan", "ipip"] as const;
export type TunnelKind = (typeof TUNNEL_KINDS)[number];

/** Of any family. `vxlanPort`: the one that the nodes use. */
export function matchTunnel(kind: TunnelKind, vxlanPort: number): readonly Expression[] {
  if (kind === "ipip") return matchProtocol(PROTOCOL.ipip);
  return [...matchProtocol(PROTOCOL.udp), ...matchPorts("destination", vxlanPort)];
}
