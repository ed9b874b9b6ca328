/** The record of this node as it should be. Pure. Fields that others write are kept. */
import type { Family } from "../../ip/address.ts";
import { formatMac } from "../../ip/mac.ts";
import { formatPrefix, parsePrefix } from "../../ip/prefix.ts";
import type { Node } from "../../model/node.ts";
import type { TunnelKind } from "../../model/tunnel-address.ts";

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

/** The same after every restart, so that other nodes need not learn another. Locally administered, of one interface. */
export function vxlanMac(node: string, family: Family): string {
  const text = family === 4 ? node : `v6 ${node}`;
  const hash = new Bun.CryptoHasher("sha1").update(text).digest();
  return formatMac(Uint8Array.of(0x66, ...hash.subarray(0, 5)));
}

/** `undefined`: it is not known which they are, and the record stays as it is. */
export function withPodCidrs(spec: Spec, podCidrs: readonly string[] | undefined): Spec {
  if (podCidrs === undefined) return spec;
  const { podCIDRs: _, ...others } = spec;
  const networks = podCidrs.flatMap((text) => parsePrefix(text) ?? []).map(formatPrefix);
  return networks.length === 0 ? others : { ...others, podCIDRs: networks };
}
