/** Whether the gateway and the link of a new route can be used, as the kernel checks them. */
import type { Address } from "../../../src/ip/address.ts";
import type { Prefix } from "../../../src/ip/prefix.ts";
import { Refusal } from "../message.ts";
import type { ModelLink, ModelRoute } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { SCOPE } from "../wire.ts";
import { isOwnAddress, kindOfAddress, lookUp, lookUpIn } from "./lookup.ts";

export interface NextHop {
  readonly table: number;
  readonly scope: number;
  readonly linkIndex?: number;
  readonly gateway?: Address;
  readonly isOnLink: boolean;
}

const LOOPBACK = 1;

/** Returns the index of the link that packets leave through. */
export function checkNextHop4(namespace: Namespace, hop: NextHop): number {
  if (hop.scope > SCOPE.host) throw new Refusal("EINVAL", "Invalid scope");
  if (hop.scope === SCOPE.host) {
    if (hop.gateway !== undefined) throw new Refusal("EINVAL", "Route with host scope can not have a gateway");
    return existing(namespace, hop.linkIndex).index;
  }
  if (hop.gateway === undefined) {
    if (hop.isOnLink) throw new Refusal("EINVAL", "Invalid flags for nexthop - PERVASIVE and ONLINK can not be set");
    return requireUp(existing(namespace, hop.linkIndex)).index;
  }
  return hop.isOnLink ? onLinkGateway(namespace, hop, hop.gateway) : routedGateway(namespace, hop, hop.gateway);
}

function onLinkGateway(namespace: Namespace, hop: NextHop, gateway: Address): number {
  if (hop.scope >= SCOPE.link) throw new Refusal("EINVAL", "Nexthop has invalid scope");
  const link = requireUp(existing(namespace, hop.linkIndex));
  if (kindOfAddress(namespace, gateway) !== "unicast") throw new Refusal("EINVAL", "Nexthop has invalid gateway");
  return link.index;
}

function routedGateway(namespace: Namespace, hop: NextHop, gateway: Address): number {
  if (hop.scope >= SCOPE.link) throw new Refusal("EINVAL", "Nexthop has invalid scope");
  if (hop.linkIndex !== undefined) requireKnown(namespace, hop.linkIndex);
  const packet = {
    destination: gateway,
    scope: Math.max(hop.scope + 1, SCOPE.link),
    ...(hop.linkIndex === undefined ? {} : { linkIndex: hop.linkIndex }),
  };
  const inTable = lookUpIn(namespace, hop.table, packet);
  const found = usable(inTable) ? inTable : lookUp(namespace, packet);
  if (typeof found === "string") throw new Refusal(found, "Nexthop has invalid gateway");
  if (found.kind !== "unicast" && found.kind !== "local") throw new Refusal("EINVAL", "Nexthop has invalid gateway");
  return requireUp(existing(namespace, found.linkIndex)).index;
}

function usable(route: ModelRoute | undefined): route is ModelRoute {
  return route !== undefined && route.linkIndex !== undefined;
}

function requireKnown(namespace: Namespace, index: number): void {
  if (!namespace.links.has(index)) throw new Refusal("ENETUNREACH", "Nexthop has invalid gateway");
}

function existing(namespace: Namespace, index: number | undefined): ModelLink {
  const link = index === undefined ? undefined : namespace.links.get(index);
  if (link === undefined) throw new Refusal("ENODEV", "Device for nexthop does not exist");
  return link;
}

function requireUp(link: ModelLink): ModelLink {
  if (!link.isUp) throw new Refusal("ENETDOWN", "Nexthop device is not up");
  return link;
}

export interface NextHop6 extends NextHop {
  readonly destination: Prefix;
  readonly isDiscarding: boolean;
}

/** Returns the index of the link; that of the loopback interface for a route that discards. */
export function checkNextHop6(namespace: Namespace, hop: NextHop6): number {
  const asked = hop.linkIndex === undefined ? undefined : existing(namespace, hop.linkIndex);
  if (hop.isOnLink) {
    if (asked === undefined) throw new Refusal("EINVAL", "Nexthop device required for onlink");
    requireUp(asked);
  }
  if (hop.isDiscarding) return LOOPBACK;
  const index = hop.gateway === undefined ? asked?.index : checkGateway6(namespace, hop, hop.gateway);
  const link = existing(namespace, index);
  if (namespace.isSet(`net/ipv6/conf/${link.name}/disable_ipv6`))
    throw new Refusal("EACCES", "IPv6 is disabled on nexthop device");
  return requireUp(link).index;
}

function checkGateway6(namespace: Namespace, hop: NextHop6, gateway: Address): number | undefined {
  if (isOwnAddress(namespace, gateway, isLinkLocal(gateway) ? hop.linkIndex : undefined))
    throw new Refusal("EINVAL", "Gateway can not be a local address");
  if (isLinkLocal(gateway)) {
    if (hop.linkIndex === undefined) throw new Refusal("EINVAL", "Invalid gateway address");
    return hop.linkIndex;
  }
  if (gateway.value >> 120n === 0xffn) throw new Refusal("EINVAL", "Invalid gateway address");
  const packet = {
    destination: gateway,
    ...(hop.linkIndex === undefined ? {} : { linkIndex: hop.linkIndex }),
  };
  if (hop.isOnLink) return hop.linkIndex;
  const inTable = lookUpIn(namespace, hop.table, packet);
  const found = inTable ?? lookUp(namespace, packet);
  const isReachable = typeof found !== "string" && found.gateway === undefined && found.kind !== "local";
  if (!isReachable) throw new Refusal("EHOSTUNREACH");
  return hop.linkIndex ?? found.linkIndex;
}

export function isLinkLocal({ family, value }: Address): boolean {
  return family === 6 && value >> 118n === 0x3fan;
}
