/**
 * May this packet pass? Reads the resources as their authors wrote them and evaluates them one by one: slow, obvious,
 * and independent of the compiler, whose tables are compared with it. `policy explain` shows its steps.
 */
import { type Address, isSameAddress, parseAddress } from "../../ip/address.ts";
import { parsePrefixOrAddress, prefixContains } from "../../ip/prefix.ts";
import { BUILT_IN_TIERS } from "../../model/built-in-tiers.ts";
import { defaultAllowProfile } from "../../model/default-allow-profile.ts";
import { isFinished } from "../../model/finished-pods.ts";
import { isUneditedNetworkProfile } from "../../model/network-profile.ts";
import type { EntityRule, PolicyRule } from "../../model/policy-rule.ts";
import { typesOf } from "../../model/policy-spec.ts";
import type { Profile } from "../../model/profile.ts";
import { DEFAULT_ALLOW_PROFILE } from "../../model/profile.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { Tier } from "../../model/tier.ts";
import type { Direction } from "../effective-rule.ts";
import { withNamedFamilies } from "../named-families.ts";
import { enforcedPolicy, profileRules } from "./enforced-policy.ts";
import { isHttpMatch, isIdentityOf } from "./http-criteria.ts";
import {
  criteriaOf,
  isSelected,
  type LabelCriteria,
  labelsOf,
  membersWith,
  selectionOf,
  storedProfile,
} from "./members.ts";
import type { Packet, PacketRequest } from "./packet.ts";
import type { AnyEndpoint, AnyMember, AnyPolicy, PolicyResources } from "./resources.ts";

export interface Judgement {
  readonly verdict: "allow" | "deny";
  readonly reason: Reason;
  /** The policies that apply to the endpoint in this direction, in the order of their evaluation: tier by tier. */
  readonly policies: readonly AnyPolicy[];
  /** The rules that left their tier undecided. */
  readonly passes: readonly DecidingRule[];
}

/** A rule with action Allow, Deny or Pass that matches the packet. */
export interface DecidingRule {
  readonly kind: "rule";
  readonly policy: AnyPolicy;
  readonly index: number;
  readonly rule: PolicyRule;
}

export type Reason =
  | DecidingRule
  /** At least one policy of the tier applies, and no rule matches. */
  | { readonly kind: "tier default"; readonly tier: string; readonly policies: readonly AnyPolicy[] }
  | {
      readonly kind: "profile";
      readonly profile: string;
      readonly index: number;
      readonly rule: PolicyRule;
      /** The profile of a network has the rules that ADD writes, which do not close workloads: `rule` is not the one of the record. */
      readonly isUnedited?: true;
    }
  /** `missing`: those that the endpoint names and that do not exist. */
  | { readonly kind: "no profile allows it"; readonly missing?: readonly string[] };

/** The policies of one endpoint in one direction, then its profiles. */
export function judge(
  packet: Packet,
  endpoint: AnyEndpoint,
  direction: Direction,
  resources: PolicyResources,
): Judgement {
  const applying = policiesOf(endpoint, direction, resources).filter((policy) => !isBeforeRouting(policy));
  const policies = inOrder(applying, resources);
  const { decided, passes } = decide(packet, { policies: applying, direction, endpoint }, resources);
  const judgement = (verdict: Judgement["verdict"], reason: Reason): Judgement => ({
    verdict,
    reason,
    policies,
    passes,
  });
  if (decided !== undefined) return judgement(...decided);
  for (const name of endpoint.spec.profiles ?? []) {
    const profile = profileNamed(name, resources);
    const isOpen = profile !== undefined && isOpenBecauseUnedited(profile, endpoint, direction);
    const rules = profile === undefined ? [] : profileRules(profile, endpoint, direction, resources);
    for (const [index, rule] of rules.entries()) {
      if (
        rule.action === "Log" ||
        !matches(
          rule,
          packet,
          { direction, endpoint, namespace: undefined, own: {}, isDenying: rule.action !== "Allow" },
          resources,
        )
      )
        continue;
      const verdict = rule.action === "Allow" ? "allow" : "deny";
      return judgement(verdict, {
        kind: "profile",
        profile: name,
        index,
        rule,
        ...(isOpen ? { isUnedited: true } : {}),
      });
    }
  }
  const missing = missingProfiles(endpoint, resources);
  return judgement("deny", { kind: "no profile allows it", ...(missing.length === 0 ? {} : { missing }) });
}

