/**
 * Whom a change of policies, profiles, tiers, labels or network sets closes or opens: which endpoints were open in a
 * direction, whatever the packet, and are not any more, or the other way round. Compares what applies to an endpoint, and
 * what its rules select, not packets. Pure.
 */
import { isFinished } from "../../model/finished-pods.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import type { EntityRule, PolicyRule } from "../../model/policy-rule.ts";
import { typesOf } from "../../model/policy-spec.ts";
import type { Labels } from "../../selector/selector.ts";
import type { Direction } from "../effective-rule.ts";
import { enforcedPolicy, profileRules } from "./enforced-policy.ts";
import { sidecarOf } from "./http-criteria.ts";
import { comparePolicies, isBeforeRouting, profileNamed, scopeOf, tiersOf } from "./judge.ts";
import { labelsOf, selectionOf } from "./members.ts";
import { type OwnedRules, PeerChanges, pairsOf } from "./peer-changes.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "./resources.ts";

export interface PolicyEffect {
  readonly endpoint: AnyEndpoint;
  readonly direction: Direction;
  /** `changes`: it was restricted, and is restricted in another way, or its rules select others. */
  readonly kind: "closes" | "opens" | "changes";
  /** Of host endpoints: rules restrict it, but what no rule with criteria matches is allowed. */
  readonly isRestOpen: boolean;
}

/** `always`: a network config asks for policy, so that there is a table before the first policy. */
export type ProfilesCount = "with a policy" | "always";

/** What is the same in both must be the same object. A workload that only one of them has is not compared. */
export function policyEffects(
  before: PolicyResources,
  after: PolicyResources,
  profiles: ProfilesCount = "with a policy",
): readonly PolicyEffect[] {
  const former = new AppliedPolicies(before, profiles);
  const present = new AppliedPolicies(after, profiles, former);
  const peers = new PeerChanges(before, after);
  const isConcerned = concernedBy(former, present, peers);
  const workloads = pairsOf(before.endpoints, after.endpoints).filter(
    ([left, right]) => left !== undefined && right !== undefined && !isFinished(right),
  );
  const hosts = pairsOf(before.hostEndpoints, after.hostEndpoints);
  return [...workloads, ...hosts]
    .filter(([left, right]) => left !== right || isConcerned(left))
    .flatMap(([left, right]) =>
      (["ingress", "egress"] as const).flatMap((direction): readonly PolicyEffect[] => {
        const endpoint = right ?? left;
        if (endpoint === undefined) return [];
        const states = [left, right].filter((each) => each !== undefined);
        const isSame = (one: Decider, other: Decider) =>
          one.says === other.says && (other.rules === undefined || !peers.concernAt(states, other.rules));
        const applied = present.at(right, direction);
        const kind = effectBetween(former.at(left, direction), applied, isSame);
        return kind === undefined
          ? []
          : [{ endpoint, direction, kind, isRestOpen: endpoint.kind === "HostEndpoint" && applied.isRestOpen() }];
      }),
    );
}

/** The host endpoints whose policies before routing, or what these select, change: what that does to whom depends on packets. */
export function changedBeforeRouting(before: PolicyResources, after: PolicyResources): readonly HostEndpoint[] {
  const [former, present] = [earlyPolicies(before), earlyPolicies(after)];
  if (former.length + present.length === 0) return [];
  const peers = new PeerChanges(before, after);
  return pairsOf(before.hostEndpoints, after.hostEndpoints).flatMap(([left, right]) => {
    if (right === undefined) return [];
    const earlier = left === undefined ? [] : selectedBy(former, labelsOf(left, before));
    const now = selectedBy(present, labelsOf(right, after));
    const isChanged =
      differences(earlier, now).size > 0 ||
      now.some((policy) => DIRECTIONS.some((direction) => peers.concern(rulesOf(policy, direction))));
    return isChanged ? [right] : [];
  });
}

function earlyPolicies({ globalNetworkPolicies }: PolicyResources): readonly Selecting[] {
  return globalNetworkPolicies
    .filter(isBeforeRouting)
    .map((policy) => ({ policy, selects: selectionOf(scopeOf(policy)) }));
}

function selectedBy(policies: readonly Selecting[], labels: Labels): readonly AnyPolicy[] {
  return policies.filter(({ selects }) => selects(labels)).map(({ policy }) => policy);
}

