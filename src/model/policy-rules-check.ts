/** Checks of rules that involve several fields. What no part of this release carries out is refused, never ignored. Pure. */
import { parsePrefixOrAddress } from "../ip/prefix.ts";
import type { EntityRule, PolicyRule } from "./policy-rule.ts";
import type { Problem } from "./problem.ts";
import { protocolNumber } from "./protocols.ts";

const WITH_PORTS: ReadonlySet<number> = new Set([6, 17, 132]);
const ICMP = { 4: 1, 6: 58 } as const;

/** `path`: that of the list, for example `spec.ingress`. */
export function checkRules(rules: readonly PolicyRule[] | undefined, path: string): readonly Problem[] {
  return (rules ?? []).flatMap((rule, index) => checkRule(rule, `${path}[${index}]`));
}

function checkRule(rule: PolicyRule, path: string): readonly Problem[] {
  return [
    ...checkHttp(rule, path),
    ...checkIcmp(rule, path),
    ...(["source", "destination"] as const).flatMap((side) => {
      const entity = rule[side];
      return entity === undefined ? [] : checkEntity(rule, entity, `${path}.${side}`);
    }),
  ];
}

function checkHttp({ http }: PolicyRule, path: string): readonly Problem[] {
  if (http === undefined) return [];
  const message = "is not supported: rules match addresses, protocols and ports only; remove it";
  return [{ path: `${path}.http`, value: http, message }];
}

function checkIcmp(rule: PolicyRule, path: string): readonly Problem[] {
  return (["icmp", "notICMP"] as const).flatMap((field): Problem[] => {
    const match = rule[field];
    if (match === undefined) return [];
    const at = `${path}.${field}`;
    if (match.type === undefined) {
      return [{ path: at, value: match, message: "has no type; add the type of the messages, for example 8" }];
    }
    const number = rule.protocol === undefined ? undefined : protocolNumber(rule.protocol);
    if (number === ICMP[4] || number === ICMP[6]) return [];
    return [{ path: at, value: match, message: 'needs "protocol" to be ICMP or ICMPv6; add it' }];
  });
}

function checkEntity(rule: PolicyRule, entity: EntityRule, path: string): readonly Problem[] {
  return [...checkPorts(rule, entity, path), ...checkServices(entity, path), ...checkFamilies(rule, entity, path)];
}

function checkPorts({ protocol }: PolicyRule, entity: EntityRule, path: string): readonly Problem[] {
  const number = protocol === undefined ? undefined : protocolNumber(protocol);
  if (number !== undefined && WITH_PORTS.has(number)) return [];
  return (["ports", "notPorts"] as const).flatMap((field): Problem[] => {
    const ports = entity[field];
    if (ports === undefined || ports.length === 0) return [];
    return [{ path: `${path}.${field}`, value: ports, message: 'needs "protocol" to be TCP, UDP or SCTP; add it' }];
  });
}

function checkServices(entity: EntityRule, path: string): readonly Problem[] {
  if (entity.services === undefined) return [];
  const others = [
    "selector",
    "notSelector",
    "namespaceSelector",
    "serviceAccounts",
    "nets",
    "notNets",
    "ports",
    "notPorts",
  ] as const;
  const given = others.filter((field) => entity[field] !== undefined);
  if (given.length === 0) return [];
  const message = `cannot be combined with ${given.join(", ")}; use a rule for each`;
  return [{ path: `${path}.services`, value: entity.services, message }];
}

function checkFamilies({ ipVersion }: PolicyRule, entity: EntityRule, path: string): readonly Problem[] {
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
