/** Which addresses of a host its Node resource names. Pure. */
import { formatInterfaceAddress, type InterfaceAddress } from "../../ip/prefix.ts";
import type { Node } from "../../model/node.ts";

export interface HostAddress extends InterfaceAddress {
  /** Whether the host reaches others through the link of this address. */
  readonly isOfUplink: boolean;
}

/** The addresses of the uplinks; if there is no uplink, all. */
export function nodeAddresses(all: readonly HostAddress[]): readonly InterfaceAddress[] {
  const chosen = all.filter(({ isOfUplink }) => isOfUplink);
  return chosen.length === 0 ? all : chosen;
}

/** Replaces only what names an address of the node itself; other fields are kept. */
export function withAddresses(spec: Node["spec"], addresses: readonly InterfaceAddress[]): Node["spec"] {
  const ipv4 = addresses.find(({ address }) => address.family === 4);
  const ipv6 = addresses.find(({ address }) => address.family === 6);
  return {
    ...spec,
    bgp: {
      ...spec.bgp,
      ...(ipv4 && { ipv4Address: formatInterfaceAddress(ipv4) }),
      ...(ipv6 && { ipv6Address: formatInterfaceAddress(ipv6) }),
    },
    addresses: addresses.map((each) => ({ address: formatInterfaceAddress(each), type: "InternalIP" })),
  };
}