const DIRECTIONS: readonly Direction[] = ["ingress", "egress"];

function rulesOf(policy: AnyPolicy, direction: Direction): OwnedRules {
  const { namespace } = policy.metadata;
  return { rules: policy.spec[direction] ?? NO_RULES, direction, namespace, scope: scopeOf(policy) };
}

const NO_RULES: readonly PolicyRule[] = [];

function rulesOfProfile(rules: readonly PolicyRule[], direction: Direction): OwnedRules {
  return { rules, direction, namespace: undefined, scope: {} };
}

/** What decides in one direction of an endpoint. */
interface Applied {
  readonly isOpen: boolean;
  /** What no rule with criteria matches is allowed. */
  readonly isRestOpen: () => boolean;
  readonly deciders: readonly Decider[];
}

/** A policy, a profile, a tier, or whether a sidecar decides too. */
interface Decider {
  /** The same value: it says the same. */
  readonly says: unknown;
  readonly rules?: OwnedRules;
}

function effectBetween(
  before: Applied,
  after: Applied,
  isSameAs: (one: Decider, other: Decider) => boolean,
): PolicyEffect["kind"] | undefined {
  if (before.isOpen) return after.isOpen ? undefined : "closes";
  if (after.isOpen) return "opens";
  const isSame =
    before.deciders.length === after.deciders.length &&
    before.deciders.every((decider, index) => {
      const other = after.deciders[index];
      return other !== undefined && isSameAs(decider, other);
    });
  return isSame ? undefined : "changes";
}

/** Whether an endpoint that is itself unchanged may be judged in another way. */
function concernedBy(
  before: AppliedPolicies,
  after: AppliedPolicies,
  peers: PeerChanges,
): (endpoint: AnyEndpoint | undefined) => boolean {
  const [left, right] = [before.resources, after.resources];
  const isTierChanged = differences(left.tiers, right.tiers).size > 0;
  const selectsOthers = (rulesIn: (direction: Direction) => OwnedRules) =>
    DIRECTIONS.some((direction) => peers.concern(rulesIn(direction)));
  const profiles = new Set(
    [
      ...differences(left.profiles, right.profiles),
      ...right.profiles.filter(({ spec }) =>
        selectsOthers((direction) => rulesOfProfile(spec[direction] ?? NO_RULES, direction)),
      ),
    ].map(({ metadata }) => metadata.name),
  );
  const changed = [
    ...differences(left.networkPolicies, right.networkPolicies),
    ...differences(left.globalNetworkPolicies, right.globalNetworkPolicies),
    ...[...right.networkPolicies, ...right.globalNetworkPolicies].filter((policy) =>
      selectsOthers((direction) => rulesOf(policy, direction)),
    ),
  ].map((policy) => selectionOf(scopeOf(policy)));
  // The limits of a namespace can close policies that nobody has changed.
  const isClosedElsewhere = before.closedCount !== after.closedCount;
  return (endpoint) => {
    if (endpoint === undefined) return false;
    if (isTierChanged || isClosedElsewhere || peers.isOther(endpoint)) return true;
    if (before.isEnforcedFor(endpoint) !== after.isEnforcedFor(endpoint)) return true;
    if ((endpoint.spec.profiles ?? []).some((name) => profiles.has(name))) return true;
    const labels = changed.length === 0 ? {} : before.labelsOf(endpoint);
    return changed.some((selects) => selects(labels));
  };
}

function differences<T>(left: readonly T[], right: readonly T[]): ReadonlySet<T> {
  return new Set(left).symmetricDifference(new Set(right));
}

/** Of the endpoints, those that are not open in both directions, whatever the packet. */
export function restrictedEndpoints<E extends AnyEndpoint>(
  endpoints: readonly E[],
  resources: PolicyResources,
): readonly E[] {
  const applied = new AppliedPolicies(resources, "with a policy");
  return endpoints.filter(
    (endpoint) => !applied.at(endpoint, "ingress").isOpen || !applied.at(endpoint, "egress").isOpen,
  );
}

