/** Packets of tunnels between nodes, before they are unpacked. Pure. */
import type { Family } from "../../ip/address.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { loadAddress, matchFamily, type Side, verdict } from "../../linux/nftables/match.ts";
import { matchTunnel, TUNNEL_KINDS, type TunnelKind } from "../../linux/nftables/tunnel-match.ts";
import type { DesiredRule } from "../table/desired-table.ts";

export const TUNNEL_TITLES: Readonly<Record<TunnelKind, string>> = { vxlan: "VXLAN", ipip: "IPIP" };

/** The addresses of all nodes. */
export function tunnelEndSet(family: Family): string {
  return `tunnel_ends${family}`;
}

export interface OpenTunnels {
  readonly kinds: ReadonlySet<TunnelKind>;
  readonly vxlanPort: number;
}

/** Between nodes only; policy judges the packets inside. */
export function acceptTunnels({ kinds, vxlanPort }: OpenTunnels, otherEnd: Side): readonly DesiredRule[] {
  return TUNNEL_KINDS.filter((kind) => kinds.has(kind)).flatMap((kind) =>
    (kind === "ipip" ? ([4] as const) : ([4, 6] as const)).map((family) => ({
      expressions: [
        ...matchFamily(family),
        ...matchTunnel(kind, vxlanPort),
        loadAddress(family, otherEnd, 0),
        { kind: "lookup", set: tunnelEndSet(family), from: 0 },
        { kind: "counter" },
        verdict({ kind: "accept" }),
      ] satisfies Expression[],
      comment: `${TUNNEL_TITLES[kind]} between nodes`,
    })),
  );
}
