/** What the log says about routes. */
import { counted, listed as listedNames } from "../../counted.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import type { Route } from "../../linux/rtnetlink/route.ts";
import type { RouteDifference } from "../../routing/compare-routes.ts";

/** More routes than this are counted, not listed. */
const LISTED = 3;

/** One line for all routes that were restored, one for all that were removed. */
export function describeResolved(done: readonly RouteDifference[], links: readonly Link[]): readonly string[] {
  const restored = done.flatMap((each) => (each.kind === "missing" || each.kind === "changed" ? [each.wanted] : []));
  const removed = done.flatMap((each) => (each.kind === "stale" ? [each.present] : []));
  return [
    ...(restored.length === 0 ? [] : [`Restored routes of pods: ${listed(restored, links)}`]),
    ...(removed.length === 0 ? [] : [`Removed stale routes of pods: ${listed(removed, links)}`]),
  ];
}

/** `links`: of containers that run, and that the datastore does not know. */
export function describeUnknown(links: readonly Link[]): string {
  const names = listedNames(links.map(({ alias, name }) => alias ?? name));
  const verb = links.length === 1 ? "runs" : "run";
  return (
    `${counted(links.length, "container")} ${verb} here that the datastore does not know (${names}): was it lost? ` +
    "Their routes stay; put the copy of the datastore back, or remove these containers"
  );
}

export function describeClash(wanted: Route, present: Route, links: readonly Link[]): string {
  const gateway = present.gateway === undefined ? "" : ` via ${formatAddress(present.gateway)}`;
  const place = `${present.kind ?? "unicast"}${gateway}${onLink(present, links)}`;
  return `Cannot restore the route of a pod to ${listed([wanted], links)}: another program has one (${place}, protocol ${present.protocol})`;
}

export function describeRefusal(difference: RouteDifference, reason: string, links: readonly Link[]): string {
  const route = difference.kind === "stale" ? difference.present : difference.wanted;
  return `Cannot correct the route of a pod to ${listed([route], links)}: ${reason}`;
}

function listed(routes: readonly Route[], links: readonly Link[]): string {
  const first = routes.slice(0, LISTED).map((route) => `${formatPrefix(route.destination)}${onLink(route, links)}`);
  const rest = routes.length - first.length;
  return `${first.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

function onLink({ linkIndex }: Route, links: readonly Link[]): string {
  const link = links.find(({ index }) => index === linkIndex);
  return link === undefined ? "" : ` on interface "${link.name}"`;
}
