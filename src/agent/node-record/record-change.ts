/** The record of this node as it should be. Pure. Fields that others write are kept. */
import type { Node } from "../../model/node.ts";
import type { TunnelKind } from "../../model/tunnel-address.ts";
import { vxlanMac } from "../../routing/vxlan-mac.ts";

type Spec = Node["spec"];

/** Only those that are present are fields of the result: an absent one is removed from the record. */
export function withTunnels(spec: Spec, node: string, own: ReadonlyMap<TunnelKind, string>): Spec {
  const {
    ipv4VXLANTunnelAddr: _four,
    vxlanTunnelMACAddr: _fourMac,
    ipv6VXLANTunnelAddr: _six,
    vxlanTunnelMACAddrV6: _sixMac,
    bgp,
    ...others
  } = spec;
  const { ipv4IPIPTunnelAddr: _ipip, ...otherBgp } = bgp ?? {};
  const [four, six, ipip] = [own.get("vxlan4"), own.get("vxlan6"), own.get("ipip4")];
  const newBgp = { ...otherBgp, ...(ipip === undefined ? {} : { ipv4IPIPTunnelAddr: ipip }) };
  return {
    ...others,
    ...(Object.keys(newBgp).length === 0 ? {} : { bgp: newBgp }),
    ...(four === undefined ? {} : { ipv4VXLANTunnelAddr: four, vxlanTunnelMACAddr: vxlanMac(node, 4) }),
    ...(six === undefined ? {} : { ipv6VXLANTunnelAddr: six, vxlanTunnelMACAddrV6: vxlanMac(node, 6) }),
  };
}

/**
 * As the orchestrator's Node has them, with the same text: its API server refuses others (src/release/admission/node-policies.ts).
 * `undefined`: it is not known which they are, and the record stays as it is.
 */
export function withPodCidrs(spec: Spec, podCidrs: readonly string[] | undefined): Spec {
  if (podCidrs === undefined) return spec;
  const { podCIDRs: _, ...others } = spec;
  return podCidrs.length === 0 ? others : { ...others, podCIDRs: [...podCidrs] };
}
