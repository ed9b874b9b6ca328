/** Rules as users write them -> rules with everything resolved. Pure. */

import type { HttpMatch, HttpPath } from "../http/http-match.ts";
import type { Prefix } from "../ip/prefix.ts";
import { parsePrefixOrAddress } from "../ip/prefix.ts";
import { type EntityRule, type PolicyRule, unknownCriterion } from "../model/policy-rule.ts";
import { ICMP_PROTOCOLS, PROTOCOLS_WITH_PORTS, protocolNumber, TCP } from "../model/protocols.ts";
import type { Direction, EffectivePeer, EffectiveRule, IcmpMatch, PortMatch, SetReference } from "./effective-rule.ts";
import {
  canonicalSelector,
  EVERYTHING,
  entitySelector,
  identitySelector,
  type SelectorText,
} from "./effective-selector.ts";
import { withNamedFamilies } from "./named-families.ts";

/** Whose rules they are. */
export interface RuleOwner {
  /** Of a policy in a namespace: its selectors are restricted to it, and a service without a namespace is of it. */
  readonly namespace?: string | undefined;
  /** The endpoints that the policy selects; named ports of their own side are looked up among these. */
  readonly selector: SelectorText;
  /** The endpoints of services are known. */
  readonly hasServices: boolean;
  /** Why its rules cannot match HTTP requests, after "http"; absent if they can. */
  readonly withoutHttp?: string | undefined;
}

/** A rule that cannot be carried out exactly. Its policy must fail closed. */
export class UnsupportedRule extends Error {
  override readonly name = "UnsupportedRule";
}

export function effectiveRule(written: PolicyRule, direction: Direction, owner: RuleOwner): EffectiveRule {
  const rule = withNamedFamilies(written);
  const unknown = unknownCriterion(rule);
  if (unknown !== undefined) throw new UnsupportedRule(`unknown field "${unknown}"`);
  const http = httpMatch(rule, direction, owner);
  const protocol = optionalNumber(rule.protocol) ?? (http === undefined ? undefined : TCP);
  const notProtocol = optionalNumber(rule.notProtocol);
  const icmp = icmpMatch(rule.icmp, protocol);
  const notIcmp = icmpMatch(rule.notICMP, protocol);
  const ownSide = direction === "ingress" ? "destination" : "source";
  const peer = (side: "source" | "destination") =>
    effectivePeer(rule[side] ?? {}, { side, protocol, owner, isOwnSide: side === ownSide });
  return {
    action: rule.action,
    ...(rule.ipVersion === undefined ? {} : { family: rule.ipVersion }),
    ...(protocol === undefined ? {} : { protocol }),
    ...(notProtocol === undefined ? {} : { notProtocol }),
    ...(icmp === undefined ? {} : { icmp }),
    ...(notIcmp === undefined ? {} : { notIcmp }),
    source: peer("source"),
    destination: peer("destination"),
    ...(http === undefined ? {} : { http }),
  };
}

function httpMatch(rule: PolicyRule, direction: Direction, { withoutHttp }: RuleOwner): HttpMatch | undefined {
  const { http, action } = rule;
  if (http === undefined) return undefined;
  if (withoutHttp !== undefined) throw new UnsupportedRule(`http ${withoutHttp}`);
  if (direction === "egress") throw new UnsupportedRule("http in an egress rule");
  if (action !== "Allow") throw new UnsupportedRule(`http in a rule with action ${action}`);
  if (![undefined, TCP].includes(optionalNumber(rule.protocol)) || optionalNumber(rule.notProtocol) === TCP) {
    throw new UnsupportedRule("http without the protocol TCP");
  }
  const { methods = [], paths = [] } = http;
  return {
    ...(methods.length === 0 ? {} : { methods }),
    ...(paths.length === 0 ? {} : { paths: paths.map(httpPath) }),
  };
}

function httpPath({ exact, prefix }: { readonly exact?: string; readonly prefix?: string }): HttpPath {
  if (exact !== undefined) return { exact };
  if (prefix !== undefined) return { prefix };
  throw new UnsupportedRule("an HTTP path without exact or prefix");
}

