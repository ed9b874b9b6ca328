/**
 * Runs a desired table on a packet as the kernel would, instruction by instruction. For tests: what the compiler wrote
 * is compared with the judge without a kernel.
 */
import type { DesiredTable } from "../../../src/policy/table/desired-table.ts";
import type { HookPassage } from "./hook-passage.ts";
import { type ConnectionState, type PacketMarks, unmarked } from "./packet-marks.ts";
import { RuleRun } from "./rule-run.ts";

export interface Passage extends HookPassage {
  /** `new` if absent. */
  readonly state?: ConnectionState;
}

export interface Interpreted {
  readonly verdict: "accept" | "drop";
  /** The comment of the rule that decided. */
  readonly by?: string | undefined;
  /** Of each chain of the hook: the comment of the rule that decided, if it has one, and the chain that it is in. */
  readonly deciders?: readonly Decider[];
}

export interface Decider {
  readonly comment: string;
  readonly chain: string;
}

/** All chains of the hook in the order of their priorities: the first that drops decides. Changes the marks. */
export function interpret(
  table: DesiredTable,
  passage: Passage,
  marks: PacketMarks = unmarked(passage.state),
): Interpreted {
  const bases = [...table.chains.values()]
    .filter(({ chain }) => chain.base?.hook === passage.hook)
    .toSorted((left, right) => (left.chain.base?.priority ?? 0) - (right.chain.base?.priority ?? 0));
  let by: string | undefined;
  const deciders: Decider[] = [];
  for (const { chain } of bases) {
    const run = new RuleRun(table, passage, marks);
    const verdict = run.chain(chain.name) ?? chain.base?.policy ?? "accept";
    by = run.by;
    if (by !== undefined) deciders.push({ comment: by, chain: run.decidedIn ?? "" });
    if (verdict === "drop") return { verdict, by, deciders };
  }
  return { verdict: "accept", by, deciders };
}
