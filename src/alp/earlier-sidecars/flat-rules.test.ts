import { describe, expect, test } from "bun:test";
import type { SidecarEvaluation, SidecarPolicy, SidecarRule } from "../protocol/sidecar-state.ts";
import { type FlatRule, flatRules } from "./flat-rules.ts";

const ANYTHING = { netLists: [], notNets: [], sets: [], notSets: [], identities: [] };
const rule = (action: SidecarRule["action"], more: Partial<SidecarRule> = {}): SidecarRule => ({
  ...{ index: 0, action, source: {}, destination: {} },
  ...more,
});

function flat(tiers: readonly (readonly [SidecarEvaluation["tiers"][0]["defaultAction"], readonly SidecarRule[]])[]) {
  const policies = new Map<string, SidecarPolicy>(tiers.map(([, rules], index) => [`p${index}`, { title: "", rules }]));
  const evaluation = {
    tiers: tiers.map(([defaultAction], index) => ({ name: `t${index}`, defaultAction, policies: [`p${index}`] })),
    profiles: [rule("Allow", { source: { sets: ["profile"] } })],
  };
  return flatRules(evaluation, policies) ?? [];
}

const summary = (lists: readonly (readonly FlatRule[])[]) =>
  lists.map((list) => list.map(({ action, source, destination }) => [action, ...source.sets, ...destination.sets]));

describe("flatRules()", () => {
  test("what a tier does not decide is denied, or goes on to the next tiers and the profiles", () => {
    const [one, other] = [rule("Allow", { source: { sets: ["a"] } }), rule("Deny", { source: { sets: ["b"] } })];

    expect(
      summary(
        flat([
          ["Deny", [one]],
          ["Deny", [other]],
        ]),
      ),
    ).toEqual([[["allow", "a"]]]);
    expect(
      summary(
        flat([
          ["Pass", [one]],
          ["Pass", [other]],
        ]),
      ),
    ).toEqual([[["allow", "a"]], [["deny", "b"]], [["allow", "profile"]]]);
  });

  test("a rule that passes becomes the rules after it, with the criteria of both; what they do not decide is denied", () => {
    const passing = rule("Pass", { source: { sets: ["a"], nets: ["10.0.0.0/8"] }, destination: { sets: ["d"] } });
    const later = rule("Allow", { source: { sets: ["b"], nets: ["10.1.0.0/16", "192.0.2.0/24"] } });
    const lists = flat([
      ["Deny", [passing]],
      ["Deny", [later]],
    ]);

    expect(summary(lists)).toEqual([
      [
        ["allow", "a", "b", "d"],
        ["deny", "a", "d"],
      ],
    ]);
    expect(lists[0]?.[0]?.source).toEqual({
      ...ANYTHING,
      ...{ sets: ["a", "b"], netLists: [["10.0.0.0/8"], ["10.1.0.0/16", "192.0.2.0/24"]] },
    });
  });

  test("a later rule that can match nothing of what is passed is left out", () => {
    const passing = rule("Pass", { destination: { ports: { ranges: [[80, 90]] } } });
    const later = rule("Allow", { destination: { ports: { ranges: [[443, 443]] } } });
    const near = rule("Pass", { source: { nets: ["10.0.0.0/8", "fd00::/8"] } });
    const [far, inside] = [
      ["11.0.0.0/8", "fc00::/8"],
      ["9.0.0.0/8", "10.9.0.0/16"],
    ].map((nets) => rule("Allow", { source: { nets } }));
    if (far === undefined || inside === undefined) throw new Error("no rules");
    const afterwards = (one: SidecarRule, other: SidecarRule) =>
      summary(
        flat([
          ["Deny", [one]],
          ["Deny", [other]],
        ]),
      );

    expect(afterwards(passing, later)).toEqual([[["deny"]]]);
    expect(afterwards(near, far)).toEqual([[["deny"]]]);
    expect(afterwards(near, inside)).toEqual([[["allow"], ["deny"]]]);
  });

  test("ports by number and by name are two rules; excluded ports are the ranges around them", () => {
    const ports = { ranges: [[80, 90]] as const, set: "web" };
    const [list = []] = flat([["Deny", [rule("Allow", { destination: { ports, notPorts: { ranges: [[85, 85]] } } })]]]);

    expect(list.map(({ destination }) => destination)).toEqual([
      {
        ...ANYTHING,
        ports: [
          [80, 84],
          [86, 90],
        ],
      },
      {
        ...ANYTHING,
        sets: ["web"],
        ports: [
          [0, 84],
          [86, 65_535],
        ],
      },
    ]);
  });

  test("the family is a network, and a rule without networks of its family matches nothing", () => {
    const [list = []] = flat([
      ["Deny", [rule("Allow", { family: 6 }), rule("Allow", { family: 4, source: { nets: ["fd00::/8"] } })]],
    ]);

    expect(list).toEqual([{ action: "allow", source: { ...ANYTHING, nets: ["::/0"] }, destination: ANYTHING }]);
  });

  test("no identity leads past a rule that denies", () => {
    const source = { sets: ["a"], identities: "i_a" };
    const [list = []] = flat([["Deny", [rule("Deny", { source }), rule("Allow", { source })]]]);

    expect(list.map((each) => each.source.identities)).toEqual([[], ["i_a"]]);
  });

  test("long lists of networks are repeated, not combined", () => {
    const listOf = (count: number, bits: number) =>
      Array.from({ length: count }, (_, index) => `10.${index >> 8}.${index & 255}.0/${bits}`);
    const passing = Array.from({ length: 10 }, () => rule("Pass", { source: { nets: listOf(100, 24) } }));
    const later = Array.from({ length: 20 }, () => rule("Allow", { source: { nets: listOf(1_000, 24) } }));
    const lists = flat([
      ["Deny", passing],
      ["Deny", later],
    ]);

    expect(lists.flat()).toHaveLength(10 * 21);
    expect(new Set(lists.flat().flatMap(({ source }) => source.netLists)).size).toBe(30);
  });

  test.each([
    ["networks", { source: { nets: new Array(300_000).fill("10.0.0.0/24") } }, 1],
    ["addresses of excluded networks", { source: { notNets: new Array(2_000).fill("10.0.0.0/25") } }, 1],
    ["pairs of ports", { destination: { ports: { ranges: new Array(800).fill([1, 9]) } } }, 1],
    ["pairs of rules", { destination: { ports: { ranges: [[1, 9]] as const } } }, 1_000],
  ])("there are limits for the number of %s", (_, more, count) => {
    const rules = (action: SidecarRule["action"], others: Partial<SidecarRule>) =>
      Array.from({ length: count }, () => rule(action, others));
    const apart = count === 1 ? more : { destination: { ports: { ranges: [[10, 10]] as const } } };

    expect(
      flat([
        ["Deny", rules("Pass", more)],
        ["Deny", rules("Allow", apart)],
      ]),
    ).toEqual([]);
  });

  test("there are no rules if they are too many; everything is denied if a policy is not known", () => {
    const many = (action: SidecarRule["action"]) =>
      Array.from({ length: 200 }, (_, index) => rule(action, { source: { sets: [`${index}`] } }));

    expect(
      flat([
        ["Deny", many("Pass")],
        ["Deny", many("Allow")],
      ]),
    ).toEqual([]);
    const tiers = [{ name: "default", defaultAction: "Deny" as const, policies: ["unknown"] }];
    expect(flatRules({ tiers, profiles: [] }, new Map())).toEqual([
      [{ action: "deny", source: ANYTHING, destination: ANYTHING }],
    ]);
  });
});
