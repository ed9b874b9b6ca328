/**
 * What counts of the records of nodes. Pure.
 *
 * A node may write its own record (docs/admission.md), and every other node believes it: with the address or the MAC of
 * another node it would attract what is sent there.
 *
 *   address of the node    not if the kubelet of another node reports it and its own does not
 *   tunnel address         not if IPAM holds it for the tunnel of another node, or it is inside a pod CIDR of another node;
 *                          if nobody knows whose it is, only of one node
 *   VXLAN MAC              the one that follows from the name of the node; another one only if no other node has it
 *   pod CIDRs              those that the orchestrator has assigned (datastore/kube/cluster-nodes.ts)
 *
 * What the records of two nodes claim and nothing proves counts for neither: packets are lost then, and not led astray.
 */
import { type Address, type Family, formatAddress, isSameAddress } from "../ip/address.ts";
import { type Prefix, prefixContains, prefixSize, singlePrefix } from "../ip/prefix.ts";
import { PrefixIndex } from "../ip/prefix-index.ts";
import type { BlockTable } from "./block-table.ts";
import type { ByFamily, RoutedNode, VxlanEnd } from "./facts.ts";
import { vxlanMac } from "./vxlan-mac.ts";

export interface CountedNode {
  /** Without what does not count. */
  readonly node: RoutedNode;
  /** What does not count, each with its reason. */
  readonly refused: readonly string[];
}

const FAMILIES = [4, 6] as const;

/** `among`: all nodes, also this one. */
export function countedNode(
  node: RoutedNode,
  among: Pick<NodeTable, "claimants" | "withPodCidrAround">,
  blocks: Pick<BlockTable, "blockOf" | "hasAddress">,
): CountedNode {
  const refused = (node.refusedPodCidrs ?? []).map(
    (cidr) => `its pod CIDR ${cidr}: the orchestrator has not assigned it (spec.podCIDRs of the Node)`,
  );
  const kept = <Value>(
    values: ByFamily<Value>,
    why: (value: Value, family: Family) => string | undefined,
  ): ByFamily<Value> =>
    Object.fromEntries(
      FAMILIES.flatMap((family) => {
        const value = values[family];
        const reason = value === undefined ? undefined : why(value, family);
        if (reason !== undefined) refused.push(reason);
        return value === undefined || reason !== undefined ? [] : [[family, value]];
      }),
    );
  const addresses = kept(node.addresses, ({ address }) => whyNotAddress(node, address, among));
  const vxlan = kept(
    node.vxlan,
    (end, family) => whyNotTunnel(node, end.address, { among, blocks }) ?? whyNotMac(node, end, { family, among }),
  );
  const { ipip, ...others } = node;
  const { 4: counted } = kept(ipip === undefined ? {} : { 4: ipip }, (end) =>
    whyNotTunnel(node, end, { among, blocks }),
  );
  if (refused.length === 0) return { node, refused };
  return { node: { ...others, addresses, vxlan, ...(counted === undefined ? {} : { ipip: counted }) }, refused };
}

/** For what needs the addresses of nodes only, such as BGP. `self`: the name of the planned node, which nobody knows better. */
export function withCountedAddresses(nodes: readonly RoutedNode[], self: string): readonly RoutedNode[] {
  const reports = nodes.flatMap((node) => (node.reported ?? []).map((each) => [addressClaim(each), node] as const));
  const reporters = Map.groupBy(reports, ([claim]) => claim);
  const among = { claimants: (claim: string) => (reporters.get(claim) ?? []).map(([, node]) => node) };
  return nodes.map((node) => {
    if (node.name === self) return node;
    const isOwn = ({ address }: { readonly address: Address }) => whyNotAddress(node, address, among) === undefined;
    const addresses = Object.fromEntries(Object.entries(node.addresses).filter(([, each]) => isOwn(each)));
    return Bun.deepEquals(addresses, node.addresses) ? node : { ...node, addresses };
  });
}

type Claimants = Pick<NodeTable, "claimants">;

