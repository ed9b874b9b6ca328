/**
 * Counters of rules that are written again: the new rule continues where the old one stopped. What no rule of the same batch
 * continues, since its rule or its chain is gone, is added up here, so that the sums of a policy never fall while the agent runs.
 *
 * What is counted between reading a rule and replacing it is missing: packets of about a millisecond. Pure.
 */
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import type { NftChange, NftRule } from "../../linux/nftables/ruleset.ts";

export interface Carried {
  readonly changes: readonly NftChange[];
  /** Not continued by any rule of the changes. */
  readonly left: readonly RuleCount[];
}

/** `counts`: of the rules that the changes, which are one batch, remove. */
export function carryCounts(changes: readonly NftChange[], counts: readonly RuleCount[]): Carried {
  const open = new Map<string, RuleCount>();
  for (const count of counts) if (count.packets > 0) add(open, keyOf(count), count);
  if (open.size === 0) return { changes, left: [] };
  const carried = changes.map((change): NftChange => {
    if (change.kind !== "add-rule") return change;
    const key = keyOf({ comment: change.rule.comment, verdict: verdictOf(change.rule) });
    const count = open.get(key);
    if (count === undefined) return change;
    // A rule of a policy can be several rules of the kernel, in several chains: the first one takes all.
    open.delete(key);
    return { ...change, rule: startingAt(change.rule, count) };
  });
  return { changes: carried, left: [...open.values()] };
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

/** Not the chain: its name depends on what else applies. */
function keyOf({
  comment,
  verdict,
}: {
  readonly comment?: string | undefined;
  readonly verdict?: string | undefined;
}): string {
  return `${comment} ${verdict}`;
}

function verdictOf({ expressions }: NftRule): string | undefined {
  const last = expressions.at(-1);
  return last?.kind === "verdict" ? last.verdict.kind : undefined;
}

function startingAt(rule: NftRule, { packets, bytes }: RuleCount): NftRule {
  return {
    ...rule,
    expressions: rule.expressions.map((each) => (each.kind === "counter" ? { ...each, packets, bytes } : each)),
  };
}
