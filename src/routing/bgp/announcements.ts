/** Which networks the nodes of a cluster send to their peers, and with which communities. Pure. */
import { comparePrefixes, formatPrefix, type Prefix, parsePrefix, prefixCovers } from "../../ip/prefix.ts";
import { type BgpSettings, isCommunity } from "../../model/bgp-configuration.ts";
import { quoted } from "../../quote.ts";
import type { RoutedNode, RoutedPool } from "../facts.ts";
import type { BgpAdvertisement, BgpCommunity, BgpPlan } from "./plan.ts";

/** The orchestrator's label of nodes that must not receive packets for services from outside. */
const EXCLUDED_FROM_SERVICES = "node.kubernetes.io/exclude-from-external-load-balancers";

export interface AnnouncementFacts {
  readonly self: RoutedNode | undefined;
  readonly nodes: readonly RoutedNode[];
  readonly pools: readonly RoutedPool[];
  readonly announced: Iterable<Prefix>;
  readonly outsidePools: Iterable<Prefix>;
  readonly settings: BgpSettings;
}

export function planAnnouncements(
  facts: AnnouncementFacts,
): Pick<BgpPlan, "announced" | "exported" | "accepted" | "withheld" | "tunnelled"> {
  const { self, nodes, pools, settings } = facts;
  const announced = [...facts.announced];
  const services = serviceNetworks(settings);
  const shared = [
    ...pools.flatMap((pool) => (pool.isExported ? [pool.prefix] : [])),
    ...nodes.flatMap(({ podCidrs }) => podCidrs),
    ...services,
  ];
  const own = self?.labels[EXCLUDED_FROM_SERVICES] === "true" ? [] : services;
  return {
    announced: sorted([...announced, ...own]),
    exported: sorted([
      ...shared,
      // Blocks whose pool was deleted: their pods keep their addresses.
      ...announced.filter((prefix) => !pools.some((pool) => prefixCovers(pool.prefix, prefix))),
    ]),
    accepted: sorted([...shared, ...facts.outsidePools]),
    withheld: sorted(pools.flatMap((pool) => (pool.isExported ? [] : [pool.prefix]))),
    tunnelled: sorted(pools.flatMap((pool) => (pool.mode.kind === "unencapsulated" ? [] : [pool.prefix]))),
  };
}

function serviceNetworks(settings: BgpSettings): readonly Prefix[] {
  const { serviceClusterIPs = [], serviceExternalIPs = [], serviceLoadBalancerIPs = [] } = settings;
  return [...serviceClusterIPs, ...serviceExternalIPs, ...serviceLoadBalancerIPs].flatMap(
    ({ cidr }) => parsePrefix(cidr) ?? [],
  );
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