function whyNotAddress(node: RoutedNode, address: Address, among: Claimants): string | undefined {
  if (reports(node, address)) return undefined;
  const other = others(node, among.claimants(addressClaim(address))).find((each) => reports(each, address));
  if (other === undefined) return undefined;
  return `its address ${formatAddress(address)}: the kubelet of node "${other.name}" reports it`;
}

function reports({ reported = [] }: RoutedNode, address: Address): boolean {
  return reported.some((each) => isSameAddress(each, address));
}

function whyNotTunnel(
  node: RoutedNode,
  address: Address,
  {
    among,
    blocks,
  }: {
    readonly among: Pick<NodeTable, "claimants" | "withPodCidrAround">;
    readonly blocks: Pick<BlockTable, "blockOf" | "hasAddress">;
  },
): string | undefined {
  const text = formatAddress(address);
  const holder = blocks.blockOf(address)?.tunnels?.get(text);
  if (holder !== undefined)
    return holder === node.name ? undefined : `its tunnel address ${text}: IPAM holds it for node "${holder}"`;
  if (blocks.hasAddress(node.name, address)) return undefined;
  const assigned = among.withPodCidrAround(singlePrefix(address));
  if (assigned.length > 0 && !assigned.includes(node.name))
    return `its tunnel address ${text}: it is inside a pod CIDR of node "${assigned[0]}"`;
  if (assigned.length === 1) return undefined;
  const [other] = others(node, among.claimants(tunnelClaim(address)));
  return other && `its tunnel address ${text}: node "${other.name}" has it too`;
}

function whyNotMac(
  node: RoutedNode,
  { mac }: VxlanEnd,
  { family, among }: { readonly family: Family; readonly among: Claimants },
): string | undefined {
  const rivals = others(node, among.claimants(macClaim(mac, family)));
  if (rivals.length === 0 || vxlanMac(node.name, family) === mac) return undefined;
  return `its VXLAN MAC ${mac}: it is that of node "${rivals[0]?.name}"`;
}

function others({ name }: RoutedNode, nodes: readonly RoutedNode[]): readonly RoutedNode[] {
  return nodes.filter((each) => each.name !== name);
}

/** The records of all nodes, by name and by what they claim. */
export class NodeTable {
  private readonly byName = new Map<string, RoutedNode>();
  /** Lists: usually of one name. */
  private readonly namesByClaim = new Map<string, readonly string[]>();
  /** The claims of each node: its MACs are computed once. */
  private readonly claimsByName = new Map<string, readonly string[]>();
  private readonly tunnels = new AddressIndex();
  private readonly addresses = new AddressIndex();
  private readonly podCidrs = new PrefixIndex<readonly string[]>();

  get(name: string): RoutedNode | undefined {
    return this.byName.get(name);
  }

  names(): Iterable<string> {
    return this.byName.keys();
  }

  /** Returns the other nodes that claim the same as the node does, or did. */
  set(name: string, node: RoutedNode | undefined): ReadonlySet<string> {
    const former = this.byName.get(name);
    const rivals = new Set<string>();
    this.rename(name, node === undefined ? [] : claimsOf(node), rivals);
    if (former !== undefined) this.addresses.exclude(name, addressesOf(former));
    if (former !== undefined) this.tunnels.exclude(name, tunnelsOf(former));
    for (const cidr of former?.podCidrs ?? []) this.setPodCidr(cidr, (names) => names.filter((each) => each !== name));
    for (const cidr of node?.podCidrs ?? []) this.setPodCidr(cidr, (names) => [...names, name]);
    if (node === undefined) this.byName.delete(name);
    else this.byName.set(name, node);
    if (node !== undefined) this.addresses.include(name, addressesOf(node));
    if (node !== undefined) this.tunnels.include(name, tunnelsOf(node));
    rivals.delete(name);
    return rivals;
  }

  claimants(claim: string): readonly RoutedNode[] {
    return (this.namesByClaim.get(claim) ?? []).flatMap((name) => this.byName.get(name) ?? []);
  }

  /** The nodes that record an address inside the prefix as that of a tunnel. */
  withTunnelsIn(prefix: Prefix): ReadonlySet<string> {
    return this.tunnels.namesIn(prefix);
  }

  /** A node that has an address inside the prefix. */
  withAddressIn(prefix: Prefix): string | undefined {
    const [name] = this.addresses.namesIn(prefix);
    return name;
  }

