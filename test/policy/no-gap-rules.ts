/** Rules that all allow the same packets of one pod to two ports, in every form that a list of peers or ports can have. */

import { type Family, parseAddress } from "../../src/ip/address.ts";
import { formatPrefix, prefixAround } from "../../src/ip/prefix.ts";
import { globalNetworkSet } from "../../src/model/global-network-set.ts";
import { GLOBAL_NETWORK_SET } from "../../src/model/kinds.ts";
import type { NetworkPolicySpec } from "../../src/model/network-policy.ts";

type Rule = NonNullable<NetworkPolicySpec["ingress"]>[number];

export interface AllowedPod {
  /** IPv4, IPv6. */
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

/** More than a rule compares one by one; none can be merged with another. */
const LONG = 20;
const SET = { selector: "role == 'client'", namespaceSelector: "global()" };

/** What follows the rule differs in each round, so that the policy is always another. */
export function ruleOfRound(round: number, { addresses, ports }: AllowedPod): Rule {
  const others = (count: number) => Array.from({ length: count }, (_, index) => 9_000 + (round % 100) + 2 * index);
  const rule = (source: Rule["source"], more: number): Rule => ({
    action: "Allow",
    protocol: "UDP",
    ...(source === undefined ? {} : { source }),
    destination: { ports: [...ports, ...others(more)] },
  });
  switch (round % 5) {
    case 0:
      return rule(undefined, 1);
    case 1:
      return rule(undefined, LONG);
    case 2:
      return rule({ nets: [...pairsOf(addresses), ...networks(round, LONG)] }, 1);
    case 3:
      return rule(SET, LONG);
    default:
      return rule(SET, 0);
  }
}

/** A network set that always contains the pod: as single addresses, in small networks, in larger ones. */
export function setOfRound(round: number, { addresses }: AllowedPod) {
  const nets = [
    addresses,
    pairsOf(addresses),
    [...networksAround(addresses, { 4: 24, 6: 120 }), ...networks(round, LONG)],
  ][round % 3];
  const metadata = { name: "clients", labels: { role: "client" } };
  const value = globalNetworkSet.write(globalNetworkSet.make(metadata, { nets: [...(nets ?? [])] }));
  return { kind: "put" as const, key: GLOBAL_NETWORK_SET.key({ name: "clients" }), value };
}

function pairsOf(addresses: readonly string[]): readonly string[] {
  return networksAround(addresses, { 4: 31, 6: 127 });
}

function networksAround(addresses: readonly string[], lengths: Readonly<Record<Family, number>>): readonly string[] {
  return addresses.flatMap((text) => {
    const address = parseAddress(text);
    return address === undefined ? [] : [formatPrefix(prefixAround(address, lengths[address.family]))];
  });
}

function networks(round: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `172.${16 + (round % 16)}.${2 * index}.0/24`);
}