/** Which policies apply to an endpoint, for many endpoints. */
class AppliedPolicies {
  readonly closedCount: number;
  private readonly policies: readonly AppliedPolicy[];
  /** Those that the former state does not have. */
  private readonly others: readonly AppliedPolicy[];
  private readonly isAnywhere: boolean;
  private readonly byStored: ReadonlyMap<AnyPolicy, AppliedPolicy>;
  private readonly placed = new Map<AnyEndpoint, readonly AppliedPolicy[]>();
  /** Many workloads have the same labels. */
  private readonly selectingLabels = new Map<string, readonly AppliedPolicy[]>();
  private readonly nodes: ReadonlySet<string | undefined>;

  /** `former`: another state with most of the same policies; which of them select what is found out once. */
  constructor(
    readonly resources: PolicyResources,
    profiles: ProfilesCount,
    private readonly former?: AppliedPolicies,
  ) {
    const { networkPolicies, globalNetworkPolicies, hostEndpoints } = resources;
    const stored: readonly AnyPolicy[] = [...networkPolicies, ...globalNetworkPolicies];
    const enforced = stored.map((policy) => ({ stored: policy, policy: enforcedPolicy(policy, resources) }));
    this.closedCount = enforced.filter((each) => each.policy !== each.stored).length;
    this.policies = enforced
      .filter(({ policy }) => !isBeforeRouting(policy))
      .toSorted((left, right) => comparePolicies(left.policy, right.policy))
      .map(({ stored, policy }) => {
        const known = former?.policyOf(stored);
        if (known?.policy === policy) return known;
        return { stored, policy, types: typesOf(policy.spec), selects: selectionOf(scopeOf(policy)) };
      });
    this.byStored = new Map(this.policies.map((each) => [each.stored, each]));
    this.others = this.policies.filter((each) => former?.policyOf(each.stored) !== each);
    this.isAnywhere = profiles === "always" || stored.length > 0;
    this.nodes = new Set(hostEndpoints.map(({ spec }) => spec.node));
  }

  /** Without any policy and host endpoint there is no table, so that profiles do not count either. */
  isEnforcedFor({ kind, spec }: AnyEndpoint): boolean {
    return kind === "HostEndpoint" || this.isAnywhere || this.nodes.has(spec.node);
  }

  labelsOf(endpoint: AnyEndpoint): Labels {
    return labelsOf(endpoint, this.resources);
  }

  /** Without an endpoint nothing is restricted. */
  at(endpoint: AnyEndpoint | undefined, direction: Direction): Applied {
    if (endpoint === undefined || !this.isEnforcedFor(endpoint))
      return { isOpen: true, isRestOpen: () => true, deciders: [] };
    const type = direction === "ingress" ? "Ingress" : "Egress";
    const selecting = this.placed.get(endpoint) ?? this.selecting(this.labelsOf(endpoint));
    this.placed.set(endpoint, selecting);
    const applying = selecting.filter(({ types }) => types.includes(type));
    const profiles = (endpoint.spec.profiles ?? []).flatMap((name) => profileNamed(name, this.resources) ?? []);
    const all = tiersOf(
      applying.map(({ policy }) => policy),
      this.resources,
    ).map((tier) => ({ ...tier, rules: tier.policies.flatMap(({ spec }) => spec[direction] ?? NO_RULES) }));
    const last = all.findIndex((tier) => !mayPass(tier));
    const tiers = last < 0 ? all : all.slice(0, last + 1);
    const reached = new Set(tiers.flatMap(({ policies }) => policies));
    const ofTiers = opennessOfTiers(tiers);
    const ofProfiles = profiles.map((stored) => {
      const rules = profileRules(stored, endpoint, direction, this.resources);
      return { says: `${stored.metadata.name} ${textOf(rules)}`, rules: rulesOfProfile(rules, direction) };
    });
    const rules = ofProfiles.flatMap((each) => each.rules.rules);
    const rest = () => opennessOfTiers(tiers.map((tier) => ({ ...tier, rules: tier.rules.filter(matchesEverything) })));
    const isOpen = (openness: Openness, inProfiles: readonly PolicyRule[]) =>
      (openness === "passed" ? opennessOf(inProfiles) : openness) === "open";
    return {
      isOpen: isOpen(ofTiers, rules),
      isRestOpen: () => isOpen(rest(), rules.filter(matchesEverything)),
      deciders: [
        ...tiers.map(({ name, order, defaultAction }) => ({ says: `${name} ${order} ${defaultAction}` })),
        ...applying.filter(({ policy }) => reached.has(policy)).map((each) => deciderOf(each, endpoint, direction)),
        ...(last < 0 ? ofProfiles : []),
        { says: sidecarOf(endpoint) !== undefined && applying.some(({ policy }) => hasHttp(policy)) },
      ],
    };
  }

