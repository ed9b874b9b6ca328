/** Requests about routes. */
import { type Address, addressBits, addressFromBytes, type Family } from "../../../src/ip/address.ts";
import { hasHostBits, isSamePrefix, type Prefix, prefixAround } from "../../../src/ip/prefix.ts";
import { attributesOf, type KernelRequest, nestedAttributes, numberIn, Refusal } from "../message.ts";
import type { ModelRoute, RouteKind } from "../model.ts";
import type { Namespace } from "../namespace.ts";
import { ADDRESS_FLAG, familyOf, METRIC, ROUTE_FLAG, ROUTE_KIND, RTA, SCOPE, TABLE } from "../wire.ts";
import { kindOfAddress } from "./lookup.ts";
import { checkNextHop4, checkNextHop6, type NextHop } from "./next-hop.ts";
import { deleteFirst, insertRoute, isSame } from "./route-table.ts";

const HEADER_LENGTH = 12;
/** What IPv6 uses if no priority is given. */
const USER_PRIORITY = 1024;
const LOOPBACK = 1;
const LARGEST_MTU = 65_535 - 15;
const LARGEST_SEGMENT = 65_535 - 40;
const DISCARDING: readonly RouteKind[] = ["blackhole", "unreachable", "prohibit", "throw"];
/** The smallest scope that makes sense for a kind. */
const LEAST_SCOPE: Partial<Record<RouteKind, number>> = {
  local: SCOPE.host,
  broadcast: SCOPE.link,
  anycast: SCOPE.link,
};

interface AskedRoute extends NextHop {
  readonly family: Family;
  readonly destination: Prefix;
  readonly kind: RouteKind | undefined;
  readonly protocol: number;
  readonly priority: number;
  readonly preferredSource?: Address;
  readonly mtu?: number;
  readonly advertisedSegment?: number;
}

export function newRoute(namespace: Namespace, request: KernelRequest): boolean {
  const asked = readRoute(request);
  const route = asked.family === 4 ? checked4(namespace, asked) : checked6(namespace, asked);
  return insertRoute(namespace, route, { flags: request.flags, cause: request });
}

function checked4(namespace: Namespace, asked: AskedRoute): ModelRoute {
  const { kind, scope, destination } = asked;
  if (hasHostBits({ address: destination.network, length: destination.length }))
    throw new Refusal("EINVAL", "Invalid prefix for given prefix length");
  if (asked.table === TABLE.local) namespace.hasLocalIpv4Table = true;
  if (kind === undefined || scope < (LEAST_SCOPE[kind] ?? SCOPE.universe)) throw new Refusal("EINVAL", "Invalid scope");
  if (DISCARDING.includes(kind)) {
    if (asked.linkIndex === undefined && asked.gateway === undefined) return routeOf(asked, { kind, scope });
    throw new Refusal("EINVAL", "Gateway, device and multipath can not be specified for this route type");
  }
  const linkIndex = checkNextHop4(namespace, asked);
  const { preferredSource } = asked;
  if (preferredSource !== undefined && kindOfAddress(namespace, preferredSource) !== "local")
    throw new Refusal("EINVAL", "Invalid prefsrc address");
  return routeOf(asked, { kind, scope, linkIndex });
}

function checked6(namespace: Namespace, asked: AskedRoute): ModelRoute {
  const destination = prefixAround(asked.destination.network, asked.destination.length);
  const priority = asked.priority === 0 ? USER_PRIORITY : asked.priority;
  const { kind = "unicast" } = asked;
  namespace.ipv6Tables.add(asked.table);
  const more = { kind, scope: SCOPE.universe };
  const isDiscarding = DISCARDING.includes(kind);
  const linkIndex = checkNextHop6(namespace, { ...asked, destination, isDiscarding });
  const { preferredSource } = asked;
  if (preferredSource !== undefined && !isUsableSource(namespace, preferredSource, linkIndex))
    throw new Refusal("EINVAL", "Invalid source address");
  const route = routeOf({ ...asked, destination, priority }, { ...more, linkIndex });
  if (!isDiscarding) return route;
  const { gateway: _none, ...rest } = route;
  return rest;
}

/** An address of its link only for packets through this link. */
function isUsableSource(namespace: Namespace, source: Address, linkIndex: number): boolean {
  return namespace.addresses.some(
    (each) =>
      isSame(each.address, source) &&
      (each.flags & ADDRESS_FLAG.tentative) === 0 &&
      (each.linkIndex === linkIndex || each.scope === SCOPE.universe),
  );
}