/** Whether the profile of a network allows everything because nobody has edited it. */
export function isOpenBecauseUnedited(profile: Profile, { kind }: AnyEndpoint, direction: Direction): boolean {
  return kind === "WorkloadEndpoint" && direction === "ingress" && isUneditedNetworkProfile(profile);
}

export function profileNamed(name: string, { profiles }: PolicyResources): Profile | undefined {
  if (name === DEFAULT_ALLOW_PROFILE) return defaultAllowProfile;
  return storedProfile(name, profiles);
}

/** Those that the endpoint names and that do not exist: they allow nothing. */
export function missingProfiles({ spec }: AnyEndpoint, resources: PolicyResources): readonly string[] {
  return (spec.profiles ?? []).filter((name) => profileNamed(name, resources) === undefined);
}

/** In the order of their evaluation: tier by tier. */
export function inOrder(policies: readonly AnyPolicy[], resources: PolicyResources): readonly AnyPolicy[] {
  return tiersOf(policies, resources).flatMap((tier) => tier.policies);
}

export interface TierOutcome {
  /** `undefined`: no policy applies, or the packet passed all tiers. */
  readonly decided?: readonly [Judgement["verdict"], Reason];
  readonly passes: readonly DecidingRule[];
}

/** The policies that apply to an endpoint in one direction. */
export interface Applying {
  readonly policies: readonly AnyPolicy[];
  readonly direction: Direction;
  readonly endpoint: AnyEndpoint;
}

export function decide(packet: Packet, { policies, ...at }: Applying, resources: PolicyResources): TierOutcome {
  const passes: DecidingRule[] = [];
  for (const tier of tiersOf(policies, resources)) {
    const rule = firstRule(packet, { ...at, policies: tier.policies }, resources);
    if (rule?.rule.action === "Pass") {
      passes.push(rule);
      continue;
    }
    if (rule !== undefined) return { decided: [rule.rule.action === "Allow" ? "allow" : "deny", rule], passes };
    if (tier.defaultAction === "Deny" && !tier.policies.some(isBeforeRouting)) {
      return { decided: ["deny", { kind: "tier default", tier: tier.name, policies: tier.policies }], passes };
    }
  }
  return { passes };
}

function firstRule(
  packet: Packet,
  { policies, direction, endpoint }: Applying,
  resources: PolicyResources,
): DecidingRule | undefined {
  for (const policy of policies) {
    for (const [index, rule] of (policy.spec[direction] ?? []).entries()) {
      const { namespace } = policy.metadata;
      if (rule.action === "Log") continue;
      const owner = { direction, endpoint, namespace, own: scopeOf(policy), isDenying: rule.action === "Deny" };
      if (!matches(rule, packet, owner, resources)) continue;
      return { kind: "rule", policy, index, rule };
    }
  }
  return undefined;
}

/** Those that select the endpoint and isolate the direction, in order. */
export function policiesOf(
  endpoint: AnyEndpoint,
  direction: Direction,
  resources: PolicyResources,
): readonly AnyPolicy[] {
  const type = direction === "ingress" ? "Ingress" : "Egress";
  const all: readonly AnyPolicy[] = [...resources.networkPolicies, ...resources.globalNetworkPolicies];
  return all
    .map((policy) => enforcedPolicy(policy, resources))
    .filter((policy) => typesOf(policy.spec).includes(type))
    .filter((policy) => isSelected(endpoint, scopeOf(policy), resources))
    .toSorted(comparePolicies);
}