interface PeerContext {
  readonly side: "source" | "destination";
  readonly protocol: number | undefined;
  readonly owner: RuleOwner;
  /** The side of the endpoint that the policy selects. */
  readonly isOwnSide: boolean;
}

function effectivePeer(entity: EntityRule, context: PeerContext): EffectivePeer {
  const { owner } = context;
  const selector = entitySelector(entity, owner.namespace);
  const portSelector = selector ?? (context.isOwnSide ? owner.selector : EVERYTHING);
  const ports = portMatch(entity.ports, portSelector, context.protocol);
  const notPorts = portMatch(entity.notPorts, portSelector, context.protocol);
  const isIngressSource = context.side === "source" && !context.isOwnSide;
  const identities = isIngressSource ? identitySelector(entity, owner.namespace) : undefined;
  return {
    ...(entity.nets === undefined || entity.nets.length === 0 ? {} : { nets: prefixes(entity.nets) }),
    notNets: prefixes(entity.notNets ?? []),
    members: [...selected(selector), ...services(entity, context)],
    notMembers: entity.notSelector?.trim() ? selected(canonicalSelector(entity.notSelector)) : [],
    ...(ports === undefined ? {} : { ports }),
    ...(notPorts === undefined ? {} : { notPorts }),
    ...(identities === undefined ? {} : { identities }),
  };
}

function selected(selector: SelectorText | undefined): readonly SetReference[] {
  return selector === undefined ? [] : [{ kind: "selected", selector }];
}

function services({ services: service }: EntityRule, { side, owner }: PeerContext): readonly SetReference[] {
  if (service === undefined) return [];
  if (!owner.hasServices)
    throw new UnsupportedRule(`the datastore does not contain services, such as "${service.name}"`);
  const namespace = service.namespace ?? owner.namespace;
  if (namespace === undefined) throw new UnsupportedRule(`service "${service.name}" has no namespace`);
  return [{ kind: "service", namespace, name: service.name, withPorts: side === "destination" }];
}

function portMatch(
  ports: readonly (number | string)[] | undefined,
  selector: SelectorText,
  protocol: number | undefined,
): PortMatch | undefined {
  if (ports === undefined || ports.length === 0) return undefined;
  if (protocol === undefined) throw new UnsupportedRule("ports without a protocol");
  if (!PROTOCOLS_WITH_PORTS.has(protocol)) throw new UnsupportedRule(`ports of protocol ${protocol}`);
  const ranges: { first: number; last: number }[] = [];
  const names = new Set<string>();
  for (const port of ports) {
    const [first, last = first] = typeof port === "number" ? [port] : rangeOf(port);
    if (first === undefined || last === undefined) names.add(String(port));
    else ranges.push({ first, last });
  }
  if (names.size === 0) return { ranges };
  return { ranges, named: { kind: "named port", selector, protocol, names: [...names].sort() } };
}

/** Empty for a name. */
function rangeOf(text: string): readonly number[] {
  return /^\d+(:\d+)?$/.test(text) ? text.split(":").map(Number) : [];
}

function prefixes(texts: readonly string[]): readonly Prefix[] {
  return texts.map((text) => parsePrefixOrAddress(text)).filter((prefix) => prefix !== undefined);
}

function optionalNumber(protocol: number | string | undefined): number | undefined {
  if (protocol === undefined) return undefined;
  const number = protocolNumber(protocol);
  if (number === undefined) throw new UnsupportedRule(`unknown protocol "${protocol}"`);
  return number;
}

/** Other packets have something else at the place of the type. */
function icmpMatch(match: PolicyRule["icmp"], protocol: number | undefined): IcmpMatch | undefined {
  if (match === undefined) return undefined;
  if (protocol === undefined || !ICMP_PROTOCOLS.has(protocol))
    throw new UnsupportedRule("ICMP types without the protocol ICMP or ICMPv6");
  if (match.type === undefined) throw new UnsupportedRule("an ICMP code without a type");
  return { type: match.type, ...(match.code === undefined ? {} : { code: match.code }) };
}