function routeOf(
  asked: AskedRoute,
  more: { readonly kind: RouteKind; readonly scope: number; readonly linkIndex?: number },
): ModelRoute {
  const { destination, table, priority, protocol, gateway, preferredSource, mtu, advertisedSegment } = asked;
  return {
    destination,
    table,
    priority,
    protocol,
    isOnLink: asked.isOnLink,
    ...(gateway === undefined ? {} : { gateway }),
    ...(preferredSource === undefined ? {} : { preferredSource }),
    ...(mtu === undefined ? {} : { mtu }),
    ...(advertisedSegment === undefined ? {} : { advertisedSegment }),
    ...more,
  };
}

export function deleteRoute(namespace: Namespace, request: KernelRequest): boolean {
  const asked = readRoute(request);
  if (asked.family === 4 && hasHostBits({ address: asked.destination.network, length: asked.destination.length }))
    throw new Refusal("EINVAL", "Invalid prefix for given prefix length");
  const destination = prefixAround(asked.destination.network, asked.destination.length);
  const isGone = deleteFirst(
    namespace,
    (route) => route.table === asked.table && isSamePrefix(route.destination, destination) && isMeant(route, asked),
    request,
  );
  if (!isGone) throw new Refusal(meansNoRoute(namespace, asked) ? "ENOENT" : "ESRCH");
  return true;
}

/** Each table of IPv6 ends with an entry that stands for no route, which nobody can delete. */
function meansNoRoute(namespace: Namespace, asked: AskedRoute): boolean {
  if (asked.family === 4 || asked.destination.length > 0 || !namespace.ipv6Tables.has(asked.table)) return false;
  if (asked.linkIndex !== undefined && asked.linkIndex !== LOOPBACK) return false;
  return asked.gateway === undefined && asked.priority === 0 && asked.protocol === 0;
}

/** What is absent matches everything. IPv6 does not look at the kind and the scope. */
function isMeant(route: ModelRoute, asked: AskedRoute): boolean {
  if (asked.linkIndex !== undefined && route.linkIndex !== asked.linkIndex) return false;
  if (asked.gateway !== undefined && !isSame(route.gateway, asked.gateway)) return false;
  if (asked.priority !== 0 && route.priority !== asked.priority) return false;
  if (asked.protocol !== 0 && route.protocol !== asked.protocol) return false;
  if (asked.family === 6) return true;
  if (asked.kind !== undefined && route.kind !== asked.kind) return false;
  if (asked.scope !== SCOPE.nowhere && route.scope !== asked.scope) return false;
  if (asked.preferredSource !== undefined && !isSame(route.preferredSource, asked.preferredSource)) return false;
  if (asked.mtu !== undefined && route.mtu !== asked.mtu) return false;
  return asked.advertisedSegment === undefined || route.advertisedSegment === asked.advertisedSegment;
}

function readRoute(request: KernelRequest): AskedRoute {
  const attributes = attributesOf(request, HEADER_LENGTH);
  const { payload } = request;
  const family = familyOf(payload.getUint8(0));
  if (family === undefined) throw new Refusal("EOPNOTSUPP");
  const length = payload.getUint8(1);
  if (length > addressBits(family)) throw new Refusal("EINVAL", "Invalid prefix length");
  const addressIn = (type: number) => addressFromBytes(attributes.get(type) ?? new Uint8Array());
  const gateway = addressIn(RTA.gateway);
  const preferredSource = addressIn(RTA.preferredSource);
  const linkIndex = numberIn(attributes, RTA.link);
  const metrics = nestedAttributes(attributes.get(RTA.metrics));
  const [mtu, advertisedSegment] = [numberIn(metrics, METRIC.mtu), numberIn(metrics, METRIC.advertisedSegment)];
  return {
    family,
    destination: { network: addressIn(RTA.destination) ?? { family, value: 0n }, length },
    kind: kindOf(payload.getUint8(7)),
    scope: payload.getUint8(6),
    table: numberIn(attributes, RTA.table) ?? tableOf(payload.getUint8(4)),
    protocol: payload.getUint8(5),
    priority: numberIn(attributes, RTA.priority) ?? 0,
    isOnLink: (payload.getUint32(8, true) & ROUTE_FLAG.onLink) !== 0,
    ...(gateway === undefined ? {} : { gateway }),
    ...(preferredSource === undefined ? {} : { preferredSource }),
    ...(linkIndex === undefined ? {} : { linkIndex }),
    ...(mtu === undefined ? {} : { mtu: Math.min(mtu, LARGEST_MTU) }),
    ...(advertisedSegment === undefined ? {} : { advertisedSegment: Math.min(advertisedSegment, LARGEST_SEGMENT) }),
  };
}

function tableOf(number: number): number {
  return number === 0 ? TABLE.main : number;
}

/** 0 stands for any kind in a request to delete. */
function kindOf(number: number): RouteKind | undefined {
  for (const [kind, value] of Object.entries(ROUTE_KIND)) if (value === number) return kind as RouteKind;
  return undefined;
}
