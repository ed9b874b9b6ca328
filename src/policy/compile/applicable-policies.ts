/**
 * Which policies apply to each local endpoint, tier by tier, and what its profiles say. Reports the endpoints for which
 * the answer may have changed.
 */
import { BUILT_IN_TIERS } from "../../model/built-in-tiers.ts";
import type { TierSpec } from "../../model/tier.ts";
import type { Labels } from "../../selector/selector.ts";
import type { Direction, EffectiveRule } from "../effective-rule.ts";
import type { SelectorText } from "../effective-selector.ts";
import type { EvaluatedTier } from "./evaluations.ts";
import { LabelIndex, type LabelledEntity } from "./label-index.ts";
import { FIRST_TIER, isSameButRules, type PolicyRecord } from "./policy-record.ts";
import type { EndpointKind, ProfileRecord } from "./profile-record.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";

const BEFORE_OTHERS: TierSpec = { order: Number.NEGATIVE_INFINITY, defaultAction: "Deny" };

export class ApplicablePolicies {
  private readonly policies = new Map<string, PolicyRecord>();
  private readonly ofSelector = new Map<SelectorText, Set<string>>();
  private readonly tiers = new Map<string, TierSpec>();
  /** Tiers that could never be read. */
  private readonly unreadableTiers = new Set<string>();
  private readonly profiles = new Map<string, ProfileRecord>();
  private readonly endpoints = new Map<string, readonly string[]>();
  private readonly selection: LabelIndex;

  constructor(private readonly touch: (endpoint: string) => void) {
    const touched = (_: SelectorText, endpoint: string) => this.touch(endpoint);
    this.selection = new LabelIndex({ matched: touched, unmatched: touched });
  }

  get policyCount(): number {
    return this.policies.size;
  }

  titles(): ReadonlySet<string> {
    return new Set(Array.from(this.policies.values(), ({ title }) => title));
  }

  policy(key: string): PolicyRecord | undefined {
    return this.policies.get(key);
  }

  /** By name. */
  get allProfiles(): ReadonlyMap<string, ProfileRecord> {
    return this.profiles;
  }

  putEndpoint(key: string, endpoint: LabelledEntity): void {
    this.endpoints.set(key, endpoint.parents);
    this.touch(key);
    this.selection.put(key, endpoint);
  }

  deleteEndpoint(key: string): void {
    this.endpoints.delete(key);
    this.selection.delete(key);
  }

  /** `undefined`: the profile is gone. */
  changeProfile(name: string, record: ProfileRecord | undefined): void {
    const before = this.profiles.get(name);
    if (record === undefined) this.profiles.delete(name);
    else this.profiles.set(name, record);
    this.selection.putParent(name, record?.labels);
    if (Bun.deepEquals(before?.rules, record?.rules)) return;
    for (const [endpoint, profiles] of this.endpoints) if (profiles.includes(name)) this.touch(endpoint);
  }

  /** Labels that endpoints of containers inherit, by target; `undefined`: they have none any more. */
  giveLabels(changes: ReadonlyMap<string, Labels | undefined>): void {
    this.selection.giveLabels(changes);
  }

  /** `undefined`: the tier is gone. */
  changeTier(name: string, tier: TierSpec | undefined): void {
    this.unreadableTiers.delete(name);
    if (tier === undefined) this.tiers.delete(name);
    else this.tiers.set(name, tier);
    for (const endpoint of this.endpoints.keys()) this.touch(endpoint);
  }

  /** A tier that was read before stays as it was. A built-in one that denies does so without its record; one that passes might deny. */
  markUnreadableTier(name: string): void {
    if (this.tiers.has(name) || BUILT_IN_TIERS.get(name)?.defaultAction === "Deny") return;
    this.unreadableTiers.add(name);
    for (const endpoint of this.endpoints.keys()) this.touch(endpoint);
  }

  /** `undefined`: the policy is gone. */
  changePolicy(key: string, now: PolicyRecord | undefined): void {
    const before = this.policies.get(key);
    if (now === undefined) this.policies.delete(key);
    else this.policies.set(key, now);
    if (before !== undefined && now !== undefined && isSameButRules(before, now)) return;
    if (before !== undefined) this.touchSelected(before);
    if (before?.selector !== now?.selector) {
      if (now !== undefined) this.select(now);
      if (before !== undefined) this.unselect(before);
    }
    if (now !== undefined) this.touchSelected(now);
  }

  /** The wanted policies that apply in this direction, in the order of their evaluation. */
  tiersOf(
    endpoint: string,
    direction: Direction,
    isWanted: (policy: PolicyRecord) => boolean,
  ): readonly EvaluatedTier[] {
    const policies = this.policiesOf(endpoint).filter((each) => each.rules[direction] !== undefined && isWanted(each));
    return Array.from(
      Map.groupBy(policies, ({ tier }) => tier),
      // Nobody knows whether an unreadable tier comes before others that allow: it denies everything, before all of them.
      ([name, members]) =>
        this.unreadableTiers.has(name)
          ? { name, ...BEFORE_OTHERS, policies: [] }
          : { name, ...this.tierOf(name), policies: members.toSorted(comparePolicies) },
    ).toSorted(compareTiers);
  }

  /** The rules of the endpoint's profiles, one after the other. */
  profileRulesOf(endpoint: string, direction: Direction, kind: EndpointKind): readonly EffectiveRule[] {
    const [only, ...more] = (this.endpoints.get(endpoint) ?? []).flatMap((name) => {
      const rules = this.profiles.get(name)?.rules[kind][direction] ?? [];
      return rules.length === 0 ? [] : [rules];
    });
    return only === undefined ? [] : more.length === 0 ? only : [only, ...more].flat();
  }

  private policiesOf(endpoint: string): readonly PolicyRecord[] {
    const found: PolicyRecord[] = [];
    for (const selector of this.selection.matchesOf(endpoint)) {
      for (const key of this.ofSelector.get(selector) ?? []) {
        const policy = this.policies.get(key);
        if (policy !== undefined) found.push(policy);
      }
    }
    return found;
  }

  /** A tier that does not exist is evaluated last, and denies what its policies do not allow. */
  private tierOf(name: string): TierSpec {
    if (name === FIRST_TIER) return BEFORE_OTHERS;
    return { defaultAction: "Deny", ...BUILT_IN_TIERS.get(name), ...this.tiers.get(name) };
  }

  private touchSelected({ selector }: PolicyRecord): void {
    for (const endpoint of this.selection.membersOf(selector)) this.touch(endpoint);
  }

  private select({ key, selector }: PolicyRecord): void {
    addTo(this.ofSelector, selector, key);
    this.selection.register(selector);
  }

  private unselect({ key, selector }: PolicyRecord): void {
    removeFrom(this.ofSelector, selector, key);
    if (!this.ofSelector.has(selector)) this.selection.unregister(selector);
  }
}

function compareTiers(left: EvaluatedTier & TierSpec, right: EvaluatedTier & TierSpec): number {
  const [leftOrder, rightOrder] = [orderOf(left), orderOf(right)];
  if (leftOrder !== rightOrder) return leftOrder < rightOrder ? -1 : 1;
  return left.name < right.name ? -1 : 1;
}

function orderOf({ order }: TierSpec): number {
  return order ?? Number.MAX_VALUE;
}

/** The order of evaluation in a tier. */
function comparePolicies(left: PolicyRecord, right: PolicyRecord): number {
  if (left.order !== right.order) return left.order < right.order ? -1 : 1;
  if (left.title !== right.title) return left.title < right.title ? -1 : 1;
  return 0;
}
