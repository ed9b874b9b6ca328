/** Which networks the nodes of a cluster send to their peers, and with which communities. Pure. */

import { type Address, addressBits } from "../../ip/address.ts";
import {
  comparePrefixes,
  formatPrefix,
  type Prefix,
  parsePrefix,
  prefixContains,
  prefixCovers,
  singlePrefix,
} from "../../ip/prefix.ts";
import { type BgpSettings, isCommunity } from "../../model/bgp-configuration.ts";
import { quoted } from "../../quote.ts";
import type { RoutedNode, RoutedPool } from "../facts.ts";
import type { LocalServices, PlacedService } from "./facts.ts";
import type { BgpAdvertisement, BgpCommunity, BgpPlan } from "./plan.ts";

/** The orchestrator's label of nodes that must not receive packets for services from outside. */
const EXCLUDED_FROM_SERVICES = "node.kubernetes.io/exclude-from-external-load-balancers";

/**
 * Users create Services: their single addresses must not use up what other nodes accept of this one, 10,000 routes, above
 * which they take none of its blocks either.
 */
const MOST_SINGLE_ADDRESSES = 5_000;

export interface AnnouncementFacts {
  readonly self: RoutedNode | undefined;
  readonly nodes: readonly RoutedNode[];
  readonly pools: readonly RoutedPool[];
  readonly announced: Iterable<Prefix>;
  readonly outsidePools: Iterable<Prefix>;
  readonly settings: BgpSettings;
  readonly localServices: LocalServices;
  /** By the last configuration of BIRD. */
  readonly announcedBefore: readonly Prefix[];
}

export function planAnnouncements(
  facts: AnnouncementFacts,
): Pick<BgpPlan, "announced" | "exported" | "accepted" | "withheld" | "tunnelled" | "services" | "problems"> {
  const { self, nodes, pools, settings } = facts;
  const announced = [...facts.announced];
  const services = serviceNetworks(settings).all;
  const shared = [
    ...pools.flatMap((pool) => (pool.isExported ? [pool.prefix] : [])),
    ...nodes.flatMap(({ podCidrs }) => podCidrs),
    ...services,
  ];
  const { own, problems } =
    self?.labels[EXCLUDED_FROM_SERVICES] === "true" ? { own: [], problems: [] } : ownServices(facts);
  return {
    announced: sorted([...announced, ...own]),
    problems,
    exported: sorted([
      ...shared,
      // Blocks whose pool was deleted: their pods keep their addresses.
      ...announced.filter((prefix) => !pools.some((pool) => prefixCovers(pool.prefix, prefix))),
    ]),
    accepted: sorted([...shared, ...facts.outsidePools]),
    services: sorted(services),
    withheld: sorted(pools.flatMap((pool) => (pool.isExported ? [] : [pool.prefix]))),
    tunnelled: sorted(pools.flatMap((pool) => (pool.mode.kind === "unencapsulated" ? [] : [pool.prefix]))),
  };
}

/**
 * The networks, and each address in them of a Service that only some nodes have, if this node is one of them. While that is
 * not known, what was announced before stays: an outage of the API must neither withdraw it nor lead packets to other nodes.
 */
function ownServices({ settings, localServices, announcedBefore }: AnnouncementFacts): OwnServices {
  const networks = serviceNetworks(settings);
  const before = new Map(announcedBefore.filter(isSingle).map((prefix) => [formatPrefix(prefix), prefix]));
  if (localServices === "unknown") {
    const within = (prefix: Prefix) => networks.all.some((network) => prefixCovers(network, prefix));
    const own = [...networks.all.filter((prefix) => !isSingle(prefix)), ...[...before.values()].filter(within)];
    return { own, problems: [] };
  }
  const singles = localServices.flatMap((service) =>
    addressesIn(networks, service).map((address) => {
      const prefix = singlePrefix(address);
      const { families } = service;
      const isHere = families === "unknown" ? before.has(formatPrefix(prefix)) : families.has(address.family);
      return { prefix, isHere };
    }),
  );
  const all = sorted(singles.flatMap(({ prefix, isHere }) => (isHere ? [prefix] : [])));
  // Those that came first stay.
  const isNew = (prefix: Prefix) => Number(!before.has(formatPrefix(prefix)));
  const here = all.toSorted((left, right) => isNew(left) - isNew(right)).slice(0, MOST_SINGLE_ADDRESSES);
  const problems =
    all.length === here.length
      ? []
      : [
          `${all.length - here.length} single addresses of Services with externalTrafficPolicy: Local are not announced: a node announces ${MOST_SINGLE_ADDRESSES} at most`,
        ];
  // A network may be a single address: then nobody else announces it either.
  const elsewhere = new Set(singles.map(({ prefix }) => formatPrefix(prefix)));
  return { own: [...networks.all.filter((prefix) => !elsewhere.has(formatPrefix(prefix))), ...here], problems };
}

