import { describe, expect, test } from "bun:test";
import type { SidecarEvaluation, SidecarPolicy, SidecarRule } from "../../policy/requests/sidecar-state.ts";
import { flatRules } from "./flat-rules.ts";

const ANYTHING = { notNets: [], sets: [], notSets: [], identities: [] };
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
  return flatRules(evaluation, policies);
}

const summary = (lists: ReturnType<typeof flatRules>) =>
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
    expect(lists[0]?.[0]?.source.nets).toEqual(["10.1.0.0/16"]);
  });

  test("a later rule that can match nothing of what is passed is left out", () => {
    const passing = rule("Pass", { destination: { ports: { ranges: [[80, 90]] } } });
    const later = rule("Allow", { destination: { ports: { ranges: [[443, 443]] } } });

    expect(
      summary(
        flat([
          ["Deny", [passing]],
          ["Deny", [later]],
        ]),
      ),
    ).toEqual([[["deny"]]]);
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

  test("everything is denied if there are too many rules, or a policy is not known", () => {
    const many = (action: SidecarRule["action"]) =>
      Array.from({ length: 200 }, (_, index) => rule(action, { source: { sets: [`${index}`] } }));
    const denied = [[{ action: "deny" as const, source: ANYTHING, destination: ANYTHING }]];

    expect(
      flat([
        ["Deny", many("Pass")],
        ["Deny", many("Allow")],
      ]),
    ).toEqual(denied);
    const tiers = [{ name: "default", defaultAction: "Deny" as const, policies: ["unknown"] }];
    expect(flatRules({ tiers, profiles: [] }, new Map())).toEqual(denied);
  });
});
