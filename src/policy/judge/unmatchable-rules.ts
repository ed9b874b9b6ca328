/**
 * Rules that can never match a packet, whatever workloads and packets there are: their criteria contradict each other, their policy
 * does not have their direction, or an earlier rule for the same endpoints matches all that they match. Pure.
 *
 * Looks at what is written only, so it does not find every such rule. What it finds is certain.
 */
import { parsePrefixOrAddress, prefixCovers } from "../../ip/prefix.ts";
import { type EntityRule, isNamedPort, type PolicyRule } from "../../model/policy-rule.ts";
import { typesOf } from "../../model/policy-spec.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { Direction } from "../effective-rule.ts";
import { withNamedFamilies } from "../named-families.ts";
import { comparePolicies, isBeforeRouting, scopeOf } from "./judge.ts";
import type { AnyPolicy } from "./resources.ts";

export interface UnmatchableRule {
  readonly policy: AnyPolicy;
  readonly direction: Direction;
  /** Index in `spec.ingress` or `spec.egress`. */
  readonly rule: number;
  readonly reason: UnmatchableReason;
}

export type UnmatchableReason =
  /** The fields that contradict each other. */
  | { readonly kind: "contradiction"; readonly fields: readonly [string, string] }
  /** `types` does not have the direction. */
  | { readonly kind: "direction" }
  /** Matches everything that it matches. */
  | { readonly kind: "earlier rule"; readonly policy: AnyPolicy; readonly rule: number };

const DIRECTIONS: readonly Direction[] = ["ingress", "egress"];

export function unmatchableRules(policies: readonly AnyPolicy[]): readonly UnmatchableRule[] {
  // Only policies for the same endpoints in the same tier are compared: which others are evaluated before is not certain.
  const alike = Map.groupBy(policies, (policy) =>
    JSON.stringify([policy.kind, policy.spec.tier, scopeOf(policy), hostOptions(policy)]),
  );
  return [...alike.values()].flatMap((same) => {
    const inOrder = same.toSorted(comparePolicies);
    return DIRECTIONS.flatMap((direction) => inDirection(inOrder, direction));
  });
}

function hostOptions(policy: AnyPolicy): readonly unknown[] {
  if (policy.kind !== "GlobalNetworkPolicy") return [];
  return [policy.spec.applyOnForward, isBeforeRouting(policy), policy.spec.preDNAT];
}

interface PlacedRule {
  readonly policy: AnyPolicy;
  readonly index: number;
  readonly rule: PolicyRule;
}

/** More earlier rules are not compared: that would take the square of their number. */
const MOST_COMPARED = 500;

function inDirection(policies: readonly AnyPolicy[], direction: Direction): readonly UnmatchableRule[] {
  const earlier: PlacedRule[] = [];
  const found: UnmatchableRule[] = [];
  for (const policy of policies) {
    const isEvaluated = typesOf(policy.spec).includes(direction === "ingress" ? "Ingress" : "Egress");
    for (const [index, written] of (policy.spec[direction] ?? []).entries()) {
      const rule = withNamedFamilies(written);
      const covering = isEvaluated ? earlier.find((each) => covers(each.rule, rule)) : undefined;
      const fields = contradiction(rule);
      const at = { policy, direction, rule: index };
      if (!isEvaluated) found.push({ ...at, reason: { kind: "direction" } });
      else if (fields !== undefined) found.push({ ...at, reason: { kind: "contradiction", fields } });
      else if (covering !== undefined)
        found.push({ ...at, reason: { kind: "earlier rule", policy: covering.policy, rule: covering.index } });
      // A rule that logs decides nothing: the next one is still looked at.
      else if (rule.action !== "Log" && earlier.length < MOST_COMPARED) earlier.push({ policy, index, rule });
    }
  }
  return found;
}

function contradiction(rule: PolicyRule): readonly [string, string] | undefined {
  const { protocol, notProtocol, icmp, notICMP } = rule;
  if (protocol !== undefined && notProtocol !== undefined && protocolNumber(protocol) === protocolNumber(notProtocol))
    return ["protocol", "notProtocol"];
  if (icmp !== undefined && notICMP !== undefined && isIcmpWithin(icmp, notICMP)) return ["icmp", "notICMP"];
  for (const side of ["source", "destination"] as const) {
    const { nets = [], notNets = [], ports = [], notPorts = [] } = rule[side] ?? {};
    if (nets.length > 0 && areNetsWithin(nets, notNets)) return [`${side}.nets`, `${side}.notNets`];
    if (
      nets.length > 0 &&
      rule.ipVersion !== undefined &&
      nets.every((net) => familyOf(net) === otherOf(rule.ipVersion))
    )
      return ["ipVersion", `${side}.nets`];
    if (ports.length > 0 && !ports.some(isNamedPort) && arePortsWithin(ports, notPorts))
      return [`${side}.ports`, `${side}.notPorts`];
  }
  return contradictingFamilies(rule);
}

