/**
 * What a rule that allows means for the family that its `notNets` do not name. Pure.
 *
 *   Allow, Pass   to addresses outside of 10.0.0.0/8: other IPv4 addresses, and no IPv6 address
 *   Deny          to addresses outside of 10.0.0.0/8: other IPv4 addresses, and every IPv6 address
 *
 * So that pods that get addresses of a second family are not open to it because a rule was written before it was there.
 * What else says whom the rule allows (`nets`, selectors, a Service) holds for both families.
 */
import type { EntityRule, PolicyRule } from "../model/policy-rule.ts";

const EVERYTHING = { ipv4: "0.0.0.0/0", ipv6: "::/0" } as const;

/** The rule with all that it does not match written down. */
export function withNamedFamilies(rule: PolicyRule): PolicyRule {
  const { action, ipVersion, source, destination } = rule;
  if ((action !== "Allow" && action !== "Pass") || ipVersion !== undefined) return rule;
  const [from, to] = [source && namedFamilies(source), destination && namedFamilies(destination)];
  if (from === source && to === destination) return rule;
  return { ...rule, ...(from && { source: from }), ...(to && { destination: to }) };
}

function namedFamilies(entity: EntityRule): EntityRule {
  const { notNets = [], nets = [], selector, namespaceSelector, serviceAccounts, services } = entity;
  const says = nets.length > 0 || (selector ?? namespaceSelector ?? serviceAccounts ?? services) !== undefined;
  if (notNets.length === 0 || says) return entity;
  const isIpv6 = (net: string) => net.includes(":");
  if (!notNets.some(isIpv6)) return { ...entity, notNets: [...notNets, EVERYTHING.ipv6] };
  if (notNets.every(isIpv6)) return { ...entity, notNets: [...notNets, EVERYTHING.ipv4] };
  return entity;
}
