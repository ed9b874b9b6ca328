/** The rules of BGPFilters for one session. Pure. */
import { addressBits, type Family } from "../../ip/address.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import type { BGPFilter, BGPFilterRule } from "../../model/bgp-filter.ts";
import type { BgpNetworkMatch, BgpRule } from "./plan.ts";

/** All rules of the filters for routes of the family in the direction, in order. */
export function filterRules(
  filters: readonly BGPFilter[],
  family: Family,
  direction: "import" | "export",
): readonly BgpRule[] {
  return filters.flatMap(({ spec }) => (spec[`${direction}V${family}`] ?? []).flatMap(ruleOf));
}

function ruleOf(rule: BGPFilterRule): readonly BgpRule[] {
  const network = networkMatch(rule);
  if (network === "nothing") return [];
  return [
    {
      action: rule.action === "Accept" ? "accept" : "reject",
      network: network === "everything" ? undefined : network,
      onlyLearned: rule.source === "RemotePeers",
      interface: rule.interface,
    },
  ];
}

function networkMatch({
  cidr,
  matchOperator,
  prefixLength,
}: BGPFilterRule): BgpNetworkMatch | "everything" | "nothing" {
  const prefix = cidr === undefined ? undefined : parsePrefix(cidr);
  if (prefix === undefined || matchOperator === undefined) return "everything";
  const { length, network } = prefix;
  const isNegated = matchOperator === "NotEqual" || matchOperator === "NotIn";
  if (matchOperator === "Equal" || matchOperator === "NotEqual") {
    return { prefix, lengths: { from: length, to: length }, isNegated };
  }
  // What is in a network is not shorter than it.
  const from = Math.max(prefixLength?.min ?? length, length);
  const to = prefixLength?.max ?? addressBits(network.family);
  if (from > to) return isNegated ? "everything" : "nothing";
  return { prefix, lengths: { from, to }, isNegated };
}
