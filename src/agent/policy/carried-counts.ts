/**
 * Counters of rules that are written again: the new rule continues where the old one stopped. What no rule of the same batch
 * continues, since its rule or its chain is gone, is added up here, so that the sums of a policy never fall while the agent runs.
 *
 * What is counted between reading a rule and replacing it is missing: packets of about a millisecond. Pure.
 */
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import type { NftChange, NftRule } from "../../linux/nftables/ruleset.ts";
import { decisionOf } from "../../policy/render/rejected.ts";
import { readRuleComment } from "../../policy/table/rule-comment.ts";

export interface Carried {
  readonly changes: readonly NftChange[];
  /** Not continued by any rule of the changes. */
  readonly left: readonly RuleCount[];
}

/**
 * `counts`: of the rules that the changes, which are one batch, remove.
 *
 * A rule continues what the same chain counted: the ends of tiers and of profiles have the same comment for every list of policies, and
 * each is of other containers. Only what a gone chain of a policy counted goes to another chain of the policy.
 */
export function carryCounts(changes: readonly NftChange[], counts: readonly RuleCount[]): Carried {
  const written = new Set(changes.flatMap((change) => (change.kind === "add-rule" ? [change.rule.chain] : [])));
  const ofChains = new Map<string, RuleCount>();
  const ofGone = new Map<string, RuleCount>();
  for (const count of counts) {
    if (count.packets === 0) continue;
    if (!written.has(count.chain) && isOfPolicy(count)) add(ofGone, keyOf(count), count);
    else add(ofChains, keyInChain(count), count);
  }
  if (ofChains.size + ofGone.size === 0) return { changes, left: [] };
  const carried = changes.map((change): NftChange => {
    if (change.kind !== "add-rule") return change;
    const head = { chain: change.rule.chain, comment: change.rule.comment, verdict: verdictOf(change.rule) };
    // A rule of a policy can be several rules of the kernel: the first one takes all.
    const found = [take(ofChains, keyInChain(head)), take(ofGone, keyOf(head))].filter((count) => count !== undefined);
    return found.length === 0 ? change : { ...change, rule: startingAt(change.rule, found) };
  });
  return { changes: carried, left: [...ofChains.values(), ...ofGone.values()] };
}

/** Beyond this many the oldest are forgotten: namespaces come and go for years. */
const MOST_DEPARTED = 10_000;

/** Sums by comment and verdict. */
export class DepartedCounts {
  private readonly sums = new Map<string, RuleCount>();

  add(counts: readonly RuleCount[]): void {
    for (const count of counts) add(this.sums, keyOf(count), count);
    const oldest = this.sums.keys();
    while (this.sums.size > MOST_DEPARTED) this.sums.delete(oldest.next().value ?? "");
  }

  all(): readonly RuleCount[] {
    return [...this.sums.values()];
  }
}

function add(sums: Map<string, RuleCount>, key: string, count: RuleCount): void {
  const before = sums.get(key);
  const { packets = 0, bytes = 0 } = before ?? {};
  // The last ones come last.
  sums.delete(key);
  sums.set(key, { ...count, packets: packets + count.packets, bytes: bytes + count.bytes });
}

function take(sums: Map<string, RuleCount>, key: string): RuleCount | undefined {
  const sum = sums.get(key);
  sums.delete(key);
  return sum;
}

interface RuleHead {
  readonly chain: string;
  readonly comment?: string | undefined;
  readonly verdict?: string | undefined;
}

function isOfPolicy({ comment = "" }: RuleHead): boolean {
  return readRuleComment(comment).kind === "policy";
}

function keyInChain(head: RuleHead): string {
  return `${head.chain} ${keyOf(head)}`;
}

/** Not the chain: its name depends on what else applies. */
function keyOf({ comment, verdict }: Omit<RuleHead, "chain">): string {
  return `${comment} ${verdict}`;
}

function verdictOf({ expressions }: NftRule): string | undefined {
  const last = expressions.at(-1);
  return last?.kind === "verdict" ? decisionOf(last.verdict) : undefined;
}

function startingAt(rule: NftRule, counts: readonly RuleCount[]): NftRule {
  const packets = counts.reduce((sum, count) => sum + count.packets, 0);
  const bytes = counts.reduce((sum, count) => sum + count.bytes, 0);
  return {
    ...rule,
    expressions: rule.expressions.map((each) => (each.kind === "counter" ? { ...each, packets, bytes } : each)),
  };
}
