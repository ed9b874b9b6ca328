/** The nodes of a cluster as BGP speakers, seen from one of them. Pure. */
import { type Address, type Family, formatAddress } from "../../ip/address.ts";
import { parseAsNumber } from "../../model/as-number.ts";
import {
  type BGPConfiguration,
  type BgpSettings,
  bgpSettings,
  DEFAULT_AS_NUMBER,
} from "../../model/bgp-configuration.ts";
import type { RoutedNode } from "../facts.ts";

export const USUAL_PORT = 179;
export const FAMILIES: readonly Family[] = [4, 6];

export interface Speakers {
  /** The planned node. */
  readonly self: RoutedNode;
  readonly settings: BgpSettings;
  /** By name, without `self`. */
  readonly others: readonly RoutedNode[];
  asNumberOf(node: RoutedNode): number;
  listenPortOf(node: RoutedNode): number;
  /** The other node that has the address. */
  withAddress(address: Address): RoutedNode | undefined;
}

export function speakersOf(
  self: RoutedNode,
  nodes: readonly RoutedNode[],
  configurations: readonly BGPConfiguration[],
): Speakers {
  const settings = bgpSettings(configurations, self.name);
  const common = parseAsNumber(settings.asNumber) ?? DEFAULT_AS_NUMBER;
  const { listenPort } = bgpSettings(configurations, "");
  const ports = new Map(configurations.map(({ metadata, spec }) => [metadata.name, spec.listenPort]));
  const others = nodes.filter(({ name }) => name !== self.name).sort(byName);
  const byAddress = new Map(others.flatMap((node) => addressesOf(node).map((each) => [formatAddress(each), node])));
  return {
    self,
    settings,
    others,
    asNumberOf: (node) => node.asNumber ?? common,
    listenPortOf: (node) => ports.get(`node.${node.name}`) ?? listenPort,
    withAddress: (address) => byAddress.get(formatAddress(address)),
  };
}

function addressesOf({ addresses }: RoutedNode): readonly Address[] {
  return FAMILIES.flatMap((family) => addresses[family]?.address ?? []);
}

export function byName<Named extends { readonly name: string }>(left: Named, right: Named): number {
  return left.name < right.name ? -1 : left.name > right.name ? 1 : 0;
}
