/**
 * Which of a host's addresses other nodes reach it at, by the method that the settings name (model/address-detection.ts).
 * Pure: `HostFacts` has been read from the kernel and the orchestrator.
 *
 *   first-found      links with a default route of the family, then those with one of the other family, then the others
 *                    by their index; without the links of container engines, of workloads and of tunnels
 *   skip-interface   the same, without further links
 *   interface, cidr  every link, in that order, whose name or address matches
 *   can-reach        the source address of packets to the destination
 *   internal-ip      the InternalIP of the orchestrator's Node
 *
 * The recorded address is kept if the method could choose it as well: an address that is added beside it, or the order
 * in which the kernel lists addresses, changes nothing.
 */
import { identity } from "../identity.ts";
import { type Address, type Family, isSameAddress } from "../ip/address.ts";
import { type InterfaceAddress, prefixContains, singlePrefix } from "../ip/prefix.ts";
import type { HostAddress, HostLink } from "../linux/rtnetlink/host-addresses.ts";
import type { AddressDetection } from "../model/address-detection.ts";

export interface HostFacts {
  /** In the order of the kernel: by link. */
  readonly addresses: readonly HostAddress[];
  /** Of the orchestrator's Node; `undefined` if it is not known. */
  readonly internalAddresses?: readonly Address[] | undefined;
  /** The source address of packets to the destination of `can-reach`; `undefined` if there is none. */
  readonly reachingFrom?: Address | undefined;
}

export type AddressChoice =
  /** `link`: absent if no link of the host has the address. */
  | { readonly kind: "found"; readonly address: InterfaceAddress; readonly link?: HostLink }
  | { readonly kind: "not wanted" }
  | { readonly kind: "not found"; readonly reason: string };

export function chooseNodeAddress(
  family: Family,
  method: AddressDetection,
  { addresses, internalAddresses, reachingFrom }: HostFacts,
  recorded?: Address,
): AddressChoice {
  const ofFamily = addresses.filter(({ address }) => address.family === family);
  switch (method.kind) {
    case "none":
      return { kind: "not wanted" };
    case "first-found":
      return preferred(ofFamily.filter(isOfHost), recorded, "no link to other hosts has one");
    case "skip-interface": {
      const left = ofFamily.filter((each) => isOfHost(each) && !isNamed(each.link, method.patterns));
      return preferred(left, recorded, "no link that is not skipped has one");
    }
    case "interface": {
      const named = ofFamily.filter(({ link }) => isNamed(link, method.patterns));
      return preferred(named, recorded, "no link whose name matches has one");
    }
    case "cidr": {
      const inside = ofFamily.filter(({ address }) => method.cidrs.some((cidr) => prefixContains(cidr, address)));
      return preferred(inside, recorded, "this host has no address in these networks");
    }
    case "can-reach":
      return given(reachingFrom, ofFamily, `this host has no route to ${method.destination}`);
    case "internal-ip": {
      const internal = internalAddresses?.find((address) => address.family === family);
      const reason = internalAddresses === undefined ? "the orchestrator's Node cannot be read" : "its Node has none";
      return given(internal, ofFamily, reason);
    }
  }
}

const LOOPBACK = "lo";

/** Links that lead to containers and virtual machines of this host, or that only exist between nodes. */
const NOT_TO_OTHER_HOSTS = [
  /^docker/,
  /^cbr/,
  /^cni/,
  /^dummy/,
  /^virbr/,
  /^lxcbr/,
  /^veth/,
  /^flannel/,
  /^cali/,
  /^tunl/,
  /^vxlan(-v6)?\./,
  /^wireguard\./,
  /^kube-ipvs/,
  /^nodelocaldns/,
];

/** Whether other hosts may reach this one by the link of the address. */
export function isOfHost({ link }: Pick<HostAddress, "link">): boolean {
  if (link.name === LOOPBACK || link.name.startsWith(identity.interfacePrefix)) return false;
  // Whatever its name: by a link with a default route the host reaches others.
  return link.defaultRoutes.length > 0 || !isNamed(link, NOT_TO_OTHER_HOSTS);
}

function isNamed({ name }: HostLink, patterns: readonly RegExp[]): boolean {
  return patterns.some((pattern) => pattern.test(name));
}

function preferred(candidates: readonly HostAddress[], recorded: Address | undefined, reason: string): AddressChoice {
  const [first] = candidates.toSorted((left, right) => rank(left) - rank(right));
  if (first === undefined) return { kind: "not found", reason };
  const kept = candidates.find(
    ({ address, link }) => link.name === first.link.name && recorded !== undefined && isSameAddress(address, recorded),
  );
  return found(kept ?? first);
}

/** Lower is better. */
function rank({ address, link }: HostAddress): number {
  if (link.defaultRoutes.includes(address.family)) return 0;
  return link.defaultRoutes.length > 0 ? 1 : 2;
}

function found({ address, length, link }: HostAddress): AddressChoice {
  return { kind: "found", address: { address, length }, link };
}

/** With the length of its network, if a link of this host has it. */
function given(address: Address | undefined, ofFamily: readonly HostAddress[], reason: string): AddressChoice {
  if (address === undefined) return { kind: "not found", reason };
  const own = ofFamily.find((each) => isSameAddress(each.address, address));
  if (own !== undefined) return found(own);
  return { kind: "found", address: { address, length: singlePrefix(address).length } };
}