/** Those that a policy is enforced on, in any direction that it has; for many policies. */
export function endpointsOfPolicies(resources: PolicyResources): (policy: AnyPolicy) => readonly AnyEndpoint[] {
  const running: readonly AnyEndpoint[] = resources.endpoints.filter((endpoint) => !isFinished(endpoint));
  const all = [...running, ...resources.hostEndpoints].map((endpoint) => ({
    endpoint,
    labels: labelsOf(endpoint, resources),
  }));
  return (policy) => {
    const selects = selectionOf(scopeOf(policy));
    return all
      .filter(({ endpoint, labels }) => concerns(policy, endpoint) && selects(labels))
      .map(({ endpoint }) => endpoint);
  };
}

const DIRECTIONS: readonly Direction[] = ["ingress", "egress"];

/** Those that are enforced on the endpoint. */
export function enforcedPoliciesOf(
  endpoint: AnyEndpoint,
  resources: PolicyResources,
  directions = DIRECTIONS,
): readonly AnyPolicy[] {
  const all = directions.flatMap((direction) => policiesOf(endpoint, direction, resources));
  return all.filter((policy) => concerns(policy, endpoint));
}

/** Whether the policy can be enforced on it. */
function concerns(policy: AnyPolicy, endpoint: AnyEndpoint): boolean {
  return endpoint.kind === "HostEndpoint" || !isBeforeRouting(policy);
}

/** Such policies concern hosts only, and decide only what their rules match. */
export function isBeforeRouting(policy: AnyPolicy): boolean {
  return policy.kind === "GlobalNetworkPolicy" && (policy.spec.doNotTrack || policy.spec.preDNAT);
}

/** Whom the policy selects. */
export function scopeOf({ metadata, spec }: AnyPolicy): LabelCriteria {
  return {
    selector: spec.selector,
    serviceAccountSelector: spec.serviceAccountSelector,
    namespaceSelector: "namespaceSelector" in spec ? spec.namespaceSelector : undefined,
    namespace: metadata.namespace,
  };
}

export function comparePolicies(left: AnyPolicy, right: AnyPolicy): number {
  const order = ({ spec }: AnyPolicy) => spec.order ?? Number.MAX_VALUE;
  return order(left) - order(right) || (nameOf(left) < nameOf(right) ? -1 : 1);
}

function nameOf({ metadata: { name, namespace } }: AnyPolicy): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

interface JudgedTier {
  readonly name: string;
  readonly policies: readonly AnyPolicy[];
  readonly order: number;
  readonly defaultAction: "Deny" | "Pass";
}

export function tiersOf(policies: readonly AnyPolicy[], { tiers }: PolicyResources): readonly JudgedTier[] {
  return Array.from(Map.groupBy(policies, ({ spec }) => spec.tier))
    .map(([name, members]) => ({
      ...tierWith(
        name,
        tiers.find(({ metadata }) => metadata.name === name),
      ),
      policies: members,
    }))
    .toSorted((left, right) => left.order - right.order || (left.name < right.name ? -1 : 1));
}

function tierWith(name: string, tier: Tier | undefined): Omit<JudgedTier, "policies"> {
  const builtIn = BUILT_IN_TIERS.get(name);
  const order = tier?.spec.order ?? builtIn?.order ?? Number.MAX_VALUE;
  return { name, order, defaultAction: tier?.spec.defaultAction ?? builtIn?.defaultAction ?? "Deny" };
}

interface RuleOwner {
  readonly direction: Direction;
  readonly endpoint: AnyEndpoint;
  readonly namespace: string | undefined;
  /** The endpoints that the policy selects. */
  readonly own: LabelCriteria;
  /** The address alone decides whether a request is denied: a certificate must not lead past a rule that denies. */
  readonly isDenying: boolean;
}

function matches(written: PolicyRule, packet: Packet, owner: RuleOwner, resources: PolicyResources): boolean {
  const rule = withNamedFamilies(written);
  const { family } = packet.destination;
  const own = owner.direction === "ingress" ? "destination" : "source";
  return (
    (rule.ipVersion === undefined || rule.ipVersion === family) &&
    (rule.protocol === undefined || protocolNumber(rule.protocol) === packet.protocol) &&
    (rule.notProtocol === undefined || protocolNumber(rule.notProtocol) !== packet.protocol) &&
    (rule.icmp === undefined || isIcmp(rule.icmp, packet)) &&
    (rule.notICMP === undefined || !isIcmp(rule.notICMP, packet)) &&
    (rule.http === undefined || isHttpMatch(rule.http, packet, owner.endpoint)) &&
    (["source", "destination"] as const).every((side) =>
      matchesPeer(
        rule[side] ?? {},
        peerOf(packet, side, owner),
        { ...owner, side, isOwnSide: side === own },
        resources,
      ),
    )
  );
}

