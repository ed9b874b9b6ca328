/** Plans of BGP for tests of BIRD, without the resources that they are computed from. */
import type { Prefix } from "../../src/ip/prefix.ts";
import type { BgpPlan, BgpSession } from "../../src/routing/bgp/plan.ts";
import { USUAL_SESSION } from "../../src/routing/bgp/session.ts";
import { NO_BGP } from "../../src/routing/bird/render.ts";
import { address, prefix } from "./ip.ts";

export function bgpPlan(node: string, more: Partial<BgpPlan> = {}): BgpPlan {
  const own = address(node);
  return {
    ...NO_BGP,
    routerId: own.family === 4 ? own : address("10.9.9.9"),
    asNumber: 64512,
    addresses: { [own.family]: own },
    listenPort: 179,
    ...more,
  };
}

export function bgpSession(peer: string, more: Partial<BgpSession> = {}): BgpSession {
  return {
    ...USUAL_SESSION,
    name: `Mesh_${peer.replaceAll(/[.:]/g, "_")}`,
    kind: "node-to-node mesh",
    from: `node-${peer}`,
    address: address(peer),
    port: 179,
    localAs: 64512,
    peerAs: 64512,
    passive: false,
    reflector: undefined,
    ...more,
  };
}

export function prefixes(...texts: readonly string[]): readonly Prefix[] {
  return texts.map(prefix);
}
