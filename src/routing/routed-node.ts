/** What routes need to know of a Node. Pure. */
import { addressBits, type Family, parseAddress } from "../ip/address.ts";
import { formatMac, parseMac } from "../ip/mac.ts";
import { type InterfaceAddress, parseInterfaceAddress, parsePrefix } from "../ip/prefix.ts";
import { parseAsNumber } from "../model/as-number.ts";
import type { Node } from "../model/node.ts";
import { isObject, textsIn } from "../model/shape.ts";
import type { ByFamily, RoutedNode, VxlanEnd } from "./facts.ts";

export function routedNode({ metadata, spec, status }: Node): RoutedNode {
  const { bgp = {} } = spec;
  const ipip = bgp.ipv4IPIPTunnelAddr === undefined ? undefined : parseAddress(bgp.ipv4IPIPTunnelAddr);
  const asNumber = bgp.asNumber === undefined ? undefined : parseAsNumber(bgp.asNumber);
  const clusterId = bgp.routeReflectorClusterID;
  const reported = textsAt(status, "kubeletAddresses").flatMap((text) => parseAddress(text) ?? []);
  const refusedPodCidrs = textsAt(status, "unassignedPodCIDRs");
  return {
    name: metadata.name,
    labels: metadata.labels ?? {},
    addresses: byFamily(addressWithSubnet(bgp.ipv4Address, 4), addressWithSubnet(bgp.ipv6Address, 6)),
    ...(reported.length === 0 ? {} : { reported }),
    vxlan: byFamily(
      vxlanEnd(spec.ipv4VXLANTunnelAddr, spec.vxlanTunnelMACAddr),
      vxlanEnd(spec.ipv6VXLANTunnelAddr, spec.vxlanTunnelMACAddrV6),
    ),
    ...(ipip === undefined ? {} : { ipip }),
    podCidrs: (spec.podCIDRs ?? []).flatMap((text) => parsePrefix(text) ?? []),
    ...(refusedPodCidrs.length === 0 ? {} : { refusedPodCidrs }),
    ...(asNumber === undefined ? {} : { asNumber }),
    ...(clusterId === undefined || clusterId === "" ? {} : { routeReflectorClusterId: clusterId }),
  };
}

/** Of what the orchestrator's API adds to the record of a Node (datastore/kube/cluster-nodes.ts). */
function textsAt(status: unknown, field: string): readonly string[] {
  return textsIn(isObject(status) ? status[field] : undefined);
}

function byFamily<Value>(ipv4: Value | undefined, ipv6: Value | undefined): ByFamily<Value> {
  return { ...(ipv4 === undefined ? {} : { 4: ipv4 }), ...(ipv6 === undefined ? {} : { 6: ipv6 }) };
}

/** Without a length it is in no subnet with any other node. */
function addressWithSubnet(text: string | undefined, family: Family): InterfaceAddress | undefined {
  if (text === undefined) return undefined;
  const address = parseAddress(text);
  const read = address === undefined ? parseInterfaceAddress(text) : { address, length: addressBits(family) };
  return read?.address.family === family ? read : undefined;
}

function vxlanEnd(addressText: string | undefined, macText: string | undefined): VxlanEnd | undefined {
  const address = addressText === undefined ? undefined : parseAddress(addressText);
  const mac = macText === undefined ? undefined : parseMac(macText);
  return address === undefined || mac === undefined ? undefined : { address, mac: formatMac(mac) };
}
