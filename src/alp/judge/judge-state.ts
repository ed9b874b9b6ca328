/**
 * The state that a sidecar decides with: what the node agent sent, compiled. An update changes all of it or nothing: it is
 * read and checked as a whole before the first part of the state changes.
 */
import { type Address, parseAddress } from "../../ip/address.ts";
import { MalformedMessage, malformedValue } from "../protocol/malformed-message.ts";
import type { SidecarTier, SidecarUpdate } from "../protocol/sidecar-state.ts";
import { type CompiledRule, compilePolicy, compileProfiles, setsOf } from "./compiled-rule.ts";
import { decisionOfTier, type RequestDecision } from "./request-decision.ts";
import { RuleIndex } from "./rule-index.ts";
import { readSetChanges } from "./set-changes.ts";
import { SetMemberships, type SetNames } from "./set-memberships.ts";

type Rules = readonly CompiledRule[];

export interface JudgeState {
  /** Of the pod. */
  readonly addresses: readonly Address[];
  readonly tiers: readonly JudgeTier[];
  readonly profiles: RuleIndex;
  readonly memberships: SetMemberships;
  /** What the next update is based on. */
  readonly sent: {
    readonly tiers: readonly SidecarTier[];
    readonly profiles: Rules;
    readonly policies: ReadonlyMap<string, Rules>;
    readonly sets: SetNames;
  };
}

export interface JudgeTier {
  readonly policies: readonly Rules[];
  readonly index: RuleIndex;
  /** If no rule matches. */
  readonly outcome: RequestDecision | "Pass";
}

/** The first update has the whole state. */
export function firstState(update: SidecarUpdate): JudgeState {
  for (const field of ["addresses", "evaluation"] as const) {
    if (update[field] === undefined) throw new MalformedMessage(field, "is required in the first update");
  }
  return nextState(emptyState(), update);
}

/** The memberships of the state before are changed, not copied: it must not be used any more. */
export function nextState(before: JudgeState, update: SidecarUpdate): JudgeState {
  const { addresses, evaluation } = update;
  const changed = compileChanged(update);
  const policies = changed.size === 0 ? before.sent.policies : withChanges(before.sent.policies, changed);
  const tiers = evaluation?.tiers ?? before.sent.tiers;
  const profiles =
    evaluation === undefined ? before.sent.profiles : compileProfiles(evaluation.profiles, "evaluation.profiles");
  const sets = readSetChanges(update.sets ?? {}, before.sent.sets);
  requireSets(sets.hasDeleted ? policies : changed, profiles, sets.names);
  const next = {
    addresses: addresses === undefined ? before.addresses : parseAddresses(addresses, "addresses"),
    tiers: compileTiers(tiers, policies, before.tiers),
    profiles: profiles === before.sent.profiles ? before.profiles : new RuleIndex(profiles),
    memberships: before.memberships,
    sent: { tiers, profiles, policies, sets: sets.names },
  };
  // Everything has been checked: from here on nothing fails.
  sets.applyTo(next.memberships);
  return next;
}

function emptyState(): JudgeState {
  return {
    addresses: [],
    tiers: [],
    profiles: new RuleIndex([]),
    memberships: new SetMemberships(),
    sent: { tiers: [], profiles: [], policies: new Map(), sets: new Set() },
  };
}

/** `undefined`: the policy is deleted. */
function compileChanged({ policies = {} }: SidecarUpdate): ReadonlyMap<string, Rules | undefined> {
  return new Map(
    Object.entries(policies).map(([key, policy]) => [
      key,
      policy === null ? undefined : compilePolicy(policy, `policies.${key}`),
    ]),
  );
}

function withChanges<Value>(
  before: ReadonlyMap<string, Value>,
  changed: ReadonlyMap<string, Value | undefined>,
): ReadonlyMap<string, Value> {
  const after = new Map(before);
  for (const [key, value] of changed) {
    if (value === undefined) after.delete(key);
    else after.set(key, value);
  }
  return after;
}

/** Of tiers that stay as they were, the index stays too. */
function compileTiers(
  tiers: readonly SidecarTier[],
  all: ReadonlyMap<string, Rules>,
  before: readonly JudgeTier[],
): readonly JudgeTier[] {
  return tiers.flatMap(({ name, defaultAction, policies: keys }, place) => {
    // A tier without policies that apply decides nothing.
    if (keys.length === 0) return [];
    const policies = keys.map((key, index) => {
      const rules = all.get(key);
      if (rules === undefined) {
        throw malformedValue(`evaluation.tiers[${place}].policies[${index}]`, key, "a known policy");
      }
      return rules;
    });
    const known = before.find((tier) => isSameList(tier.policies, policies));
    const index = known?.index ?? new RuleIndex(policies.flat());
    return [{ policies, index, outcome: defaultAction === "Pass" ? defaultAction : decisionOfTier(name) }];
  });
}

function isSameList<Value>(left: readonly Value[], right: readonly Value[]): boolean {
  return left.length === right.length && left.every((value, place) => value === right[place]);
}

/** Without this check, a rule that excludes a set that is unknown would match too much. */
function requireSets(policies: ReadonlyMap<string, Rules | undefined>, profiles: Rules, known: SetNames): void {
  for (const [key, rules = []] of policies) requireSetsOf(rules, known, `policies.${key}.rules`);
  requireSetsOf(profiles, known, "evaluation.profiles");
}

function requireSetsOf(rules: Rules, known: SetNames, field: string): void {
  for (const [place, rule] of rules.entries()) {
    const unknown = setsOf(rule).find((set) => !known.has(set));
    if (unknown !== undefined) throw new MalformedMessage(`${field}[${place}]`, `set "${unknown}" is unknown`);
  }
}

function parseAddresses(texts: readonly string[], field: string): readonly Address[] {
  return texts.map((text, place) => {
    const address = parseAddress(text);
    if (address === undefined) throw malformedValue(`${field}[${place}]`, text, "an address");
    return address;
  });
}
