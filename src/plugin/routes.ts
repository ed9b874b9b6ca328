/**
 * The routes of a container: those of the IPAM plugin, else the default routes,
 * and both if the config says so. All lead to the host, whatever gateway the IPAM
 * plugin named: there is no other.
 * Pure.
 */
import type { CniRoute } from "../cni/result.ts";
import { PluginError } from "../errors.ts";
import { type Address, type Family, formatAddress } from "../ip/address.ts";
import { formatPrefix, type Prefix, parseInterfaceAddress, prefixAround } from "../ip/prefix.ts";
import { quoted } from "../quote.ts";
import { defaultRoute, gatewayOf, type WantedRoute } from "./wiring-plan.ts";

export interface RouteSources {
  readonly addresses: readonly Address[];
  /** From the IPAM plugin's result; may be empty. */
  readonly given: readonly CniRoute[];
  readonly includeDefaultRoutes: boolean;
}

/** Routes of a family without an address are left out. */
export function chooseRoutes({ addresses, given, includeDefaultRoutes }: RouteSources): readonly CniRoute[] {
  const families = ([4, 6] as const).filter((family) => addresses.some((address) => address.family === family));
  const own = given.map((route) => ({ ...route, destination: formatPrefix(destinationOf(route)) }));
  const isDefaultGiven = (family: Family) => own.some((route) => route.destination === defaultText(family));
  const defaults = families.filter((family) => given.length === 0 || (includeDefaultRoutes && !isDefaultGiven(family)));
  return [...own, ...defaults.map((family): CniRoute => ({ destination: defaultText(family) }))]
    .map((route) => ({ route, family: familyOf(route) }))
    .filter(({ family }) => families.includes(family))
    .map(({ route, family }) => ({ ...route, gateway: formatAddress(gatewayOf(family)) }));
}

/** The route to set in the kernel. */
export function wantedRoute(route: CniRoute): WantedRoute {
  const { mtu, advmss: advertisedSegment, priority, table } = route;
  return { destination: destinationOf(route), mtu, advertisedSegment, priority, table };
}

/** Host bits are accepted, as in `ip route`. */
function destinationOf({ destination }: CniRoute): Prefix {
  const read = parseInterfaceAddress(destination);
  if (read !== undefined) return prefixAround(read.address, read.length);
  throw new PluginError(
    "delegate-failed",
    `Cannot use a route of the IPAM plugin: ${quoted(destination)} is not a network`,
  );
}

function familyOf({ destination }: CniRoute): Family {
  return destination.includes(":") ? 6 : 4;
}

function defaultText(family: Family): string {
  return formatPrefix(defaultRoute(family).destination);
}
