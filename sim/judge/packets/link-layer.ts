/** How packets of the kernel model get across one link: who answers for the next hop, and where a tunnel ends. Pure. */
import { type Address, formatAddress, isSameAddress } from "../../../src/ip/address.ts";
import { formatMac } from "../../../src/ip/mac.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import type { ModelLink, NetworkNamespace } from "../../kernel/model.ts";
import type { Machine } from "./network.ts";
import { hasAddress, lookUpRoute, sourceFor } from "./route-lookup.ts";

/** Why the next hop cannot be resolved to the other end of the veth; `undefined` if it can. */
export function resolvesGateway(
  namespace: NetworkNamespace,
  link: Readonly<ModelLink>,
  other: { readonly namespace: NetworkNamespace; readonly link: Readonly<ModelLink> },
  nextHop: Address,
): string | undefined {
  const known = neighbourOf(namespace, link, nextHop);
  const text = formatAddress(nextHop);
  if (known !== undefined) {
    const isRight = formatMac(known.mac) === formatMac(other.link.mac);
    return isRight ? undefined : `the neighbour ${text} on "${link.name}" has the address of another interface`;
  }
  if (hasAddress(other.namespace, nextHop)) return undefined;
  const { sysctls } = other.namespace;
  const proxies = nextHop.family === 4 ? "ipv4/conf" : "ipv6/conf";
  const setting = nextHop.family === 4 ? "proxy_arp" : "proxy_ndp";
  const answers = [other.link.name, "all"].some((name) => sysctls.get(`net/${proxies}/${name}/${setting}`) === "1");
  return answers ? undefined : `nobody answers for ${text} on "${link.name}"`;
}

export interface TunnelEnd {
  readonly outer: Packet;
  isReceiver(link: Readonly<ModelLink>, machine: Machine): boolean;
}

const UDP = 17;
const IPIP = 4;

/** The tunnelled packet that a device sends towards the next hop, or why it sends none. */
export function tunnelEnd({ root }: Machine, device: Readonly<ModelLink>, nextHop: Address): TunnelEnd | string {
  if (device.kind === "ipip") {
    const source = localOf(root, nextHop);
    if (source === undefined) return `no route to the other end of the tunnel, ${formatAddress(nextHop)}`;
    return {
      outer: { source, destination: nextHop, protocol: IPIP },
      isReceiver: ({ kind }) => kind === "ipip",
    };
  }
  const { vxlan } = device;
  if (vxlan === undefined) return `"${device.name}" is not a tunnel`;
  const neighbour = neighbourOf(root, device, nextHop);
  if (neighbour === undefined) return `"${device.name}" has no neighbour ${formatAddress(nextHop)}`;
  const mac = formatMac(neighbour.mac);
  const entry = root.forwarding.find((each) => each.linkIndex === device.index && formatMac(each.mac) === mac);
  if (entry === undefined) return `"${device.name}" has no forwarding entry for ${mac}`;
  const source = vxlan.local ?? localOf(root, entry.remote);
  if (source === undefined) return `no route to the other end of the tunnel, ${formatAddress(entry.remote)}`;
  return {
    outer: { source, destination: entry.remote, protocol: UDP, sourcePort: 49_152, destinationPort: vxlan.port },
    // The frame is addressed to this very device.
    isReceiver: (link) =>
      link.vxlan?.id === vxlan.id &&
      link.vxlan.port === vxlan.port &&
      (link.vxlan.local === undefined || isSameAddress(link.vxlan.local, entry.remote)) &&
      formatMac(link.mac) === mac,
  };
}

function localOf(root: NetworkNamespace, towards: Address): Address | undefined {
  const route = lookUpRoute(root, towards);
  return route && sourceFor(root, route);
}

const FAILED = 0x20;

function neighbourOf({ neighbours }: NetworkNamespace, { index }: Readonly<ModelLink>, address: Address) {
  return neighbours.find(
    (each) => each.linkIndex === index && isSameAddress(each.address, address) && (each.state & FAILED) === 0,
  );
}
