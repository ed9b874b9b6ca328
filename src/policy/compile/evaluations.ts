/**
 * The chains that evaluate policies for endpoints, shared by all endpoints with the same policies in the same order.
 *
 *   entry          jump to the prelude, then go to the first tier; only if there is a prelude
 *   tier chain     jump to each policy of the tier; then its default: drop, or go on with the rest
 *   rest           the chain of the next tier, or at last the ending
 *   ending         the rules of the profiles; then drop
 *   policy chain   its rules; Pass goes to the rest, so a policy with Pass has one chain for each rest;
 *                  a policy with http has one for workloads, and one without these rules for hosts;
 *                  while flows are observed hosts have chains of their own, which know where they judge a packet
 *
 * Every chain but a policy's ends with a verdict. A chain exists while something refers to it.
 */

import { identity } from "../../identity.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { verdict } from "../../linux/nftables/match.ts";
import { UPGRADE_POLICY } from "../../model/upgrade-policy.ts";
import type { Direction, EffectiveRule, SetReference } from "../effective-rule.ts";
import type { Point } from "../point.ts";
import { SIDECARS } from "../render/base-chains.ts";
import { deny } from "../render/chain-parts.ts";
import { ACCEPTED } from "../render/packet-mark.ts";
import { LOG_LIMIT, type RuleContext, renderRule } from "../render/rule.ts";
import type { DesiredRule, TableDelta } from "../table/desired-table.ts";
import {
  type AnyReference,
  groupChainName,
  policyChainName,
  type RangeList,
  referencesOf,
  wholeNameOf,
  wholeSetName,
} from "../table/names.ts";
import { endOfText, noProfileComment, shortComment } from "../table/rule-comment.ts";
import type { TableBuilder } from "../table/table-builder.ts";
import type { MemberSets } from "./member-sets.ts";
import type { PolicyRecord, PolicyStage } from "./policy-record.ts";
import { RangeSets } from "./range-sets.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";

export interface EvaluatedTier {
  readonly name: string;
  readonly defaultAction: "Deny" | "Pass";
  readonly policies: readonly PolicyRecord[];
}

/** What is evaluated for an endpoint in one direction. */
export interface Evaluation {
  readonly direction: Direction;
  readonly tiers: readonly EvaluatedTier[];
  /** The rules of its profiles, in order. */
  readonly profileRules: readonly EffectiveRule[];
  /** If nothing decided. `next stage`: the packet is judged later. */
  readonly otherwise: "drop" | "accept" | "next stage";
  readonly of: "workload" | "host";
  /** Packets leave by the interface of a workload, which may have a sidecar; otherwise rules with `http` match nothing. */
  readonly hasSidecars: boolean;
  /** A chain that exists as long as the evaluation, with the packets that are not evaluated. */
  readonly prelude?: string;
}

interface HeldChain {
  uses: number;
  /** Chains that it jumps or goes to. */
  readonly chains: readonly string[];
  readonly sets: readonly AnyReference[];
  /** The sets of the long lists in its rules, as often as they are used. */
  readonly lists: readonly string[];
  /** Of a policy chain: renders it again. */
  readonly policy?: HeldPolicy;
}

interface HeldPolicy {
  readonly key: string;
  readonly direction: Direction;
  readonly rest: string;
  /** Its rules with `http` are left out: the chain of a host. */
  readonly isWithoutHttp: boolean;
  /** The chain is not shared with workloads. */
  readonly isOfHost: boolean;
}

interface HeldEnding {
  readonly evaluation: Evaluation;
  readonly isOfHost: boolean;
}

export class Evaluations {
  private readonly held = new Map<string, HeldChain>();
  private readonly chainsOfPolicy = new Map<string, Set<string>>();
  /** By the name of the whole set: the policy and ending chains that use the set. */
  private readonly usersOfSet = new Map<string, Set<string>>();
  private readonly endings = new Map<string, HeldEnding>();
  private readonly rangeSets: RangeSets;

