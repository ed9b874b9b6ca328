/**
 * The routing tables. The routes of one destination in one table stand in the order of their priorities; the kernel tries
 * them in this order.
 */
import { type Address, type Family, isSameAddress } from "../../../src/ip/address.ts";
import { isSamePrefix } from "../../../src/ip/prefix.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import { type Cause, Refusal } from "../message.ts";
import type { ModelRoute } from "../model.ts";
import { type Namespace, removeWhere } from "../namespace.ts";
import { announceRoute } from "./route-message.ts";

export interface RouteInsertion {
  /** Of the netlink message: create, replace, exclusive. */
  readonly flags: number;
  readonly cause?: Cause;
}

/** Throws if the flags do not allow it. Returns whether anything changed. */
export function insertRoute(namespace: Namespace, route: ModelRoute, insertion: RouteInsertion): boolean {
  const { flags } = insertion;
  const rivals = namespace.routes.filter((each) => hasSameKey(each, route));
  if (rivals.length > 0 && (flags & FLAG.exclusive) !== 0) throw new Refusal("EEXIST");
  if (rivals.length > 0 && (flags & FLAG.replace) !== 0) return replaceOneOf(namespace, rivals, route, insertion);
  if (rivals.some((each) => isDuplicate(each, route))) throw new Refusal("EEXIST");
  if ((flags & FLAG.create) === 0) throw new Refusal("ENOENT");
  place(namespace.routes, route);
  announceRoute(namespace, route, "new", insertion.cause);
  return true;
}

/** IPv4 replaces the first route, unless it is the same already. IPv6 prefers one that also has (or lacks) a gateway. */
function replaceOneOf(
  namespace: Namespace,
  rivals: readonly ModelRoute[],
  route: ModelRoute,
  { cause }: RouteInsertion,
): boolean {
  const [first] = rivals;
  if (route.destination.network.family === 4) {
    const same = rivals.find((each) => isSameRoute(each, route));
    if (same !== undefined && same !== first) throw new Refusal("EEXIST");
    if (same !== undefined) return false;
  }
  const alike =
    route.destination.network.family === 4
      ? first
      : (rivals.find((each) => (each.gateway === undefined) === (route.gateway === undefined)) ?? first);
  if (alike !== undefined) namespace.routes[namespace.routes.indexOf(alike)] = route;
  announceRoute(namespace, route, "new", cause);
  return true;
}

/** The first route that fits is deleted, and reported. */
export function deleteFirst(namespace: Namespace, fits: (route: ModelRoute) => boolean, cause?: Cause): boolean {
  const at = namespace.routes.findIndex(fits);
  const [route] = at === -1 ? [] : namespace.routes.splice(at, 1);
  if (route === undefined) return false;
  announceRoute(namespace, route, "delete", cause);
  return true;
}

/** All that fit. The kernel reports those of IPv6 only. */
export function flushRoutes(namespace: Namespace, family: Family, fits: (route: ModelRoute) => boolean): void {
  const gone = removeWhere(namespace.routes, (route) => route.destination.network.family === family && fits(route));
  if (family === 6) for (const route of gone) announceRoute(namespace, route, "delete");
}

function hasSameKey(one: ModelRoute, other: ModelRoute): boolean {
  return one.priority === other.priority && hasSamePlace(one, other);
}

function hasSamePlace(one: ModelRoute, other: ModelRoute): boolean {
  return one.table === other.table && isSamePrefix(one.destination, other.destination);
}

function isDuplicate(one: ModelRoute, other: ModelRoute): boolean {
  if (one.destination.network.family === 4) return isSameRoute(one, other);
  return one.linkIndex === other.linkIndex && isSame(one.gateway, other.gateway);
}

function isSameRoute(one: ModelRoute, other: ModelRoute): boolean {
  return (
    one.kind === other.kind &&
    one.protocol === other.protocol &&
    one.scope === other.scope &&
    one.linkIndex === other.linkIndex &&
    one.isOnLink === other.isOnLink &&
    one.mtu === other.mtu &&
    one.advertisedSegment === other.advertisedSegment &&
    isSame(one.gateway, other.gateway) &&
    isSame(one.preferredSource, other.preferredSource)
  );
}

export function isSame(one: Address | undefined, other: Address | undefined): boolean {
  return one === undefined || other === undefined ? one === other : isSameAddress(one, other);
}

/** Behind those of the same destination with the same or a smaller priority. */
function place(routes: ModelRoute[], route: ModelRoute): void {
  const before = routes.findIndex((each) => each.priority > route.priority && hasSamePlace(each, route));
  if (before === -1) routes.push(route);
  else routes.splice(before, 0, route);
}
