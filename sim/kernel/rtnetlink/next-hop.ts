/** Whether the gateway and the link of a new route can be used, as the kernel checks them. */
import type { Address } from "../../../src/ip/address.ts";
import type { Prefix } from "../../../src/ip/prefix.ts";
import { Refusal } from "../message.ts";
import type { ModelLink, ModelRoute } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { SCOPE, TABLE } from "../wire.ts";
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
    if (asked === undefined) throw new Refusal("ENODEV", "Nexthop device required for onlink");
    requireUp(asked);
  }
  if (hop.isDiscarding) return LOOPBACK;
  const index = hop.gateway === undefined ? asked?.index : checkGateway6(namespace, hop, hop.gateway);
  const link = existing(namespace, index);
  if (namespace.isSet(`net/ipv6/conf/${link.name}/disable_ipv6`))
    throw new Refusal("EACCES", "IPv6 is disabled on nexthop device");
  return requireUp(link).index;
}

/** Returns the index of the link that the gateway is reached by. */
function checkGateway6(namespace: Namespace, hop: NextHop6, gateway: Address): number {
  const isOwn = (linkIndex: number) => isOwnAddress(namespace, gateway, isLinkLocal(gateway) ? linkIndex : undefined);
  if (hop.linkIndex !== undefined && isOwn(hop.linkIndex))
    throw new Refusal("EINVAL", "Gateway can not be a local address");
  const linkIndex = isLinkLocal(gateway) ? hop.linkIndex : linkOfGateway(namespace, hop, gateway);
  if (linkIndex === undefined) throw new Refusal("EINVAL", "Egress device not specified");
  if (linkIndex === LOOPBACK) throw new Refusal("EINVAL", "Egress device can not be loopback device for this route");
  if (hop.linkIndex === undefined && isOwn(linkIndex))
    throw new Refusal("EINVAL", "Gateway can not be a local address");
  return linkIndex;
}

function linkOfGateway(namespace: Namespace, hop: NextHop6, gateway: Address): number | undefined {
  if (gateway.value >> 120n === 0xffn || gateway.value === 0n) throw new Refusal("EINVAL", "Invalid gateway address");
  if (hop.isOnLink) {
    const other = lookUpIn(namespace, TABLE.main, { destination: gateway });
    const isMismatch = isDirect(other) && other.destination.network.value !== 0n && other.linkIndex !== hop.linkIndex;
    if (isMismatch) throw new Refusal("EINVAL", "Nexthop has invalid gateway or device mismatch");
    return hop.linkIndex;
  }
  const packet = { destination: gateway, ...(hop.linkIndex === undefined ? {} : { linkIndex: hop.linkIndex }) };
  const inTable = lookUpIn(namespace, hop.table, packet);
  const found = isDirect(inTable) ? inTable : lookUp(namespace, packet);
  if (!isDirect(found)) throw new Refusal("EHOSTUNREACH");
  return hop.linkIndex ?? found.linkIndex;
}

/** Without a gateway of its own. Routes through the loopback interface discard. */
function isDirect(route: ModelRoute | string | undefined): route is ModelRoute {
  if (route === undefined || typeof route === "string" || route.gateway !== undefined) return false;
  return route.kind === "local" || route.linkIndex !== LOOPBACK;
}

export function isLinkLocal({ family, value }: Address): boolean {
  return family === 6 && value >> 118n === 0x3fan;
}
