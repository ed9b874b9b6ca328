/**
 * The tunnel devices of this host: what they must be, and what has to be changed. Pure.
 *
 *   missing ───────────────────────────────▶ created
 *   MTU, MAC, address of this host, state, reverse path filter ─▶ changed in place: entries and routes stay
 *   VNI, port, learning ───────────────────▶ created again: the kernel cannot change them
 *   a link of another kind has the name ───▶ a problem: it is not ours
 */

import { identity } from "../../identity.ts";
import { type Address, formatAddress, isSameAddress, parseAddress } from "../../ip/address.ts";
import { parseMac } from "../../ip/mac.ts";
import type { NetlinkRequest } from "../../linux/netlink/request.ts";
import { createIpip } from "../../linux/rtnetlink/ipip.ts";
import { changeLink, deleteLink, type Link } from "../../linux/rtnetlink/link.ts";
import { changeVxlan, createVxlan, type LinkWithVxlan, type VxlanSettings } from "../../linux/rtnetlink/vxlan.ts";
import type { PlannedTunnel, TunnelName } from "../../routing/plan.ts";

interface TunnelKind {
  readonly kind: "vxlan" | "ipip";
  readonly title: string;
  readonly deviceName: string;
  /** What it adds to each packet. */
  readonly headerLength: number;
}

export const TUNNELS: Readonly<Record<TunnelName, TunnelKind>> = {
  vxlan4: { kind: "vxlan", title: "VXLAN", deviceName: identity.vxlanDevice, headerLength: 50 },
  vxlan6: { kind: "vxlan", title: "VXLAN over IPv6", deviceName: identity.vxlanDeviceIpv6, headerLength: 70 },
  ipip4: { kind: "ipip", title: "IPIP", deviceName: "tunl0", headerLength: 20 },
};

export const TUNNEL_NAMES = ["vxlan4", "vxlan6", "ipip4"] as const satisfies readonly TunnelName[];

/**
 * The module of IPIP has made its device, which other programs may use too. Its alias says that we have set it up, and
 * which addresses it has from us: "vendor-node 10.60.0.1". A former release has not written the addresses.
 */
const IPIP_ALIAS = identity.nodeAgent;

export function ipipAlias(given: readonly Address[]): string {
  return [IPIP_ALIAS, ...given.map(formatAddress)].join(" ");
}

export function isOwnIpip({ kind, alias = "" }: Pick<Link, "kind" | "alias">): boolean {
  return kind === "ipip" && alias.split(" ")[0] === IPIP_ALIAS;
}

/** The addresses that an IPIP device has, or is about to have, from us. */
export function givenAddresses(link: Pick<Link, "kind" | "alias">): readonly Address[] {
  if (!isOwnIpip(link)) return [];
  return (link.alias ?? "").split(" ").flatMap((word) => parseAddress(word) ?? []);
}

export type DeviceStep =
  | { readonly kind: "requests"; readonly requests: readonly NetlinkRequest[]; readonly isNew: boolean }
  | { readonly kind: "problem"; readonly reason: string };

/** `underlying`: the link that has the address of this node. */
export function deviceStep(tunnel: PlannedTunnel, underlying: Link, present: LinkWithVxlan | undefined): DeviceStep {
  const { kind, deviceName } = TUNNELS[tunnel.name];
  if (present !== undefined && present.link.kind !== kind)
    return { kind: "problem", reason: `another interface has the name "${deviceName}"` };
  return kind === "ipip" ? ipipStep(tunnel, underlying, present) : vxlanStep(tunnel, underlying, present);
}

function deviceMtu(tunnel: TunnelName, underlying: Link): number {
  return underlying.mtu - TUNNELS[tunnel].headerLength;
}

/** The address is in the alias before it is on the device: a stopped agent leaves none that its successor would not remove. */
function ipipStep({ name, address }: PlannedTunnel, underlying: Link, present: LinkWithVxlan | undefined): DeviceStep {
  const { deviceName } = TUNNELS[name];
  const mtu = deviceMtu(name, underlying);
  const former = present === undefined ? [] : givenAddresses(present.link);
  const alias = ipipAlias([...former.filter((each) => !isSameAddress(each, address)), address]);
  if (present === undefined) return created(createIpip({ name: deviceName, mtu, state: "up" }), { deviceName, alias });
  return changed(present, { mtu, alias });
}

function vxlanStep(
  { name, local, mac: macText = "", vxlan: numbers }: PlannedTunnel,
  underlying: Link,
  present: LinkWithVxlan | undefined,
): DeviceStep {
  const { deviceName } = TUNNELS[name];
  const mac = parseMac(macText);
  if (mac === undefined) return { kind: "problem", reason: `"${macText}" is not a MAC address` };
  const mtu = deviceMtu(name, underlying);
  if (numbers === undefined) return { kind: "problem", reason: "it has no port" };
  const wanted: VxlanSettings = { ...numbers, local, underlyingIndex: underlying.index };
  const create = createVxlan({ ...wanted, name: deviceName, mac, mtu, state: "up" });
  if (present?.vxlan === undefined) return created(create, { deviceName });
  const { link, vxlan } = present;
  const mustBeNew =
    vxlan.id !== wanted.id || vxlan.port !== wanted.port || vxlan.learns || vxlan.local?.family !== local.family;
  if (mustBeNew) return created(create, { deviceName }, [deleteLink(link)]);
  const moved = {
    ...(vxlan.underlyingIndex === wanted.underlyingIndex ? {} : { underlyingIndex: wanted.underlyingIndex }),
    ...(isSame(vxlan.local, local) ? {} : { local }),
  };
  const { requests } = changed(present, { mtu, mac });
  const moves = Object.keys(moved).length === 0 ? [] : [changeVxlan(link, moved)];
  return { kind: "requests", requests: [...moves, ...requests], isNew: false };
}

/**
 * Replies may come by a tunnel though this host would send by another way, for example to a node whose route is just being
 * changed: a strict filter, which a host may have as the default of new interfaces, would drop them.
 */
const LOOSE = { reversePathFilter: 2 } as const;

function created(
  creation: NetlinkRequest,
  { deviceName, alias }: { readonly deviceName: string; readonly alias?: string },
  before: readonly NetlinkRequest[] = [],
): DeviceStep {
  const settings = changeLink({ name: deviceName }, { ipv4: LOOSE, ...(alias === undefined ? {} : { alias }) });
  return { kind: "requests", requests: [...before, creation, settings], isNew: true };
}

function changed(
  { link, reversePathFilter = LOOSE.reversePathFilter }: LinkWithVxlan,
  { mtu, mac, alias }: { readonly mtu: number; readonly mac?: Uint8Array; readonly alias?: string },
) {
  const change = {
    ...(link.mtu === mtu ? {} : { mtu }),
    ...(mac === undefined || Bun.deepEquals(link.mac, mac) ? {} : { mac }),
    ...(alias === undefined || link.alias === alias ? {} : { alias }),
    ...(link.isUp ? {} : { state: "up" as const }),
    ...(reversePathFilter === LOOSE.reversePathFilter ? {} : { ipv4: LOOSE }),
  };
  const requests = Object.keys(change).length === 0 ? [] : [changeLink(link, change)];
  return { kind: "requests" as const, requests, isNew: false };
}

function isSame(left: Address | undefined, right: Address): boolean {
  return left !== undefined && isSameAddress(left, right);
}
