/** Packets of tunnels between nodes, before they are unpacked. Pure. */
import { identity } from "../../identity.ts";
import type { Family } from "../../ip/address.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import {
  loadAddress,
  matchFamily,
  matchInterface,
  matchPorts,
  matchProtocol,
  type Side,
  verdict,
} from "../../linux/nftables/match.ts";
import { matchTunnel, TUNNEL_KINDS, type TunnelKind } from "../../linux/nftables/tunnel-match.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { DesiredRule } from "../table/desired-table.ts";

export const TUNNEL_TITLES: Readonly<Record<TunnelKind, string>> = { vxlan: "VXLAN", ipip: "IPIP" };

/** The addresses of all nodes. */
export function tunnelEndSet(family: Family): string {
  return `tunnel_ends${family}`;
}

/** The addresses of the VXLAN tunnels of all nodes: to this host, that is its own. */
export function probedSet(family: Family): string {
  return `probed${family}`;
}

const VXLAN_DEVICE: Readonly<Record<Family, string>> = { 4: identity.vxlanDevice, 6: identity.vxlanDeviceIpv6 };

/**
 * Node agents probe their tunnels, and find a broken network card by what is lost: a policy must not look like one. Only
 * from one tunnel to another: pods reach the port too, and it may be one of another program at another address.
 * `answering`: the end of the packet that has the port, the source of a reply.
 */
export function acceptProbes(key: "iifname" | "oifname", answering: Side): readonly DesiredRule[] {
  return ([4, 6] as const).flatMap((family) =>
    (["TCP", "UDP"] as const).map((protocol) => ({
      expressions: [
        ...matchInterface(key, "equal", VXLAN_DEVICE[family]),
        ...matchFamily(family),
        ...matchProtocol(protocolNumber(protocol) ?? 0),
        ...matchPorts(answering, PROBE_PORT),
        ...(["source", "destination"] as const).flatMap((side) => [
          loadAddress(family, side, 0),
          { kind: "lookup" as const, set: probedSet(family), from: 0 as const },
        ]),
        verdict({ kind: "accept" }),
      ] satisfies Expression[],
      labels: "none" as const,
      comment: `${protocol} ${answering === "source" ? "replies to probes" : "probes"} of node agents`,
    })),
  );
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
      labels: "none" as const,
      comment: `${TUNNEL_TITLES[kind]} between nodes`,
    })),
  );
}