/** Both ends of a packet have the same family. */
function contradictingFamilies({ source, destination }: PolicyRule): readonly [string, string] | undefined {
  const families = [source, destination].map((entity) => new Set((entity?.nets ?? []).map(familyOf)));
  const [from = new Set(), to = new Set()] = families;
  if (from.size === 0 || to.size === 0 || from.has(undefined) || to.has(undefined)) return undefined;
  return from.isDisjointFrom(to) ? ["source.nets", "destination.nets"] : undefined;
}

function familyOf(net: string): 4 | 6 | undefined {
  return parsePrefixOrAddress(net)?.network.family;
}

function otherOf(family: 4 | 6 | undefined): 4 | 6 {
  return family === 4 ? 6 : 4;
}

/** Whether `earlier` matches every packet that `later` matches. In doubt not. */
function covers(earlier: PolicyRule, later: PolicyRule): boolean {
  if (earlier.http !== undefined) return false;
  // A request is compared with the identity of its client, by rules that allow.
  const isSameKind = (earlier.action === "Deny") === (later.action === "Deny") && later.http === undefined;
  return (
    (earlier.ipVersion === undefined || earlier.ipVersion === later.ipVersion) &&
    isProtocolCovered(earlier, later) &&
    isIcmpCovered(earlier, later) &&
    (["source", "destination"] as const).every((side) =>
      isEntityCovered(earlier[side] ?? {}, later[side] ?? {}, isSameKind),
    )
  );
}

function isProtocolCovered(earlier: PolicyRule, later: PolicyRule): boolean {
  const number = (protocol: PolicyRule["protocol"]) => (protocol === undefined ? undefined : protocolNumber(protocol));
  const [only, not] = [number(earlier.protocol), number(earlier.notProtocol)];
  const [laterOnly, laterNot] = [number(later.protocol), number(later.notProtocol)];
  return (
    (earlier.protocol === undefined || (only !== undefined && only === laterOnly)) &&
    (earlier.notProtocol === undefined ||
      (not !== undefined && (not === laterNot || (laterOnly !== undefined && laterOnly !== not))))
  );
}

function isIcmpCovered(earlier: PolicyRule, later: PolicyRule): boolean {
  const isSame = Bun.deepEquals(earlier.notICMP, later.notICMP);
  if (earlier.notICMP !== undefined && !isSame) return false;
  return earlier.icmp === undefined || (later.icmp !== undefined && isIcmpWithin(later.icmp, earlier.icmp));
}

type Icmp = NonNullable<PolicyRule["icmp"]>;

function isIcmpWithin(inner: Icmp, outer: Icmp): boolean {
  return (
    (outer.type === undefined || outer.type === inner.type) && (outer.code === undefined || outer.code === inner.code)
  );
}

/** What selects by labels, which is compared as a whole. */
const LABEL_CRITERIA = ["selector", "notSelector", "namespaceSelector", "serviceAccounts"] as const;

function isEntityCovered(earlier: EntityRule, later: EntityRule, isSameKind: boolean): boolean {
  const labels = ({ selector, notSelector, namespaceSelector, serviceAccounts }: EntityRule) =>
    JSON.stringify([selector, notSelector, namespaceSelector, serviceAccounts]);
  const hasLabels = LABEL_CRITERIA.some((name) => earlier[name] !== undefined);
  const isSameByLabels = labels(earlier) === labels(later);
  if (hasLabels && !(isSameByLabels && isSameKind)) return false;
  if (earlier.services !== undefined && !Bun.deepEquals(earlier.services, later.services)) return false;
  const { nets = [], notNets = [], ports = [], notPorts = [] } = earlier;
  return (
    (nets.length === 0 || ((later.nets ?? []).length > 0 && areNetsWithin(later.nets ?? [], nets))) &&
    areNetsWithin(notNets, later.notNets ?? []) &&
    arePortsCovered(ports, later.ports ?? [], isSameByLabels) &&
    arePortsCovered(notPorts, [], false)
  );
}

function arePortsCovered(earlier: readonly Port[], later: readonly Port[], mayCompareNames: boolean): boolean {
  if (earlier.length === 0) return true;
  return (
    later.length > 0 &&
    later.every((port) =>
      isNamedPort(port) ? mayCompareNames && earlier.includes(port) : arePortsWithin([port], earlier),
    )
  );
}

type Port = number | string;

/** Each net within one of the others. */
function areNetsWithin(inner: readonly string[], outer: readonly string[]): boolean {
  const around = outer.flatMap((net) => parsePrefixOrAddress(net) ?? []);
  return inner.every((net) => {
    const prefix = parsePrefixOrAddress(net);
    return prefix !== undefined && around.some((each) => prefixCovers(each, prefix));
  });
}

/** Of numbers and ranges, each within one of the others. A name may be any port. */
function arePortsWithin(inner: readonly Port[], outer: readonly Port[]): boolean {
  const ranges = outer.filter((port) => !isNamedPort(port)).map(rangeOf);
  return inner.map(rangeOf).every(([first, last]) => ranges.some(([from, to]) => from <= first && last <= to));
}

function rangeOf(port: Port): readonly [number, number] {
  const [first = Number.NaN, last = first] = String(port).split(":").map(Number);
  return [first, last];
}
