/**
 * How the routes in the kernel differ from those that are wanted. Pure.
 *
 *   wanted ──┬─ nothing in its place ─────────────────────────▶ missing
 *            ├─ another one of ours, or one made by hand ─────▶ changed
 *            └─ one of another program ───────────────────────▶ clash: it stays
 *   present, ours, and not wanted ────────────────────────────▶ stale
 *
 * The place of a route is its destination, table and priority: the kernel keeps one route in it, or several of IPv6.
 */
import { isSameAddress } from "../ip/address.ts";
import { MAIN_TABLE, ROUTE_PROTOCOL, type Route } from "../linux/rtnetlink/route.ts";

export type RouteDifference =
  | { readonly kind: "missing"; readonly wanted: Route }
  | { readonly kind: "changed"; readonly wanted: Route; readonly present: Route }
  | { readonly kind: "clash"; readonly wanted: Route; readonly present: Route }
  | { readonly kind: "stale"; readonly present: Route };

export interface PresentRoutes {
  readonly routes: readonly Route[];
  /** Whether this product made it, so that it may be replaced and removed. */
  readonly isOwn: (route: Route) => boolean;
}

/** What the kernel uses if a route has no priority. */
const DEFAULT_PRIORITY = { 4: 0, 6: 1024 } as const;

export function compareRoutes(wanted: readonly Route[], { routes, isOwn }: PresentRoutes): readonly RouteDifference[] {
  const places = Map.groupBy(routes, placeOf);
  const served = new Set<Route>();
  const differences = wanted.flatMap((route): RouteDifference[] => {
    const present = places.get(placeOf(route)) ?? [];
    const serving = present.find((each) => isServedBy(route, each));
    if (serving !== undefined) {
      served.add(serving);
      return [];
    }
    const [first] = present;
    if (first === undefined) return [{ kind: "missing", wanted: route }];
    const replaceable = present.find((each) => isOwn(each) || isMadeByHand(each));
    if (replaceable === undefined) return [{ kind: "clash", wanted: route, present: first }];
    served.add(replaceable);
    return [{ kind: "changed", wanted: route, present: replaceable }];
  });
  const stale = routes.filter((route) => !served.has(route) && isOwn(route));
  return [...differences, ...stale.map((present): RouteDifference => ({ kind: "stale", present }))];
}

/** Two looks at the kernel that see the same difference have the same text. */
export function identityOf(difference: RouteDifference): string {
  const route = difference.kind === "stale" ? difference.present : difference.wanted;
  return `${difference.kind} ${placeOf(route)} ${route.linkIndex}`;
}

/** Whether the kernel has room for only one of them. */
export function hasSamePlace(left: Route, right: Route): boolean {
  return placeOf(left) === placeOf(right);
}

/** Not for people: formatting the addresses of thousands of routes would take most of the time. */
function placeOf({ destination: { network, length }, table = MAIN_TABLE, priority }: Route): string {
  const { family, value } = network;
  return `${family} ${value.toString(16)} ${length} ${table} ${priority ?? DEFAULT_PRIORITY[family]}`;
}

/** Whether the present route does what is wanted. Attributes that do not change where packets go are left to the operator. */
export function isServedBy(wanted: Route, present: Route): boolean {
  if ((present.kind ?? "unicast") !== (wanted.kind ?? "unicast") || present.linkIndex !== wanted.linkIndex)
    return false;
  if (wanted.gateway === undefined || present.gateway === undefined) return wanted.gateway === present.gateway;
  return isSameAddress(wanted.gateway, present.gateway);
}

/** What `ip route` leaves behind. A routing daemon or a configured route has another origin. */
function isMadeByHand({ protocol }: Route): boolean {
  return protocol === undefined || protocol === ROUTE_PROTOCOL.boot;
}