  constructor(
    private readonly table: TableBuilder,
    private readonly sets: MemberSets,
    private readonly policyOf: (key: string) => PolicyRecord | undefined,
  ) {
    this.rangeSets = new RangeSets(table);
  }

  /** The name of the chain to go to. The caller releases it when it no longer refers to it. */
  retain(evaluation: Evaluation): string {
    const { direction, tiers, prelude } = evaluation;
    const ending = this.retainEnding(evaluation);
    const first = tiers.reduceRight((rest, tier) => this.retainTier(tier, rest, evaluation), ending);
    return prelude === undefined ? first : this.retainEntry(prelude, direction, first);
  }

  release(name: string): void {
    const held = this.held.get(name);
    if (held === undefined) return;
    held.uses -= 1;
    if (held.uses > 0) return;
    this.held.delete(name);
    this.endings.delete(name);
    this.table.deleteChain(name);
    this.releaseSets(name, held.sets);
    for (const list of held.lists) this.rangeSets.release(list);
    if (held.policy !== undefined) removeFrom(this.chainsOfPolicy, held.policy.key, name);
    for (const chain of held.chains) this.release(chain);
  }

  /** An endpoint of this node evaluates it. */
  usesPolicy(key: string): boolean {
    return this.chainsOfPolicy.has(key);
  }

  /**
   * The keys of the policies that decide in another way after these changes, because of their rules or of the members
   * of sets; `undefined` for chains of no policy. Not those that are only evaluated for other endpoints than before.
   */
  *decidingOtherwise({ chains, elements }: TableDelta): Iterable<string | undefined> {
    for (const [name, how] of chains) if (how === "changed") yield this.held.get(name)?.policy?.key;
    for (const set of elements.keys())
      for (const user of this.usersOfSet.get(wholeNameOf(set)) ?? []) yield this.held.get(user)?.policy?.key;
  }

  /** The rules of the policy have changed, but not whether they contain Pass. */
  renderPolicy(key: string): void {
    for (const name of this.chainsOfPolicy.get(key) ?? []) this.renderPolicyChain(name);
  }

  /** The set has a twin with networks now, or none any more. */
  renderUsersOf(reference: AnyReference): void {
    for (const name of [...(this.usersOfSet.get(wholeSetName(reference)) ?? [])]) {
      if (this.held.get(name)?.policy !== undefined) this.renderPolicyChain(name);
      else this.renderEnding(name);
    }
  }

  /** Returns whether the chain exists. Its rest was retained for it once more, and it holds it already. */
  private useAgain(name: string, rest?: string): boolean {
    const held = this.held.get(name);
    if (held === undefined) return false;
    held.uses += 1;
    if (rest !== undefined) this.release(rest);
    return true;
  }

  private retainEntry(prelude: string, direction: Direction, rest: string): string {
    const name = groupChainName(`entry ${prelude} ${rest}`, direction);
    if (this.useAgain(name, rest)) return name;
    this.held.set(name, { uses: 1, chains: [rest], sets: [], lists: [] });
    const rules = [
      { expressions: [verdict({ kind: "jump", chain: prelude })] },
      { expressions: [verdict({ kind: "goto", chain: rest })] },
    ];
    this.table.putChain({ chain: { name }, rules });
    return name;
  }

  private retainEnding(evaluation: Evaluation): string {
    const { direction, profileRules, otherwise } = evaluation;
    const isOfHost = this.isOfHost(evaluation);
    const end = isOfHost ? `${otherwise} of a host` : otherwise === "drop" ? "drop" : "accept";
    const name = groupChainName(`ending ${end} ${textOfRules(profileRules)}`, direction);
    if (this.useAgain(name)) return name;
    const sets = referencesOf(profileRules);
    this.held.set(name, { uses: 1, chains: [], sets, lists: [] });
    this.endings.set(name, { evaluation, isOfHost });
    this.retainSets(name, sets);
    this.renderEnding(name);
    return name;
  }

