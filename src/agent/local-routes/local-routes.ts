/**
 * The routes from this host to its own workloads: what their endpoints say, compared with links and routes of the
 * kernel. Pure.
 *
 *   link of a workload (name, veth, mark)
 *     ├─ its endpoint is of the same container   ──▶ a route to each address of the endpoint, and to no other
 *     ├─ its endpoint is of another container    ──▶ nothing is touched: the record is older or newer than the link
 *     │    └─ but if endpoints are pods, their users can write the container: of the installed network's links, routes to
 *     │       addresses that the endpoint does not have go (the datastore has the record before the link is made), none is added
 *     ├─ no endpoint, of the installed network   ──▶ nothing is removed: its container runs, so rather the datastore has lost
 *     │    its records. If an endpoint here has the address, the route goes to that one
 *     └─ no endpoint, of another network         ──▶ nothing is touched: its datastore may be another one
 */
import { identity } from "../../identity.ts";
import { type Address, addressBits, isSameAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import { isMarkOf, isMarkOfContainer, isMarkOfInterface } from "../../ipam/link-mark.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { MAIN_TABLE, ROUTE_PROTOCOL, type Route } from "../../linux/rtnetlink/route.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { compareRoutes, type RouteDifference } from "../../routing/compare-routes.ts";
import { workloadRoute } from "../../routing/workload-route.ts";

/** What an endpoint of this node says about routes. */
export interface RoutedEndpoint {
  readonly interfaceName: string;
  readonly containerId: string;
  /** Of the interface in the container. */
  readonly ifname: string;
  readonly addresses: readonly Address[];
}

export interface HostState {
  readonly links: readonly Link[];
  /** At least those to single addresses in the main table. */
  readonly routes: readonly Route[];
}

/** `undefined` if the endpoint belongs to another node, or was not recorded by an ADD. */
export function routedEndpoint({ spec }: WorkloadEndpoint, node: string): RoutedEndpoint | undefined {
  const { interfaceName, containerID: containerId, endpoint: ifname, ipNetworks = [] } = spec;
  if (spec.node !== node || !interfaceName || !containerId || !ifname) return undefined;
  const addresses = ipNetworks.flatMap((text) => parseInterfaceAddress(text)?.address ?? []);
  return { interfaceName, containerId, ifname, addresses };
}

export function isWorkloadLink({ name, kind }: Link): boolean {
  return name.startsWith(identity.interfacePrefix) && kind === "veth";
}

/** Whether it is the link that the ADD of this endpoint made. */
export function isLinkOf({ containerId, ifname }: RoutedEndpoint, link: Link): boolean {
  return isWorkloadLink(link) && link.alias !== undefined && isMarkOfContainer({ containerId, ifname }, link.alias);
}

/** Whether an ADD of the installed network made it for a container of this endpoint's pod, whose name the link has. */
function isLinkOfPod({ ifname }: RoutedEndpoint, { alias }: Link, network: string): boolean {
  return alias !== undefined && isMarkOf(network, alias) && isMarkOfInterface(ifname, alias);
}

/** The links of the installed network that no endpoint names: a container runs at their other end, or they would be gone. */
export function unknownLinks(
  endpoints: Iterable<Pick<RoutedEndpoint, "interfaceName">>,
  links: readonly Link[],
  network: string,
): readonly Link[] {
  const known = new Set(Array.from(endpoints, ({ interfaceName }) => interfaceName));
  return links.filter(
    (link) =>
      isWorkloadLink(link) && link.alias !== undefined && isMarkOf(network, link.alias) && !known.has(link.name),
  );
}

/** A route to a single address in the main table. */
export function isHostRoute({ destination, table = MAIN_TABLE }: Route): boolean {
  return table === MAIN_TABLE && destination.length === addressBits(destination.network.family);
}

export interface LocalNetwork {
  /** The name of the installed network. */
  readonly network: string;
  /** Users can write what is recorded of them, but not their names. */
  readonly areEndpointsPods: boolean;
}

export function localRouteDifferences(
  endpoints: readonly RoutedEndpoint[],
  { links, routes }: HostState,
  { network, areEndpointsPods }: LocalNetwork,
): readonly RouteDifference[] {
  const owners = new Map(endpoints.map((endpoint) => [endpoint.interfaceName, endpoint]));
  const claimedTwice = addressesClaimedTwice(endpoints);
  const isClaimedTwice = (address: Address) => claimedTwice.has(keyOf(address));
  const isPresent = (address: Address, { index }: Link) =>
    routes.some(
      (each) => each.linkIndex === index && isHostRoute(each) && isSameAddress(each.destination.network, address),
    );
  const wanted: Route[] = [];
  const unknown = new Set(unknownLinks(endpoints, links, network).map(({ index }) => index));
  const ownLinks = new Set(unknown);
  for (const link of links.filter(isWorkloadLink)) {
    const owner = owners.get(link.name);
    if (owner === undefined) continue;
    const isOfContainer = isLinkOf(owner, link);
    if (!isOfContainer && !(areEndpointsPods && isLinkOfPod(owner, link, network))) continue;
    ownLinks.add(link.index);
    // A link that is down cannot have routes.
    const addresses = link.isUp ? owner.addresses.filter((address) => !isClaimedTwice(address)) : [];
    const routed = addresses.filter((address) => isOfContainer || isPresent(address, link));
    wanted.push(...routed.map((address) => ({ ...workloadRoute(address), linkIndex: link.index })));
  }
  const isOwn = ({ protocol, linkIndex, destination }: Route) =>
    protocol === ROUTE_PROTOCOL.own &&
    linkIndex !== undefined &&
    ownLinks.has(linkIndex) &&
    !isClaimedTwice(destination.network);
  const differences = compareRoutes(wanted, { routes: routes.filter(isHostRoute), isOwn });
  return differences.filter((each) => each.kind !== "stale" || !unknown.has(each.present.linkIndex ?? 0));
}

/** Two endpoints with one address: which of them is right is not decided here. */
function addressesClaimedTwice(endpoints: readonly RoutedEndpoint[]): ReadonlySet<string> {
  const once = new Set<string>();
  const addresses = endpoints.flatMap((endpoint) => endpoint.addresses.map(keyOf));
  return new Set(addresses.filter((key) => once.size === once.add(key).size));
}

function keyOf({ family, value }: Address): string {
  return `${family} ${value.toString(16)}`;
}
