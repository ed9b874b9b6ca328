/** The addresses in records, in canonical form. Pure. */
import { serviceKey } from "../../flows/collector-messages.ts";
import { formatAddress, parseAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import type { Node } from "../../model/node.ts";
import { isExternal } from "../../model/node-members.ts";
import type { ServiceAddresses } from "../../model/service-addresses.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";

/** Its own, and the floating ones that lead to it. */
export function endpointAddresses({ spec }: WorkloadEndpoint): readonly string[] {
  return [...(spec.ipNetworks ?? []), ...(spec.ipNATs ?? []).map(({ externalIP }) => externalIP)].flatMap(canonical);
}

export function expectedAddresses({ spec }: HostEndpoint): readonly string[] {
  return (spec.expectedIPs ?? []).flatMap(canonical);
}

/** All that other nodes and pods see it as: of BGP, of its tunnels, of its interfaces. */
export function nodeAddresses({ spec }: Node): readonly string[] {
  const { bgp, addresses = [], ipv4VXLANTunnelAddr, ipv6VXLANTunnelAddr, wireguard } = spec;
  const all = [
    ...[bgp?.ipv4Address, bgp?.ipv6Address, bgp?.ipv4IPIPTunnelAddr, ipv4VXLANTunnelAddr, ipv6VXLANTunnelAddr],
    ...[wireguard?.interfaceIPv4Address, wireguard?.interfaceIPv6Address],
    ...addresses.filter((each) => !isExternal(each)).map(({ address }) => address),
  ];
  return [...new Set(all.flatMap((text) => (text === undefined ? [] : canonical(text))))];
}

/** As the collector asks for them. */
export function serviceKeysOf({ addresses, ports }: ServiceAddresses): readonly string[] {
  return addresses
    .flatMap(canonical)
    .flatMap((address) => ports.map(({ protocol, port }) => serviceKey(address, protocol, port)));
}

/** Protocol and port, at every node. */
export function nodePortsOf({ ports }: ServiceAddresses): readonly string[] {
  return ports.flatMap(({ protocol, nodePort }) => (nodePort === undefined ? [] : [`${protocol} ${nodePort}`]));
}

function canonical(text: string): readonly string[] {
  const address = parseInterfaceAddress(text)?.address ?? parseAddress(text);
  return address === undefined ? [] : [formatAddress(address)];
}
