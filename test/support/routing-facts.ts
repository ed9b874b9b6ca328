/** Facts of routes between nodes written briefly, and plans as text. */
import { formatAddress } from "../../src/ip/address.ts";
import { formatPrefix, parseInterfaceAddress, prefixContains } from "../../src/ip/prefix.ts";
import type {
  AnnouncedEndpoint,
  PoolMode,
  RemoteEndpoint,
  RoutedBlock,
  RoutedNode,
  RoutedPool,
} from "../../src/routing/facts.ts";
import type { NextHop, RoutePlan } from "../../src/routing/plan.ts";
import type { FactChange } from "../../src/routing/planner.ts";
import { address, prefix } from "./ip.ts";

export interface NodeText {
  readonly ipv4?: string;
  readonly ipv6?: string;
  readonly vxlan4?: string;
  readonly vxlan6?: string;
  readonly ipip?: string;
  readonly podCidrs?: readonly string[];
  /** What its kubelet reports. */
  readonly reported?: readonly string[];
  /** Of both VXLAN devices; follows from the name by default. */
  readonly mac?: string;
}

export function nodeFact(name: string, text: NodeText): RoutedNode {
  const { ipv4, ipv6, vxlan4, vxlan6, ipip, podCidrs = [], reported = [] } = text;
  const subnet = (text: string) => parseInterfaceAddress(text) ?? { address: address(text), length: 32 };
  const mac = (device: number) => text.mac ?? `66:0${device}:00:00:00:${Buffer.from(name.slice(-1)).toString("hex")}`;
  return {
    name,
    labels: {},
    addresses: { ...(ipv4 ? { 4: subnet(ipv4) } : {}), ...(ipv6 ? { 6: subnet(ipv6) } : {}) },
    ...(reported.length === 0 ? {} : { reported: reported.map(address) }),
    vxlan: {
      ...(vxlan4 ? { 4: { address: address(vxlan4), mac: mac(4) } } : {}),
      ...(vxlan6 ? { 6: { address: address(vxlan6), mac: mac(6) } } : {}),
    },
    ...(ipip ? { ipip: address(ipip) } : {}),
    podCidrs: podCidrs.map(prefix),
  };
}

export const POOL_MODES = {
  none: { kind: "unencapsulated" },
  vxlan: { kind: "vxlan", onlyAcrossSubnets: false },
  "vxlan-cross-subnet": { kind: "vxlan", onlyAcrossSubnets: true },
  ipip: { kind: "ipip", onlyAcrossSubnets: false },
  "ipip-cross-subnet": { kind: "ipip", onlyAcrossSubnets: true },
} as const satisfies Record<string, PoolMode>;

export type PoolModeName = keyof typeof POOL_MODES;

export function poolFact(
  name: string,
  cidr: string,
  mode: PoolModeName,
  isExported = true,
  blockLength = cidr.includes(":") ? 122 : 26,
): RoutedPool {
  return { name, prefix: prefix(cidr), mode: POOL_MODES[mode], blockLength, createdAt: "", isExported };
}

/** `borrowed`, `tunnels`: the node of each address. */
export function blockFact(
  cidr: string,
  node?: string,
  borrowed: Readonly<Record<string, string>> = {},
  tunnels: Readonly<Record<string, string>> = {},
): RoutedBlock {
  const held = Object.entries(borrowed).map(
    ([text, holder]) => [text, { address: address(text), node: holder }] as const,
  );
  const ofTunnels = new Map(Object.entries(tunnels));
  const within = [...Object.keys(borrowed), ...Object.keys(tunnels)]
    .map(address)
    .filter((each) => prefixContains(prefix(cidr), each));
  const assigned = within.reduce((bits, { value }) => bits | (1n << (value - prefix(cidr).network.value)), 0n);
  return {
    prefix: prefix(cidr),
    node,
    borrowed: new Map(held),
    ...(assigned === 0n ? {} : { assigned }),
    ...(ofTunnels.size === 0 ? {} : { tunnels: ofTunnels }),
  };
}

export function endpointFact(addresses: readonly string[], floating: readonly string[] = []): AnnouncedEndpoint {
  return { addresses: addresses.map(address), floating: floating.map(address) };
}

export function remoteFact(node: string, addresses: readonly string[]): RemoteEndpoint {
  return { node, addresses: addresses.map(address) };
}

export function putFact<Value>(key: string, value: Value): FactChange<Value> {
  return { kind: "put", key, value };
}

export function deleteFact(key: string): FactChange<never> {
  return { kind: "delete", key };
}

/** One line for each entry, sorted. */
export function planLines({ tunnels, peers, routes, senders, announced }: RoutePlan): readonly string[] {
  return [
    ...Array.from(tunnels.values(), (tunnel) =>
      ["tunnel", tunnel.name, formatAddress(tunnel.address), "local", formatAddress(tunnel.local), tunnel.mac ?? ""]
        .join(" ")
        .trimEnd(),
    ),
    ...Array.from(
      peers,
      ([key, peer]) => `peer ${key}: ${formatAddress(peer.address)} ${peer.mac} at ${formatAddress(peer.remote)}`,
    ),
    ...Array.from(routes.values(), ({ destination, hop }) => `${formatPrefix(destination)} ${hopText(hop)}`),
    ...Array.from(senders.values(), (sender) => `sender ${formatAddress(sender)}`),
    ...Array.from(announced.values(), (network) => `announced ${formatPrefix(network)}`),
  ].toSorted();
}

function hopText(hop: NextHop): string {
  switch (hop.kind) {
    case "blackhole":
      return "blackhole";
    case "gateway":
      return `via ${formatAddress(hop.gateway)}`;
    case "tunnel":
      return `via ${formatAddress(hop.gateway)} on ${hop.tunnel}`;
  }
}