  private renderEnding(name: string): void {
    const held = this.endings.get(name);
    if (held === undefined) return;
    const { evaluation, isOfHost } = held;
    const { profileRules, direction } = evaluation;
    const title = `profile ${direction}`;
    const logPrefix = logPrefixOf(`${title} rule`);
    const context = {
      ...{ rest: name, logPrefix, logLimit: LOG_LIMIT },
      ...{ onAllow: [], comment: title, sidecars: undefined, mayReject: true },
    };
    const rules = this.renderRules(name, profileRules, () => context);
    const point = pointOf(direction, isOfHost);
    this.table.putChain({ chain: { name }, rules: [...rules, endRule(evaluation, isOfHost)], point });
  }

  /** Otherwise its chains are those of workloads: nobody asks where they judge. */
  private isOfHost(evaluation: Evaluation): boolean {
    return evaluation.of === "host" && this.table.hasFlows;
  }

  private retainTier(tier: EvaluatedTier, rest: string, evaluation: Evaluation): string {
    const { direction, hasSidecars } = evaluation;
    const isOfHost = this.isOfHost(evaluation);
    const held = (policy: PolicyRecord): HeldPolicy => ({
      ...{ key: policy.key, direction, rest, isOfHost },
      isWithoutHttp: !hasSidecars && (policy.rules[direction] ?? []).some(({ http }) => http !== undefined),
    });
    const chains = tier.policies.map((policy) => policyChainOf(policy, held(policy)));
    // The rule at the end names its tier.
    const end = tier.defaultAction === "Deny" ? `Deny ${tier.name}` : tier.defaultAction;
    const name = groupChainName(`tier ${end} ${chains.join(" ")} ${rest}`, direction);
    if (this.useAgain(name, rest)) return name;
    for (const [index, policy] of tier.policies.entries()) this.retainPolicy(held(policy), chains[index] ?? "");
    this.held.set(name, { uses: 1, chains: [...chains, rest], sets: [], lists: [] });
    const last: DesiredRule =
      tier.defaultAction === "Deny"
        ? deny(`tier ${shortComment(tier.name, LONGEST_TIER)} ${direction} default`)
        : { expressions: [verdict({ kind: "goto", chain: rest })] };
    this.table.putChain({
      chain: { name },
      rules: [...chains.map((chain) => ({ expressions: [verdict({ kind: "jump", chain })] })), last],
      point: pointOf(direction, isOfHost),
    });
    return name;
  }

  private retainPolicy(policy: HeldPolicy, name: string): void {
    if (this.useAgain(name)) return;
    // The tiers that jump to it hold the rest.
    this.held.set(name, { uses: 1, chains: [], sets: [], lists: [], policy });
    addTo(this.chainsOfPolicy, policy.key, name);
    this.renderPolicyChain(name);
  }

  private renderPolicyChain(name: string): void {
    const held = this.held.get(name);
    if (held?.policy === undefined) return;
    const { key, direction, rest, isWithoutHttp, isOfHost } = held.policy;
    const policy = this.policyOf(key);
    const rules = policy?.rules[direction] ?? [];
    const sets = referencesOf(rules);
    // Retained first: a set that both need keeps its members.
    this.retainSets(name, sets);
    this.releaseSets(name, held.sets);
    if (held.sets.length > 0) for (const reference of sets) addTo(this.usersOfSet, wholeSetName(reference), name);
    this.held.set(name, { ...held, sets });
    const title = `${policy?.title} ${direction}`;
    const stage = policy?.stage ?? "normal";
    const context = {
      rest,
      sidecars: isWithoutHttp ? undefined : SIDECARS,
      onAllow: ON_ALLOW[stage],
      mayReject: stage === "normal",
      logLimit: MUCH_LOGGED.has(policy?.title ?? "") ? HIGH_LOG_LIMIT : LOG_LIMIT,
    };
    this.table.putChain({
      chain: { name, comment: title.slice(0, LONGEST_COMMENT) },
      point: pointOf(direction, isOfHost),
      rules: this.renderRules(name, rules, (index) => ({
        ...context,
        logPrefix: logPrefixOf(`${title} rule ${index + 1}`),
        comment: shortComment(`${title} ${index}`, LONGEST_COMMENT),
      })),
    });
  }

