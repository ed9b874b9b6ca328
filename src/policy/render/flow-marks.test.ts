import { describe, expect, test } from "bun:test";
import { matchProtocol, verdict } from "../../linux/nftables/match.ts";
import type { Point } from "../point.ts";
import type { DesiredRule } from "../table/desired-table.ts";
import { SIDECARS } from "./base-chains.ts";
import { matchNewConnections } from "./chain-parts.ts";
import { type FlowMarks, labelledComments, withFlowMarks } from "./flow-marks.ts";

const LABEL = Uint8Array.of(1, 2, 3);
const ADD = [
  { kind: "immediate", to: 0, value: LABEL },
  { kind: "set-ct", key: "label", from: 0 },
] as const;
const COUNTER = { kind: "counter" } as const;
const TCP = matchProtocol(6);
const ACCEPT = verdict({ kind: "accept" });
const DROP = verdict({ kind: "drop" });
const ALL: FlowMarks = { labelOf: () => LABEL, denied: { group: 7, perSecond: 5 } };

function marked(rule: DesiredRule, marks = ALL, point: Point | undefined = "host in"): readonly DesiredRule[] {
  return withFlowMarks({ chain: { name: "chain" }, rules: [rule], ...(point === undefined ? {} : { point }) }, marks)
    .rules;
}

describe("withFlowMarks()", () => {
  test("a rule that accepts writes its label last, and asks for it with its point and comment", () => {
    const asked: unknown[] = [];
    const labelOf = (...question: readonly unknown[]) => {
      asked.push(question);
      return LABEL;
    };
    const rule = { expressions: [...TCP, COUNTER, ACCEPT], comment: "shop/db ingress 0" };

    expect(marked(rule, { labelOf }, "workload ingress")).toEqual([
      { ...rule, expressions: [...TCP, COUNTER, ...ADD, ACCEPT] },
    ]);
    expect(asked).toEqual([["workload ingress", "shop/db ingress 0"]]);
  });

  test("a rule that known connections pass too writes labels of new ones by a rule of its own", () => {
    const rule = { expressions: [...TCP, ACCEPT], comment: "x", labels: "new ones" as const };

    expect(marked(rule)).toEqual([{ expressions: [...TCP, ...matchNewConnections(), ...ADD], comment: "x" }, rule]);
  });

  test.each<[string, DesiredRule, FlowMarks?]>([
    ["without a comment: of known connections", { expressions: [...TCP, ACCEPT] }],
    ["whose packets belong to no flow", { expressions: [ACCEPT], comment: "x", labels: "none" }],
    ["that leaves connections untracked", { expressions: [{ kind: "notrack" }, ACCEPT], comment: "x" }],
    ["without a number", { expressions: [ACCEPT], comment: "x" }, { labelOf: () => undefined }],
    ["if the kernel has no labels", { expressions: [ACCEPT], comment: "x" }, { ...ALL, labelOf: undefined }],
    [
      "that drops, if the kernel cannot report",
      { expressions: [COUNTER, DROP], comment: "x" },
      { labelOf: () => LABEL },
    ],
    ["that goes on", { expressions: [verdict({ kind: "goto", chain: "x" })], comment: "x" }],
  ])("a rule stays as it is %s", (_, rule, marks = ALL) => {
    expect(marked(rule, marks)).toEqual([rule]);
  });

  test("a chain that judges nowhere stays as it is", () => {
    const chain = { chain: { name: "chain" }, rules: [{ expressions: [ACCEPT], comment: "x" }] };
    expect(withFlowMarks(chain, ALL)).toBe(chain);
  });

  test("a rule that drops is preceded by one with the same conditions and a limit, which counts nothing", () => {
    const rule = { expressions: [...TCP, COUNTER, DROP], comment: "shop/db ingress 1" };

    expect(marked(rule, ALL, "workload egress")).toEqual([
      {
        expressions: [
          ...TCP,
          { kind: "limit", rate: 5n, per: "second", burst: 5 },
          { kind: "log", prefix: "we shop/db ingress 1", group: 7 },
        ],
      },
      rule,
    ]);
  });

  test("a rule that drops what belongs to no connection is named, and counts", () => {
    const [report, rule] = marked({ expressions: [...TCP, DROP] });

    expect(report?.expressions.at(-1)).toEqual({ kind: "log", prefix: "hi state invalid", group: 7 });
    expect(rule).toEqual({ expressions: [...TCP, COUNTER, DROP], comment: "state invalid" });
  });
});

test("labelledComments(): those of rules that write labels, each once, and which of them accept for a sidecar", () => {
  const toSidecar = { kind: "lookup", set: SIDECARS, from: 0 } as const;
  const rules: DesiredRule[] = [
    ...["a", "b", "a"].map((comment) => ({ expressions: [ACCEPT], comment })),
    { expressions: [toSidecar, ACCEPT], comment: "http" },
  ];
  const chain = { chain: { name: "chain" }, rules, point: "workload ingress" } as const;

  expect(labelledComments([chain]).all.size).toBe(0);
  expect(labelledComments([withFlowMarks(chain, ALL)])).toEqual({
    all: new Set(["a", "b", "http"]),
    forSidecars: new Set(["http"]),
  });
});