function isIcmp(match: { readonly type?: number; readonly code?: number }, { icmp }: Packet): boolean {
  if (icmp === undefined) return false;
  return (
    (match.type === undefined || match.type === icmp.type) && (match.code === undefined || match.code === icmp.code)
  );
}

interface PacketPeer {
  readonly address: Address;
  readonly port: number | undefined;
  readonly protocol: number;
  readonly request: PacketRequest | undefined;
}

function peerOf(
  { protocol, request, ...packet }: Packet,
  side: "source" | "destination",
  { isDenying }: RuleOwner,
): PacketPeer {
  const port = side === "source" ? packet.sourcePort : packet.destinationPort;
  return { address: packet[side], port, protocol, request: side === "source" && !isDenying ? request : undefined };
}

function matchesPeer(
  entity: EntityRule,
  peer: PacketPeer,
  owner: RuleOwner & { readonly side: "source" | "destination"; readonly isOwnSide: boolean },
  resources: PolicyResources,
): boolean {
  const members = membersWith(peer.address, resources);
  const criteria = criteriaOf(entity, owner.namespace);
  const among = (given: LabelCriteria) => members.filter((member) => isSelected(member, given, resources));
  const inAny = (nets: readonly string[]) =>
    nets.flatMap((text) => parsePrefixOrAddress(text) ?? []).some((prefix) => prefixContains(prefix, peer.address));
  const declaring = criteria ?? (owner.isOwnSide ? owner.own : {});
  const hasPort = (ports: readonly (number | string)[]) => ports.some((port) => isPort(port, peer, among(declaring)));
  return (
    (entity.nets === undefined || entity.nets.length === 0 || inAny(entity.nets)) &&
    !inAny(entity.notNets ?? []) &&
    (criteria === undefined || (among(criteria).length > 0 && isIdentityOf(criteria, peer.request, resources))) &&
    (entity.services === undefined || isOfService(entity.services, peer, owner, resources)) &&
    (!entity.notSelector?.trim() || among({ selector: entity.notSelector }).length === 0) &&
    (entity.ports === undefined || entity.ports.length === 0 || hasPort(entity.ports)) &&
    !hasPort(entity.notPorts ?? [])
  );
}

/** At the destination, the port must be one of the service too. */
function isOfService(
  { name, namespace }: NonNullable<EntityRule["services"]>,
  { address, protocol, port }: PacketPeer,
  owner: { readonly side: "source" | "destination"; readonly namespace: string | undefined },
  { serviceEndpoints = [] }: PolicyResources,
): boolean {
  return serviceEndpoints.some(
    (slice) =>
      slice.service === name &&
      slice.namespace === (namespace ?? owner.namespace) &&
      slice.addresses.flatMap((text) => parseAddress(text) ?? []).some((own) => isSameAddress(own, address)) &&
      (owner.side === "source" || slice.ports.some((own) => own.protocol === protocol && own.port === port)),
  );
}

/** A name is a port that one of the members declares with the packet's protocol. */
function isPort(wanted: number | string, { port, protocol }: PacketPeer, members: readonly AnyMember[]): boolean {
  if (port === undefined) return false;
  if (typeof wanted === "number") return port === wanted;
  const [first, last = first] = wanted.split(":").map(Number);
  if (first !== undefined && last !== undefined && /^\d+(:\d+)?$/.test(wanted)) return first <= port && port <= last;
  return members.some(
    (member) =>
      "ports" in member.spec &&
      (member.spec.ports ?? []).some(
        (own) => own.name === wanted && own.port === port && protocolNumber(own.protocol) === protocol,
      ),
  );
}