  /** Holds the sets of the long lists in the rules for the chain, instead of those of its former rules. */
  private renderRules(
    chain: string,
    rules: readonly EffectiveRule[],
    contextOf: (index: number) => Omit<RuleContext, "hasPrefixes" | "nameOfRanges">,
  ): readonly DesiredRule[] {
    const lists: string[] = [];
    const nameOfRanges = (list: RangeList) => {
      const name = this.rangeSets.retain(list);
      lists.push(name);
      return name;
    };
    const hasPrefixes = (reference: SetReference) => this.sets.hasPrefixes(reference);
    const rendered = rules.flatMap((rule, index) =>
      renderRule(rule, { ...contextOf(index), hasPrefixes, nameOfRanges }),
    );
    const held = this.held.get(chain);
    if (held === undefined) return rendered;
    for (const list of held.lists) this.rangeSets.release(list);
    this.held.set(chain, { ...held, lists });
    return rendered;
  }

  private retainSets(chain: string, sets: readonly AnyReference[]): void {
    for (const reference of sets) {
      this.sets.retain(reference);
      addTo(this.usersOfSet, wholeSetName(reference), chain);
    }
  }

  private releaseSets(chain: string, sets: readonly AnyReference[]): void {
    for (const reference of sets) {
      this.sets.release(reference);
      removeFrom(this.usersOfSet, wholeSetName(reference), chain);
    }
  }
}

/** What an allowed packet is told before it is accepted. */
const ON_ALLOW: Readonly<Record<PolicyStage, readonly Expression[]>> = {
  normal: [],
  preDNAT: ACCEPTED.set,
  untracked: [{ kind: "notrack" }],
};

/** In bytes: `nft` takes 128 of a comment, the kernel 127 of a log prefix. */
const LONGEST_COMMENT = 120;
const LONGEST_TIER = 100;
const LONGEST_LOG_PREFIX = 100;

/** A policy for the traffic of hosts is drafted from the lines of this one: each peer must be among them. */
const MUCH_LOGGED: ReadonlySet<string> = new Set([UPGRADE_POLICY, `default.${UPGRADE_POLICY}`]);
const HIGH_LOG_LIMIT: Expression = { kind: "limit", rate: 1_000n, per: "second", burst: 5_000 };

/** `vendor shop/db ingress rule 2: `. A very long name lacks its beginning. */
function logPrefixOf(title: string): string {
  return `${identity.product} ${endOfText(title, LONGEST_LOG_PREFIX)}: `;
}

function passes(policy: PolicyRecord, direction: Direction): boolean {
  return (policy.rules[direction] ?? []).some(({ action }) => action === "Pass");
}

function policyChainOf(policy: PolicyRecord, { key, direction, rest, ...variant }: HeldPolicy): string {
  return policyChainName(key, direction, { rest: passes(policy, direction) ? rest : undefined, ...variant });
}

function pointOf(direction: Direction, isOfHost: boolean): Point {
  return direction === "ingress"
    ? isOfHost
      ? "host in"
      : "workload ingress"
    : isOfHost
      ? "host out"
      : "workload egress";
}

function endRule({ otherwise, direction }: Evaluation, isOfHost: boolean): DesiredRule {
  if (otherwise === "drop") return deny(noProfileComment(direction));
  const expressions = [verdict({ kind: "accept" })];
  return otherwise === "accept" && isOfHost
    ? { expressions, comment: `no policy decides it, ${direction}` }
    : { expressions };
}

const textsOfRules = new WeakMap<readonly EffectiveRule[], string>();

/** The same text for equal rules. Most endpoints share the rules of a few profiles. */
function textOfRules(rules: readonly EffectiveRule[]): string {
  const known = textsOfRules.get(rules);
  if (known !== undefined) return known;
  const text = JSON.stringify(rules, textOfBigint);
  textsOfRules.set(rules, text);
  return text;
}

function textOfBigint(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? value.toString() : value;
}