  /** A node with a pod CIDR that overlaps the prefix. */
  withPodCidrIn(prefix: Prefix): string | undefined {
    const [name] = this.podCidrs.overlapping(prefix).flat().toSorted();
    return name;
  }

  /** The nodes with a pod CIDR that contains the whole prefix, by name. */
  withPodCidrAround({ network, length }: Prefix): readonly string[] {
    const around = this.podCidrs.around(network, length).flat();
    return [...new Set(around)].toSorted();
  }

  private setPodCidr(cidr: Prefix, change: (names: readonly string[]) => readonly string[]): void {
    const names = change(this.podCidrs.get(cidr) ?? []);
    if (names.length === 0) this.podCidrs.delete(cidr);
    else this.podCidrs.set(cidr, names);
  }

  private rename(name: string, claims: readonly string[], rivals: Set<string>): void {
    for (const claim of this.claimsByName.get(name) ?? []) {
      const left = (this.namesByClaim.get(claim) ?? []).filter((each) => each !== name);
      for (const each of left) rivals.add(each);
      if (left.length === 0) this.namesByClaim.delete(claim);
      else this.namesByClaim.set(claim, left);
    }
    for (const claim of claims) {
      const before = this.namesByClaim.get(claim) ?? [];
      for (const each of before) rivals.add(each);
      // In the order of the names: what is reported does not depend on the order of changes.
      this.namesByClaim.set(claim, [...before, name].toSorted());
    }
    if (claims.length === 0) this.claimsByName.delete(name);
    else this.claimsByName.set(name, claims);
  }
}

export function addressesOf({ addresses, reported = [] }: RoutedNode): readonly Address[] {
  return [...FAMILIES.flatMap((family) => addresses[family]?.address ?? []), ...reported];
}

function tunnelsOf({ vxlan, ipip }: RoutedNode): readonly Address[] {
  return [...FAMILIES.flatMap((family) => vxlan[family]?.address ?? []), ...(ipip === undefined ? [] : [ipip])];
}

function claimsOf(node: RoutedNode): readonly string[] {
  const claims = [
    ...addressesOf(node).map(addressClaim),
    ...FAMILIES.flatMap((family) => {
      const end = node.vxlan[family];
      const own = macClaim(vxlanMac(node.name, family), family);
      return end === undefined ? [own] : [own, macClaim(end.mac, family)];
    }),
    ...tunnelsOf(node).map(tunnelClaim),
  ];
  return [...new Set(claims)];
}

function addressClaim(address: Address): string {
  return `address ${formatAddress(address)}`;
}

function tunnelClaim(address: Address): string {
  return `tunnel ${formatAddress(address)}`;
}

function macClaim(mac: string, family: Family): string {
  return `mac ${family} ${mac}`;
}

/** Names by address; a whole network is looked up without a search. */
class AddressIndex {
  private readonly names: Readonly<Record<Family, Map<bigint, readonly string[]>>> = { 4: new Map(), 6: new Map() };

  include(name: string, addresses: readonly Address[]): void {
    for (const { family, value } of addresses) {
      const before = this.names[family].get(value) ?? [];
      if (!before.includes(name)) this.names[family].set(value, [...before, name].toSorted());
    }
  }

  exclude(name: string, addresses: readonly Address[]): void {
    for (const { family, value } of addresses) {
      const left = (this.names[family].get(value) ?? []).filter((each) => each !== name);
      if (left.length === 0) this.names[family].delete(value);
      else this.names[family].set(value, left);
    }
  }

  /** In the order of the addresses. */
  namesIn(prefix: Prefix): ReadonlySet<string> {
    const { family, value: first } = prefix.network;
    const all = this.names[family];
    const size = prefixSize(prefix);
    const values =
      size > BigInt(all.size)
        ? all
            .keys()
            .filter((value) => prefixContains(prefix, { family, value }))
            .toArray()
            .toSorted((left, right) => (left < right ? -1 : 1))
        : Array.from({ length: Number(size) }, (_, offset) => first + BigInt(offset));
    return new Set(values.flatMap((value) => all.get(value) ?? []));
  }
}
