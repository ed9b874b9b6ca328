import { describe, expect, test } from "bun:test";
import type { Expression } from "../../linux/nftables/expression.ts";
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import { carryCounts, DepartedCounts } from "./carried-counts.ts";
import { sumTraffic } from "./traffic.ts";

const table = { family: "inet", name: "t" } as const;
const rule = (chain: string, comment: string, kind: "accept" | "drop"): NftChange => {
  const expressions: Expression[] = [{ kind: "counter" }, { kind: "verdict", verdict: { kind } }];
  return { kind: "add-rule", table, rule: { chain, comment, expressions } };
};
const count = (comment: string, verdict: "accept" | "drop", packets: number, chain = "c"): RuleCount => ({
  chain,
  comment,
  verdict,
  packets,
  bytes: packets * 100,
});
const startsOf = (changes: readonly NftChange[]) =>
  changes.map((change) => (change.kind === "add-rule" ? change.rule.expressions[0] : undefined));

describe("carryCounts()", () => {
  test("lets the first rule with the same comment and verdict continue, whatever its chain is called", () => {
    const counts = [count("a/p ingress 0", "accept", 1), count("a/p ingress 0", "accept", 2, "d")];
    const changes = [
      rule("new", "a/p ingress 0", "drop"),
      rule("new", "a/p ingress 0", "accept"),
      rule("new", "a/p ingress 0", "accept"),
    ];
    const { changes: carried, left } = carryCounts(changes, counts);

    expect(startsOf(carried)).toEqual([
      { kind: "counter" },
      { kind: "counter", packets: 3, bytes: 300 },
      { kind: "counter" },
    ]);
    expect(left).toEqual([]);
  });

  test("lets each end of a tier continue its own count: the chains of two containers have the same comment", () => {
    const END = "tier default ingress default";
    const counts = [count(END, "drop", 10, "end_of_db"), count(END, "drop", 2, "end_of_web")];
    const { changes, left } = carryCounts([rule("end_of_web", END, "drop"), rule("end_of_db", END, "drop")], counts);

    expect(startsOf(changes)).toEqual([
      { kind: "counter", packets: 2, bytes: 200 },
      { kind: "counter", packets: 10, bytes: 1_000 },
    ]);
    expect(left).toEqual([]);
  });

  test("gives what an end counted whose chain is gone to no other chain", () => {
    const END = "tier default ingress default";
    const { changes, left } = carryCounts([rule("end_of_web", END, "drop")], [count(END, "drop", 10, "end_of_db")]);
    expect(startsOf(changes)).toEqual([{ kind: "counter" }]);
    expect(left).toEqual([count(END, "drop", 10, "end_of_db")]);
  });

  test("adds what a gone chain of a policy counted to what its other chain did", () => {
    const counts = [count("a/p ingress 0", "drop", 1, "gone"), count("a/p ingress 0", "drop", 2, "kept")];
    const { changes, left } = carryCounts([rule("kept", "a/p ingress 0", "drop")], counts);
    expect(startsOf(changes)).toEqual([{ kind: "counter", packets: 3, bytes: 300 }]);
    expect(left).toEqual([]);
  });

  test("returns what no rule continues", () => {
    const { left } = carryCounts([rule("c", "a/p ingress 0", "drop")], [count("a/p ingress 1", "drop", 5)]);
    expect(left).toEqual([count("a/p ingress 1", "drop", 5)]);
  });
});

describe("sumTraffic()", () => {
  test("sums by policy, direction and action, with the rules that are gone, and only of policies that exist", () => {
    const departed = new DepartedCounts();
    departed.add([
      count("a/p ingress 1", "drop", 5),
      count("a/p ingress 1", "drop", 1),
      count("a/old egress 0", "drop", 9),
    ]);
    const counts = [
      count("a/p ingress 0", "drop", 2),
      count("a/p egress 0", "accept", 4),
      count("profile ingress", "accept", 7),
      { chain: "c", comment: "a/p ingress 3", packets: 6, bytes: 600 },
      count("tier default ingress default", "drop", 3),
      ...departed.all(),
    ];
    expect(sumTraffic(counts, (policy) => policy === "a/p")).toEqual({
      policies: [
        { policy: "a/p", direction: "ingress", action: "deny", packets: 8, bytes: 800 },
        { policy: "a/p", direction: "egress", action: "allow", packets: 4, bytes: 400 },
        { policy: "a/p", direction: "ingress", action: "log", packets: 6, bytes: 600 },
      ],
      drops: [{ reason: 'the end of tier "default": no ingress rule of its policies matches', packets: 3, bytes: 300 }],
    });
  });
});

describe("DepartedCounts", () => {
  test("forgets the oldest of very many", () => {
    const departed = new DepartedCounts();
    departed.add([count("a/kept ingress 0", "drop", 1), count("a/old ingress 0", "drop", 1)]);
    for (let number = 0; number < 9_999; number++) {
      departed.add([count(`a/p${number} ingress 0`, "drop", 1)]);
      if (number === 5_000) departed.add([count("a/kept ingress 0", "drop", 1)]);
    }

    const left = departed.all();
    expect(left).toHaveLength(10_000);
    expect(left.filter(({ comment }) => comment?.includes("old"))).toEqual([]);
    expect(left.find(({ comment }) => comment === "a/kept ingress 0")?.packets).toBe(2);
  });
});
