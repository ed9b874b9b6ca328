/** Checks of rules that involve several fields. What no part of this release carries out is refused, never ignored. Pure. */
import { parsePrefixOrAddress } from "../ip/prefix.ts";
import { methodCaseProblem } from "./http-rule.ts";
import type { EntityRule, PolicyRule } from "./policy-rule.ts";
import type { Problem } from "./problem.ts";
import { ICMP_PROTOCOLS, PROTOCOLS_WITH_PORTS, protocolNumber, TCP } from "./protocols.ts";

/** The CRDs have rules with the same messages. */
export const RULE_MESSAGES = {
  httpEgress: "is not allowed in egress rules, since the sidecar of the destination decides; use an ingress rule",
  httpAction: 'needs "action" to be Allow; a request that no rule allows is denied',
  httpProtocol: 'needs "protocol" to be TCP; set it',
  httpNotProtocol: 'cannot be combined with "notProtocol" TCP, which HTTP uses; remove one of them',
  httpProfile: "is not allowed in a profile; use a NetworkPolicy or a GlobalNetworkPolicy",
  icmpType: "has no type; add the type of the messages, for example 8",
  icmpProtocol: 'needs "protocol" to be ICMP or ICMPv6; set it',
  ports: 'needs "protocol" to be TCP, UDP or SCTP; set it',
  serviceNamespace: "has no namespace; add the namespace of the service",
  services: (fields: readonly string[]) => `cannot be combined with ${fields.join(", ")}; use a rule for each`,
  pass: "is not allowed in a profile, which is evaluated after all tiers; use Allow or Deny",
} as const;

/** The fields that a match of a service excludes. */
export const EXCLUDED_BY_SERVICES = [
  "selector",
  "notSelector",
  "namespaceSelector",
  "serviceAccounts",
  "nets",
  "notNets",
  "ports",
  "notPorts",
] as const satisfies readonly (keyof EntityRule)[];

export interface RuleList {
  /** Of the list: `spec.ingress`. */
  readonly path: string;
  /** "namespaced": a service without a namespace is one of the policy's own. */
  readonly owner: "namespaced" | "global" | "profile";
  readonly direction: "ingress" | "egress";
}

export function checkRules(rules: readonly PolicyRule[] | undefined, list: RuleList): readonly Problem[] {
  return (rules ?? []).flatMap((rule, index) => checkRule(rule, { ...list, path: `${list.path}[${index}]` }));
}

function checkRule(rule: PolicyRule, list: RuleList): readonly Problem[] {
  const { path, owner } = list;
  return [
    ...checkHttp(rule, list),
    ...(owner === "profile" && rule.action === "Pass"
      ? [{ path: `${path}.action`, value: rule.action, message: RULE_MESSAGES.pass }]
      : []),
    ...checkIcmp(rule, path),
    ...(["source", "destination"] as const).flatMap((side) => {
      const entity = rule[side];
      return entity === undefined ? [] : checkEntity(rule, entity, { ...list, path: `${path}.${side}` });
    }),
  ];
}

function checkHttp({ http, action, protocol, notProtocol }: PolicyRule, list: RuleList): readonly Problem[] {
  if (http === undefined) return [];
  const problem = (message: string): readonly Problem[] => [{ path: `${list.path}.http`, value: http, message }];
  if (list.owner === "profile") return problem(RULE_MESSAGES.httpProfile);
  if (list.direction === "egress") return problem(RULE_MESSAGES.httpEgress);
  return [
    ...(action === "Allow" ? [] : problem(RULE_MESSAGES.httpAction)),
    ...(protocol === undefined || protocolNumber(protocol) === TCP ? [] : problem(RULE_MESSAGES.httpProtocol)),
    ...(notProtocol !== undefined && protocolNumber(notProtocol) === TCP ? problem(RULE_MESSAGES.httpNotProtocol) : []),
    ...(http.methods ?? []).flatMap((value, index): Problem[] => {
      const message = methodCaseProblem(value);
      return message === undefined ? [] : [{ path: `${list.path}.http.methods[${index}]`, value, message }];
    }),
  ];
}

function checkIcmp(rule: PolicyRule, path: string): readonly Problem[] {
  return (["icmp", "notICMP"] as const).flatMap((field): Problem[] => {
    const value = rule[field];
    if (value === undefined) return [];
    const at = { path: `${path}.${field}`, value };
    return [
      ...(value.type === undefined ? [{ ...at, message: RULE_MESSAGES.icmpType }] : []),
      ...(isProtocolOf(rule, ICMP_PROTOCOLS) ? [] : [{ ...at, message: RULE_MESSAGES.icmpProtocol }]),
    ];
  });
}

function isProtocolOf({ protocol }: PolicyRule, numbers: ReadonlySet<number>): boolean {
  const number = protocol === undefined ? undefined : protocolNumber(protocol);
  return number !== undefined && numbers.has(number);
}

function checkEntity(rule: PolicyRule, entity: EntityRule, list: RuleList): readonly Problem[] {
  return [...checkPorts(rule, entity, list), ...checkServices(entity, list), ...checkFamilies(rule, entity, list)];
}

function checkPorts(rule: PolicyRule, entity: EntityRule, { path }: RuleList): readonly Problem[] {
  const isHttp = rule.http !== undefined && rule.protocol === undefined;
  if (isHttp || isProtocolOf(rule, PROTOCOLS_WITH_PORTS)) return [];
  return (["ports", "notPorts"] as const).flatMap((field): Problem[] => {
    const ports = entity[field];
    if (ports === undefined || ports.length === 0) return [];
    return [{ path: `${path}.${field}`, value: ports, message: RULE_MESSAGES.ports }];
  });
}

function checkServices(entity: EntityRule, { path, owner }: RuleList): readonly Problem[] {
  const { services } = entity;
  if (services === undefined) return [];
  const at = { path: `${path}.services`, value: services };
  const given = EXCLUDED_BY_SERVICES.filter((field) => entity[field] !== undefined);
  return [
    ...(given.length === 0 ? [] : [{ ...at, message: RULE_MESSAGES.services(given) }]),
    ...(owner === "namespaced" || services.namespace !== undefined
      ? []
      : [{ ...at, message: RULE_MESSAGES.serviceNamespace }]),
  ];
}

function checkFamilies({ ipVersion }: PolicyRule, entity: EntityRule, { path }: RuleList): readonly Problem[] {
  if (ipVersion === undefined) return [];
  return (["nets", "notNets"] as const).flatMap((field) =>
    (entity[field] ?? []).flatMap((text, index): Problem[] => {
      const family = parsePrefixOrAddress(text)?.network.family;
      if (family === undefined || family === ipVersion) return [];
      const message = `is not an IPv${ipVersion} network, as "ipVersion" says; correct one of them`;
      return [{ path: `${path}.${field}[${index}]`, value: text, message }];
    }),
  );
}
