import { describe, expect, test } from "bun:test";
import { rollup } from "../../../test/support/imitated-flows.ts";
import type { FlowAnswer, FlowRollup } from "../../flows/flow-answer.ts";
import { pairSums, topRows } from "./sums.ts";

const rollups = (...answers: readonly FlowAnswer[]): readonly FlowRollup[] =>
  answers.flatMap((answer) => ("rollup" in answer ? [answer.rollup] : []));

const LEAVING = ["workload egress: profile egress"];
const ARRIVING = ["workload ingress: shop/db ingress 0"];

const flowsOf = (...answers: readonly FlowAnswer[]) =>
  pairSums(rollups(...answers)).map(({ verdict, flows }) => [verdict, flows]);

describe("pairSums()", () => {
  test("counts connections between two nodes once, and those on one node beside them", () => {
    expect(
      flowsOf(
        rollup({ node: "a", rules: LEAVING, flows: 5 }),
        rollup({ node: "b", rules: ARRIVING, flows: 4 }),
        rollup({ node: "b", rules: ARRIVING, flows: 1 }),
        rollup({ node: "c", flows: 10 }),
      ),
    ).toEqual([["allowed", 15]]);
  });

  test("does not count as allowed what left its node and was denied on arrival", () => {
    expect(
      flowsOf(
        rollup({ node: "a", rules: LEAVING, flows: 7 }),
        rollup({ node: "b", rules: ARRIVING, flows: 3 }),
        rollup({ node: "b", rules: ["workload ingress: shop/db ingress 1"], verdict: "denied", flows: 4 }),
      ),
    ).toEqual([
      ["allowed", 3],
      ["denied", 4],
    ]);
  });

  test("counts once what a node has seen whose rules are hidden from the user", () => {
    expect(
      flowsOf(rollup({ node: "a", rules: [], flows: 5 }), rollup({ node: "b", rules: ARRIVING, flows: 5 })),
    ).toEqual([["allowed", 5]]);
  });

  test("does not count as allowed what was denied, if the rules about either end are hidden from the user", () => {
    const [left, denied] = [
      { node: "a", flows: 7 },
      { node: "b", verdict: "denied", flows: 4 },
    ] as const;
    const expected: [FlowRollup["verdict"], number][] = [
      ["allowed", 3],
      ["denied", 4],
    ];
    expect(flowsOf(rollup({ ...left, rules: LEAVING }), rollup({ ...denied, rules: [] }))).toEqual(expected);
    expect(flowsOf(rollup({ ...left, rules: [] }), rollup({ ...denied, rules: ARRIVING }))).toEqual(expected);
  });

  test("counts all that is denied, wherever", () => {
    expect(
      flowsOf(
        rollup({ node: "a", rules: LEAVING, verdict: "denied", flows: 2 }),
        rollup({ node: "b", rules: ARRIVING, verdict: "denied", flows: 3 }),
      ),
    ).toEqual([["denied", 5]]);
  });

  test("keeps ports, protocols and groups of the same name apart", () => {
    const others = [
      rollup({ port: 80 }),
      rollup({ protocol: 17 }),
      rollup({ source: { kind: "pod", namespace: "shop", name: "web", ownerKind: "DaemonSet" } }),
    ];
    expect(pairSums(rollups(rollup(), ...others))).toHaveLength(4);
  });
});

describe("topRows()", () => {
  test("by rule, an allowed connection counts for each rule that let it pass, a denied one for the rule that denied it", () => {
    const denied = rollup({ rules: [...LEAVING, "workload ingress: shop/db ingress 1"], verdict: "denied", flows: 2 });

    expect(
      topRows(rollups(rollup(), denied), "rule").map(({ cells, flows }) => [cells["RULE"], cells["VERDICT"], flows]),
    ).toEqual([
      ["rule of a profile, egress", "allowed", 3],
      ["shop/db ingress[0]", "allowed", 3],
      ["shop/db ingress[1]", "denied", 2],
    ]);
  });
});
