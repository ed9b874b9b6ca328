/** What the log says about routes between nodes. */
import { type Address, formatAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { Route } from "../../linux/rtnetlink/route.ts";

/** More than this are counted, not listed. */
const LISTED = 3;

/** What was corrected, or removed. */
export interface Corrections {
  /** Their names. */
  readonly devices: readonly string[];
  /** Of tunnel devices. */
  readonly addresses?: readonly Address[];
  readonly routes: readonly Route[];
  /** The number of neighbours and forwarding entries. */
  readonly entries: number;
}

/** One line; `undefined` if nothing was done. */
export function describeCorrections(verb: "Restored" | "Removed stale", done: Corrections): string | undefined {
  const parts = [
    ...done.devices.map((name) => `interface "${name}"`),
    ...(done.addresses ?? []).map((address) => `tunnel address ${formatAddress(address)}`),
    ...(done.routes.length === 0 ? [] : [`routes to other nodes: ${listed(done.routes.map(destinationOf))}`]),
    ...(done.entries === 0 ? [] : [`neighbours and forwarding entries of tunnels: ${done.entries}`]),
  ];
  return parts.length === 0 ? undefined : `${verb} ${parts.join("; ")}`;
}

export function describeClash(wanted: Route, present: Route): string {
  const gateway = present.gateway === undefined ? "" : ` via ${formatAddress(present.gateway)}`;
  const place = `${present.kind ?? "unicast"}${gateway}, protocol ${present.protocol}`;
  return `Cannot set the route to ${formatPrefix(wanted.destination)}: another program has one (${place})`;
}

export function describeUnreached(routes: readonly string[]): string {
  return `Cannot set routes to other nodes: no interface of this host is in the subnet of the next hop of ${listed(routes)}`;
}

export function describeRefusals(refusals: readonly string[]): string {
  return `The kernel refused changes of routes to other nodes: ${listed(refusals, "; ")}`;
}

function destinationOf({ destination }: Route): string {
  return formatPrefix(destination);
}

function listed(items: readonly string[], separator = ", "): string {
  const rest = items.length - LISTED;
  return `${items.slice(0, LISTED).join(separator)}${rest > 0 ? ` and ${rest} more` : ""}`;
}