interface OwnServices {
  readonly own: readonly Prefix[];
  readonly problems: readonly string[];
}

function isSingle({ network, length }: Prefix): boolean {
  return length === addressBits(network.family);
}

/** Whether this is an address that single routes lead to depends on where it is written. */
export function addressesIn(
  networks: ServiceNetworks,
  { clusterIPs, externalIPs, loadBalancerIPs }: Omit<PlacedService, "families">,
): readonly Address[] {
  const within = (addresses: readonly Address[], prefixes: readonly Prefix[]) =>
    addresses.filter((address) => prefixes.some((prefix) => prefixContains(prefix, address)));
  return [
    ...within(clusterIPs, networks.cluster),
    ...within(externalIPs, networks.external),
    ...within(loadBalancerIPs, networks.loadBalancer),
  ];
}

export interface ServiceNetworks {
  readonly cluster: readonly Prefix[];
  readonly external: readonly Prefix[];
  readonly loadBalancer: readonly Prefix[];
  readonly all: readonly Prefix[];
}

export function serviceNetworks(settings: BgpSettings): ServiceNetworks {
  const { serviceClusterIPs, serviceExternalIPs, serviceLoadBalancerIPs } = settings;
  const [cluster, external, loadBalancer] = [
    prefixesOf(serviceClusterIPs),
    prefixesOf(serviceExternalIPs),
    prefixesOf(serviceLoadBalancerIPs),
  ];
  return { cluster, external, loadBalancer, all: [...cluster, ...external, ...loadBalancer] };
}

function prefixesOf(networks: BgpSettings["serviceClusterIPs"] = []): readonly Prefix[] {
  return networks.flatMap(({ cidr }) => parsePrefix(cidr) ?? []);
}

/** Each prefix once. */
function sorted(prefixes: readonly Prefix[]): readonly Prefix[] {
  return [...new Map(prefixes.map((prefix) => [formatPrefix(prefix), prefix])).values()].sort(comparePrefixes);
}

export interface PlannedAdvertisements {
  readonly advertisements: readonly BgpAdvertisement[];
  readonly problems: readonly string[];
}

export function planAdvertisements({ communities, prefixAdvertisements = [] }: BgpSettings): PlannedAdvertisements {
  // Of two communities with one name, that of the node comes first.
  const values = new Map([...communities].reverse().map(({ name, value }) => [name, value]));
  const problems: string[] = [];
  const advertisements = prefixAdvertisements.flatMap(({ cidr, communities: wanted }): BgpAdvertisement[] => {
    const prefix = parsePrefix(cidr);
    const found = wanted.flatMap((text) => {
      const value = values.get(text) ?? text;
      if (isCommunity(value)) return [communityOf(value)];
      problems.push(
        `BGPConfiguration: routes within ${cidr} do not get the community ${quoted(text)}: no community has this name; add it to communities`,
      );
      return [];
    });
    return prefix === undefined || found.length === 0 ? [] : [{ prefix, communities: found }];
  });
  return { advertisements: advertisements.sort((a, b) => comparePrefixes(a.prefix, b.prefix)), problems };
}

function communityOf(text: string): BgpCommunity {
  const [first = 0, second = 0, third] = text.split(":").map(Number);
  return third === undefined ? [first, second] : [first, second, third];
}