  private policyOf(stored: AnyPolicy): AppliedPolicy | undefined {
    return this.byStored.get(stored);
  }

  private selecting(labels: Labels): readonly AppliedPolicy[] {
    const text = JSON.stringify(labels);
    const known = this.selectingLabels.get(text) ?? this.derived(labels, this.former?.selectingLabels.get(text));
    const found = known ?? this.policies.filter(({ selects }) => selects(labels));
    this.selectingLabels.set(text, found);
    return found;
  }

  private derived(labels: Labels, before: readonly AppliedPolicy[] | undefined): readonly AppliedPolicy[] | undefined {
    if (before === undefined) return undefined;
    const kept = before.filter((each) => this.policyOf(each.stored) === each);
    const more = this.others.filter(({ selects }) => selects(labels));
    return [...kept, ...more].toSorted((left, right) => comparePolicies(left.policy, right.policy));
  }
}

/** At a host the ports that a rule names are those of whom the policy selects. */
function deciderOf({ stored, policy }: AppliedPolicy, { kind }: AnyEndpoint, direction: Direction): Decider {
  const rules = rulesOf(policy, direction);
  const { kind: own, metadata } = policy;
  const text = `${own} ${metadata.namespace ?? ""}/${metadata.name} ${textOf(rules.rules)}`;
  return { says: kind === "HostEndpoint" && policy === stored ? stored : text, rules };
}

const texts = new WeakMap<readonly PolicyRule[], string>();

function textOf(rules: readonly PolicyRule[]): string {
  const text = texts.get(rules) ?? JSON.stringify(rules);
  texts.set(rules, text);
  return text;
}

function hasHttp({ spec: { ingress = [] } }: AnyPolicy): boolean {
  return ingress.some(({ http }) => http !== undefined);
}

/** Whether any packet can get to the next tier, or to the profiles. */
function mayPass({ rules, defaultAction }: TierRules): boolean {
  const first = rules.find((rule) => rule.action === "Pass" || (rule.action !== "Log" && matchesEverything(rule)));
  return first === undefined ? defaultAction === "Pass" : first.action === "Pass";
}

interface Selecting {
  readonly policy: AnyPolicy;
  readonly selects: (labels: Labels) => boolean;
}

interface AppliedPolicy extends Selecting {
  readonly stored: AnyPolicy;
  readonly types: readonly string[];
}

/** `passed`: to the next tier or the profiles, whatever the packet. `undecided`: no rule decides about every packet, and none denies any. */
type Openness = "open" | "restricted" | "passed" | "undecided";

function opennessOfTiers(tiers: readonly TierRules[]): Openness {
  for (const { rules, defaultAction } of tiers) {
    const openness = opennessOf(rules);
    if (openness === "undecided" && defaultAction === "Deny") return "restricted";
    if (openness === "open" || openness === "restricted") return openness;
  }
  return "passed";
}

interface TierRules {
  readonly rules: readonly PolicyRule[];
  readonly defaultAction: "Deny" | "Pass";
}

/** What some rules allow is open whatever comes after them; a rule that denies or passes some packets restricts. */
function opennessOf(rules: readonly PolicyRule[]): Openness {
  const first = rules.find((rule) => rule.action !== "Log" && (rule.action !== "Allow" || matchesEverything(rule)));
  if (first === undefined) return "undecided";
  if (!matchesEverything(first)) return "restricted";
  return first.action === "Allow" ? "open" : first.action === "Pass" ? "passed" : "restricted";
}

function matchesEverything({ action: _, metadata: __, source, destination, ...criteria }: PolicyRule): boolean {
  return Object.values(criteria).every((value) => value === undefined) && isAny(source) && isAny(destination);
}

function isAny(entity: EntityRule = {}): boolean {
  return Object.values(entity).every((value) => value === undefined || value === "" || isEmptyList(value));
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
