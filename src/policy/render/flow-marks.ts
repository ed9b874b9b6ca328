/**
 * What rules tell about connections while flows are observed: a rule that accepts writes which one it is into the label of
 * the connection, and before a rule that drops another one reports some of its packets. Pure.
 *
 * Only new connections come to the rules of policies, so that the packets of known ones cost nothing. A connection without
 * tracking (`doNotTrack`) has no label: only what is dropped there is reported. Why: docs/decisions/flow-labels.md.
 */
import type { Expression } from "../../linux/nftables/expression.ts";
import type { Verdict } from "../../linux/nftables/verdict.ts";
import { POINT_CODE, type Point } from "../point.ts";
import type { DesiredChain, DesiredRule } from "../table/desired-table.ts";
import { INVALID_STATE } from "../table/rule-comment.ts";
import { SIDECARS } from "./base-chains.ts";
import { matchNewConnections } from "./chain-parts.ts";

export interface FlowMarks {
  /** What a rule with this comment adds to the label of a connection; absent if the kernel has no labels. */
  readonly labelOf?: ((point: Point, comment: string) => Uint8Array | undefined) | undefined;
  /** To which log group the packets that a rule drops are reported, and how many of each rule in a second. */
  readonly denied?: { readonly group: number; readonly perSecond: number } | undefined;
}

export function withFlowMarks(chain: DesiredChain, marks: FlowMarks): DesiredChain {
  const { point } = chain;
  if (point === undefined) return chain;
  return { ...chain, rules: chain.rules.flatMap((rule) => marked(rule, point, marks)) };
}

function marked(rule: DesiredRule, point: Point, { labelOf, denied }: FlowMarks): readonly DesiredRule[] {
  switch (verdictOf(rule)?.kind) {
    case "accept":
      return labelOf === undefined ? [rule] : labelled(rule, (comment) => labelOf(point, comment));
    case "drop":
      return denied === undefined ? [rule] : reported(rule, point, denied);
    default:
      return [rule];
  }
}

function labelled(rule: DesiredRule, labelOf: (comment: string) => Uint8Array | undefined): readonly DesiredRule[] {
  const { expressions, comment, labels } = rule;
  const isUntracked = expressions.some(({ kind }) => kind === "notrack");
  if (comment === undefined || labels === "none" || isUntracked) return [rule];
  const label = labelOf(comment);
  if (label === undefined) return [rule];
  const add: readonly Expression[] = [
    { kind: "immediate", to: 0, value: label },
    { kind: "set-ct", key: "label", from: 0 },
  ];
  if (labels === "new ones")
    return [{ expressions: [...conditionsOf(rule), ...matchNewConnections(), ...add], comment }, rule];
  return [{ ...rule, expressions: [...expressions.slice(0, -1), ...add, ...expressions.slice(-1)] }];
}

/** A rule of its own: a limit that is exceeded ends the rule. The other one counts exactly, so what was not reported is known. */
function reported(
  rule: DesiredRule,
  point: Point,
  { group, perSecond }: NonNullable<FlowMarks["denied"]>,
): readonly DesiredRule[] {
  const { expressions, comment = INVALID_STATE } = rule;
  const report: DesiredRule = {
    expressions: [
      ...conditionsOf(rule),
      { kind: "limit", rate: BigInt(perSecond), per: "second", burst: perSecond },
      { kind: "log", prefix: `${POINT_CODE[point]} ${comment}`, group },
    ],
  };
  const isCounted = expressions.some(({ kind }) => kind === "counter");
  const counted = isCounted ? expressions : [...expressions.slice(0, -1), COUNTER, ...expressions.slice(-1)];
  return [report, { ...rule, expressions: counted, comment }];
}

const COUNTER: Expression = { kind: "counter" };

/** What comes before the rule counts and decides. */
function conditionsOf({ expressions }: DesiredRule): readonly Expression[] {
  return expressions.slice(
    0,
    expressions.findIndex(({ kind }) => kind === "counter" || kind === "verdict"),
  );
}

/** Comments of rules that write labels. */
export interface LabelledComments {
  readonly all: ReadonlySet<string>;
  /** Of those that accept for a sidecar, which decides about each request. */
  readonly forSidecars: ReadonlySet<string>;
}

export function labelledComments(chains: Iterable<DesiredChain>): LabelledComments {
  const [all, forSidecars] = [new Set<string>(), new Set<string>()];
  for (const { rules } of chains) {
    for (const { comment, expressions } of rules) {
      if (comment === undefined || !expressions.some((each) => each.kind === "set-ct" && each.key === "label"))
        continue;
      all.add(comment);
      if (expressions.some((each) => each.kind === "lookup" && each.set === SIDECARS)) forSidecars.add(comment);
    }
  }
  return { all, forSidecars };
}

function verdictOf({ expressions }: DesiredRule): Verdict | undefined {
  const last = expressions.at(-1);
  return last?.kind === "verdict" ? last.verdict : undefined;
}
